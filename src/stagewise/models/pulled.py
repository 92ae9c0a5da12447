"""What arms answer when they are held against the data: means of pulls, earlier and later."""

import math
from collections.abc import Iterator, Sequence

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
from stagewise.kernels.signals.watch import least_noise
from stagewise.models.answers import Answers, Evidence, Marks, Moved, Sums, halves
from stagewise.models.moved_rates import RATE_MARKS, shifts

MEANS_OF, SHOWN, STATED, DEARER = named(means_of), named(shown_at), named(declared_of_arms), named(dearer)
INTERVAL, RADIUS, SURE = named(interval), named(unit_radius), named(confidence_in)
MOST_PULLS, STEP = 1e12, 1.05  # of a forecast, and from one number of pulls to the next


class ArmsAnswers(Answers):
    """What arms answer."""

    anchors = True
    kept_marks, per_doubling = RATE_MARKS

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
        self, part: Part, settings: Floats, memory: Floats, marks: Marks, which: str, alarms: Sequence[float]
    ) -> Iterator[Moved]:
        declared = STATED(part, settings)
        for signal in range(part.signals):
            if is_ranged(part.radius):
                yield from ranged_moved(part, float(declared.low[signal]), marks, which, signal, alarms)
                continue
            for early, late, alarm in halves(marks, alarms):
                told = part, float(declared.noise[signal]), early, late, which, signal, alarm
                yield from noisy_moved(*told)

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


def ranged_moved(
    part: Part, low: float, marks: Marks, which: str, signal: int, alarms: Sequence[float]
) -> Iterator[Moved]:
    """Yield the arm whose mean of numbers in [low, low + 1] moved, or all arms, mark by mark."""
    pulls = [sums[f"pulls {which}"] for sums in marks]
    totals = [sums[f"totals {which}"][signal] - low * sums[f"pulls {which}"] for sums in marks]
    for found in shifts(pulls, totals, part.size, False, alarms):
        arm = found.cells[0] if len(found.cells) == 1 else -1
        told = found.early, found.late, (low + found.before, low + found.after), arm
        yield Moved(signal, *told, cells=len(found.cells), word="arm", unit="pull")


def noisy_moved(
    part: Part, noise: float, early: Sums, late: Sums, which: str, signal: int, alarm: float
) -> Iterator[Moved]:
    """Yield the arms whose earlier and later intervals by the noise have no mean in common."""
    first, second, confidence = early[f"pulls {which}"], late[f"pulls {which}"], alarm + math.log(2.0 * part.size)
    for arm in np.flatnonzero((first > 0.0) & (second > 0.0)).tolist():
        n, m = float(first[arm]), float(second[arm])
        means = float(early[f"totals {which}"][signal, arm]) / n, float(late[f"totals {which}"][signal, arm]) / m
        if abs(means[0] - means[1]) > radius(n, noise, confidence) + radius(m, noise, confidence):
            yield Moved(signal, n, m, means, arm, word="arm", unit="pull")


def radius(count: float, noise: float, confidence: float) -> float:
    """Return the radius of the mean of n R-sub-Gaussian numbers, for all n at once (docs/theory/arms.md)."""
    return noise * math.sqrt((1.0 + 1.0 / count) * (math.log1p(count) + 2.0 * confidence) / count)
