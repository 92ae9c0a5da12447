"""What regressions answer when they are held against the data: residuals, and sets of earlier and of later outcomes."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import ROVING, Part
from stagewise.kernels.promise import ALARM, has
from stagewise.kernels.signals.declared import mistold_safe_of_round
from stagewise.kernels.signals.ridge import declared_of_ridge, frame_of, summed
from stagewise.kernels.signals.space import neglected_in
from stagewise.kernels.signals.watch import least_noise, surely_noise
from stagewise.models.answers import Answers, Evidence, Marks, Moved, Sums, halves

STATED, FRAME, SUMMED = named(declared_of_ridge), named(frame_of), named(summed)
HAS, MISTOLD_SAFE, NEGLECTED = named(has), named(mistold_safe_of_round), named(neglected_in)
LARGEST = 200  # features of a regression that is held against its past
SHARES = np.linspace(0.1, 0.9, 9)
LOG_TWO = math.log(2.0)  # earlier and later sets share the error


class RegressionAnswers(Answers):
    """What a ridge regression answers."""

    anchors = True

    def tests_noise(self, part: Part) -> bool:
        return True

    def evidence(self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        return regressed(part, settings, signal)

    def mistold(self, part: Part, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        code = int(MISTOLD_SAFE(part, settings)) if HAS(layout, ROVING) else 0
        return iter([-code] if code else [])

    def sums(self, part: Part, settings: Floats, memory: Floats, which: str) -> Sums | None:
        return regression_sums(part, settings, which) if part.size <= LARGEST else None

    def count(self, part: Part, settings: Floats, memory: Floats) -> float | None:
        return float(SUMMED(part).taken) if part.size <= LARGEST else None

    def moved(
        self, part: Part, settings: Floats, memory: Floats, marks: Marks, which: str, alarms: Sequence[float]
    ) -> Iterator[Moved]:
        for early, late, alarm in halves(marks, alarms):
            yield from regression_moved(part, settings, early, late, which, alarm)


class SpaceAnswers(Answers):
    """What a regression in a reproducing-kernel space answers: residuals may also be what its basis leaves out."""

    anchors = True

    def tests_noise(self, part: Part) -> bool:
        return True

    def evidence(self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        return regressed(part, settings, signal, float(NEGLECTED(part, memory)))


def regressed(part: Part, settings: Floats, signal: int, neglected: float = 0.0) -> Evidence:
    """Return what a regression has seen of one of its signals."""
    seen, declared = SUMMED(part), STATED(part, settings)
    squares = surely_noise(seen.squares[signal], declared.bound[signal], FRAME(part, settings).ridge, neglected)
    safe_count = float(seen.at_safe)
    stray = float(seen.strays[signal]) / max(safe_count, 1.0)
    least = least_noise(squares, seen.taken, settings[ALARM])
    told = float(declared.noise[signal]), least, safe_count, float(declared.known[signal]) + stray
    return Evidence(float(seen.taken), *told)


def regression_sums(part: Part, settings: Floats, which: str) -> Sums:
    """Return what a mark holds of one regression: Σ zzᵀ and Σ yz."""
    seen = SUMMED(part)
    root = np.linalg.inv(np.tril(seen.root))
    matrix = root @ root.T  # V, as V⁻¹ = TᵀT
    return {
        f"squares {which}": matrix - FRAME(part, settings).ridge * np.eye(part.size),
        f"sums {which}": seen.fits @ matrix,
        f"seen {which}": np.array(seen.taken),
    }


def regression_moved(
    part: Part, settings: Floats, early: Sums, late: Sums, which: str, alarm: float
) -> Iterator[Moved]:
    """Yield the signals whose earlier and later ellipsoids have no parameter in common."""
    declared, ridge = STATED(part, settings), FRAME(part, settings).ridge
    matrices = [sums[f"squares {which}"] + ridge * np.eye(part.size) for sums in (early, late)]
    inverses = [np.linalg.inv(matrix) for matrix in matrices]
    spreads = [max(float(np.linalg.slogdet(matrix / ridge)[1]), 0.0) for matrix in matrices]
    for signal in range(part.signals):
        noise, bound = float(declared.noise[signal]), float(declared.bound[signal])
        radii = [noise * math.sqrt(spread + 2.0 * (alarm + LOG_TWO)) + bound * math.sqrt(ridge) for spread in spreads]
        apart = inverses[0] @ early[f"sums {which}"][signal] - inverses[1] @ late[f"sums {which}"][signal]
        if disjoint(apart, radii[0] ** 2 * inverses[0], radii[1] ** 2 * inverses[1]):
            yield Moved(signal, float(early[f"seen {which}"]), float(late[f"seen {which}"]))


def disjoint(apart: Floats, one: Floats, other: Floats) -> bool:
    """Say whether two ellipsoids, whose centres are d apart, are seen to have no point in common.

    ‖θ − θ₁‖²_A ≤ 1 and ‖θ − θ₂‖²_B ≤ 1 have none where for some w in (0, 1) w‖θ − θ₁‖²_A + (1 − w)‖θ − θ₂‖²_B > 1 for
    all θ; its minimum is dᵀ((wA)⁻¹ + ((1 − w)B)⁻¹)⁻¹d. Given are A⁻¹ and B⁻¹.
    """
    return any(apart @ np.linalg.solve(one / w + other / (1.0 - w), apart) > 1.0 for w in SHARES)
