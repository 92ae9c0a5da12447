"""Diagnostics of arm models: means of earlier and later pulls, compared with the assumptions."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stagewise.kernels.compile import Floats, Ints, as_python
from stagewise.kernels.constraints import ALARM
from stagewise.kernels.layout import SAFE_INDEX, ModelBlock
from stagewise.kernels.models.arm_means import (
    compute_interval,
    exceeds_known_mean,
    get_arm_means,
    get_arms_assumptions,
    get_confidence,
    get_pull_summary,
    is_ranged,
    unit_radius,
)
from stagewise.kernels.models.assumption_tests import compute_least_noise
from stagewise.models.diagnostics import Evidence, Marks, MeanChange, ModelDiagnostics, Sums, split_at_marks
from stagewise.models.rate_changes import RATE_MARKS, find_shifts

GET_ARM_MEANS, GET_PULL_SUMMARY, GET_ASSUMPTIONS, EXCEEDS_KNOWN_MEAN = (
    as_python(get_arm_means),
    as_python(get_pull_summary),
    as_python(get_arms_assumptions),
    as_python(exceeds_known_mean),
)
INTERVAL, RADIUS, GET_CONFIDENCE = as_python(compute_interval), as_python(unit_radius), as_python(get_confidence)
MOST_PULLS, STEP = 1e12, 1.05  # largest forecast, and the ratio from one number of pulls to the next


class ArmsDiagnostics(ModelDiagnostics):
    """Diagnostics of an arm model."""

    checks_safe_value = True
    kept_marks, per_doubling = RATE_MARKS

    def tests_noise(self, block: ModelBlock) -> bool:
        return not is_ranged(block.radius)

    def get_evidence(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        summary, noise = (
            GET_PULL_SUMMARY(block, memory, int(layout[SAFE_INDEX]), signal),
            GET_ASSUMPTIONS(block, settings).noise[signal],
        )
        least = compute_least_noise(summary.squares, summary.pulls, settings[ALARM])
        return Evidence(float(summary.pulls), float(noise), least, float(summary.at_arm), float(summary.mean))

    def contradicts_safe_value(
        self,
        block: ModelBlock,
        layout: Ints,
        settings: Floats,
        memory: Floats,
        signal: int,
        observed: Evidence,
        known: float,
    ) -> bool:
        return bool(EXCEEDS_KNOWN_MEAN(int(layout[SAFE_INDEX]), block, settings, memory, signal))

    def get_sums(self, block: ModelBlock, settings: Floats, memory: Floats, key: str) -> Sums | None:
        observed = GET_ARM_MEANS(block, memory)
        return {
            f"pulls {key}": observed.pulls.copy(),
            f"totals {key}": observed.pulls * observed.means,
            f"outcomes {key}": np.array(observed.pulls.sum()),
        }

    def moved(
        self, block: ModelBlock, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        declared = GET_ASSUMPTIONS(block, settings)
        for signal in range(block.signals):
            if is_ranged(block.radius):
                yield from find_ranged_changes(block, float(declared.low[signal]), marks, key, signal, alarms)
                continue
            for early, late, alarm in split_at_marks(marks, alarms):
                fields = block, float(declared.noise[signal]), early, late, key, signal, alarm
                yield from find_noisy_changes(*fields)

    def forecast_pulls(
        self, block: ModelBlock, settings: Floats, memory: Floats, arm: int, signal: int, limit: float
    ) -> tuple[float, float] | None:
        pulled, declared, confidence = (
            GET_ARM_MEANS(block, memory),
            GET_ASSUMPTIONS(block, settings),
            GET_CONFIDENCE(block, settings),
        )
        mean, low, noise = float(pulled.means[signal, arm]), float(declared.low[signal]), float(declared.noise[signal])
        pulls = float(pulled.pulls[arm])
        count = max(pulls, 1.0)
        while count < MOST_PULLS:
            if is_ranged(block.radius):
                squares = count * (mean - low) * (1.0 - mean + low)
                high = INTERVAL(block.radius, count, mean, squares, low, confidence).high
            else:
                high = mean + noise * RADIUS(block.radius, count, confidence)
            if high <= limit:
                return pulls, count
            count *= STEP
        return pulls, math.inf


def find_ranged_changes(
    block: ModelBlock, low: float, marks: Marks, key: str, signal: int, alarms: Sequence[float]
) -> Iterator[MeanChange]:
    """Yield the arm whose mean of numbers in [low, low + 1] changed, or all arms, mark by mark."""
    pulls = [sums[f"pulls {key}"] for sums in marks]
    totals = [sums[f"totals {key}"][signal] - low * sums[f"pulls {key}"] for sums in marks]
    for found in find_shifts(pulls, totals, block.size, False, alarms):
        arm = found.cells[0] if len(found.cells) == 1 else -1
        fields = found.early, found.late, (low + found.before, low + found.after), arm
        yield MeanChange(signal, *fields, cells=len(found.cells), word="arm", unit="pull")


def find_noisy_changes(
    block: ModelBlock, noise: float, early: Sums, late: Sums, key: str, signal: int, alarm: float
) -> Iterator[MeanChange]:
    """Yield the arms whose earlier and later intervals, given the noise, are disjoint."""
    first, second, confidence = early[f"pulls {key}"], late[f"pulls {key}"], alarm + math.log(2.0 * block.size)
    for arm in np.flatnonzero((first > 0.0) & (second > 0.0)).tolist():
        n, m = float(first[arm]), float(second[arm])
        means = float(early[f"totals {key}"][signal, arm]) / n, float(late[f"totals {key}"][signal, arm]) / m
        if abs(means[0] - means[1]) > compute_mean_radius(n, noise, confidence) + compute_mean_radius(
            m, noise, confidence
        ):
            yield MeanChange(signal, n, m, means, arm, word="arm", unit="pull")


def compute_mean_radius(count: float, noise: float, confidence: float) -> float:
    """Return the radius of the mean of n R-sub-Gaussian numbers, for all n at once (docs/theory/arms.md)."""
    return noise * math.sqrt((1.0 + 1.0 / count) * (math.log1p(count) + 2.0 * confidence) / count)
