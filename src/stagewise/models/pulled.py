"""What arms answer when they are held against the data: means of pulls, earlier and later."""

import math
from collections.abc import Iterator

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import HOME, Part
from stagewise.kernels.promise import ALARM
from stagewise.kernels.signals.arms import (
    confidence_in,
    dearer,
    declared_of_arms,
    interval,
    is_ranged,
    means_of,
    shown_at,
    unit_radius,
)
from stagewise.kernels.signals.interval import kl_interval
from stagewise.kernels.signals.watch import least_noise
from stagewise.models.answers import Answers, Evidence, Moved, Sums

MEANS_OF, SHOWN, STATED, DEARER = named(means_of), named(shown_at), named(declared_of_arms), named(dearer)
INTERVAL, RADIUS, SURE, KL_INTERVAL = named(interval), named(unit_radius), named(confidence_in), named(kl_interval)
MOST_PULLS, STEP = 1e12, 1.05  # of a forecast, and from one number of pulls to the next


class ArmsAnswers(Answers):
    """What arms answer."""

    anchors = True

    def tests_noise(self, part: Part) -> bool:
        return not is_ranged(part.radius)

    def evidence(self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        shown, noise = SHOWN(part, memory, int(layout[HOME]), signal), STATED(part, settings).noise[signal]
        least = least_noise(shown.squares, shown.pulls, settings[ALARM])
        return Evidence(float(shown.pulls), float(noise), least, float(shown.at_arm), float(shown.mean))

    def strays(
        self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int, seen: Evidence, known: float
    ) -> bool:
        return bool(DEARER(int(layout[HOME]), part, settings, memory, signal))

    def sums(self, part: Part, settings: Floats, memory: Floats, which: str) -> Sums | None:
        seen = MEANS_OF(part, memory)
        return {
            f"pulls {which}": seen.pulls.copy(),
            f"totals {which}": seen.pulls * seen.means,
            f"seen {which}": np.array(seen.pulls.sum()),
        }

    def moved(
        self, part: Part, settings: Floats, memory: Floats, early: Sums, late: Sums, which: str, alarm: float
    ) -> Iterator[Moved]:
        declared, confidence = STATED(part, settings), alarm + math.log(part.size)
        first, second = early[f"pulls {which}"], late[f"pulls {which}"]
        for arm in np.flatnonzero((first > 0.0) & (second > 0.0)).tolist():
            n, m = float(first[arm]), float(second[arm])
            for signal in range(part.signals):
                one = float(early[f"totals {which}"][signal, arm]) / n
                other = float(late[f"totals {which}"][signal, arm]) / m
                noise, low = float(declared.noise[signal]), float(declared.low[signal])
                if is_ranged(part.radius):
                    apart = parted(n, one - low, m, other - low, confidence)
                else:
                    apart = abs(one - other) > radius(n, noise, confidence) + radius(m, noise, confidence)
                if apart:
                    yield Moved(signal, n, m, (one, other), arm, word="arm", unit="pull")

    def pulls_until(
        self, part: Part, settings: Floats, memory: Floats, arm: int, signal: int, limit: float
    ) -> tuple[float, float] | None:
        held, declared, confidence = MEANS_OF(part, memory), STATED(part, settings), SURE(part, settings)
        mean, low, noise = float(held.means[signal, arm]), float(declared.low[signal]), float(declared.noise[signal])
        pulls = float(held.pulls[arm])
        count = max(pulls, 1.0)
        while count < MOST_PULLS:
            if is_ranged(part.radius):
                squares = count * (mean - low) * (1.0 - mean + low)
                high = INTERVAL(part.radius, count, mean, squares, low, confidence).high
            else:
                high = mean + noise * RADIUS(part.radius, count, confidence)
            if high <= limit:
                return pulls, count
            count *= STEP
        return pulls, math.inf


def parted(n: float, one: float, m: float, other: float, confidence: float) -> bool:
    """Say whether means of numbers in [0, 1] have no value in common, by the intervals "kl"."""
    centre = min(max((n * one + m * other) / (n + m), 0.0), 1.0)
    if abs(one - other) <= 3.0 * math.sqrt(centre * (1.0 - centre) * (1.0 / n + 1.0 / m)):
        return False  # three standard errors, which the intervals at this level surely overlap at
    before, after = KL_INTERVAL(n, one, confidence), KL_INTERVAL(m, other, confidence)
    return bool(before.high < after.low or after.high < before.low)


def radius(count: float, noise: float, confidence: float) -> float:
    """Return the radius of the mean of n R-sub-Gaussian numbers, for all n at once (docs/theory/arms.md)."""
    return noise * math.sqrt((1.0 + 1.0 / count) * (math.log1p(count) + 2.0 * confidence) / count)
