"""Diagnostics of regressions: residuals, and confidence sets of earlier and of later outcomes."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stagewise.kernels.compile import Floats, Ints, as_python
from stagewise.kernels.constraints import ALARM, has_switch
from stagewise.kernels.layout import PER_ROUND_SAFE, ModelBlock
from stagewise.kernels.models.assumption_tests import compute_certain_noise, compute_least_noise
from stagewise.kernels.models.kernel_ridge import get_neglected_norm
from stagewise.kernels.models.ridge import get_coordinate_frame, get_ridge_assumptions, get_ridge_statistics
from stagewise.kernels.models.round_safe_checks import check_round_safe_action
from stagewise.models.diagnostics import Evidence, Marks, MeanChange, ModelDiagnostics, Sums, split_at_marks

GET_ASSUMPTIONS, FRAME, GET_STATISTICS = (
    as_python(get_ridge_assumptions),
    as_python(get_coordinate_frame),
    as_python(get_ridge_statistics),
)
HAS_SWITCH, CHECK_ROUND_SAFE_ACTION, NEGLECTED = (
    as_python(has_switch),
    as_python(check_round_safe_action),
    as_python(get_neglected_norm),
)
LARGEST = 200  # largest number of features of a regression that is compared with its past
SHARES = np.linspace(0.1, 0.9, 9)
LOG_TWO = math.log(2.0)  # earlier and later sets share the error


class RegressionDiagnostics(ModelDiagnostics):
    """Diagnostics of a ridge regression."""

    checks_safe_value = True

    def tests_noise(self, block: ModelBlock) -> bool:
        return True

    def get_evidence(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        return build_evidence(block, settings, signal)

    def find_contradictions(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        code = int(CHECK_ROUND_SAFE_ACTION(block, settings)) if HAS_SWITCH(layout, PER_ROUND_SAFE) else 0
        return iter([-code] if code else [])

    def get_sums(self, block: ModelBlock, settings: Floats, memory: Floats, key: str) -> Sums | None:
        return compute_regression_sums(block, settings, key) if block.size <= LARGEST else None

    def count(self, block: ModelBlock, settings: Floats, memory: Floats) -> float | None:
        return float(GET_STATISTICS(block).observations) if block.size <= LARGEST else None

    def moved(
        self, block: ModelBlock, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        for early, late, alarm in split_at_marks(marks, alarms):
            yield from find_regression_changes(block, settings, early, late, key, alarm)


class KernelRidgeDiagnostics(ModelDiagnostics):
    """Diagnostics of kernel ridge regression, where residuals may also come from what the basis leaves out."""

    checks_safe_value = True

    def tests_noise(self, block: ModelBlock) -> bool:
        return True

    def get_evidence(self, block: ModelBlock, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        return build_evidence(block, settings, signal, float(NEGLECTED(block, memory)))


def build_evidence(block: ModelBlock, settings: Floats, signal: int, neglected: float = 0.0) -> Evidence:
    """Return the statistics of one of a regression's signals."""
    observed, declared = GET_STATISTICS(block), GET_ASSUMPTIONS(block, settings)
    squares = compute_certain_noise(
        observed.squares[signal], declared.bound[signal], FRAME(block, settings).ridge, neglected
    )
    safe_count = float(observed.at_safe)
    deviation = float(observed.safe_residuals[signal]) / max(safe_count, 1.0)
    least = compute_least_noise(squares, observed.observations, settings[ALARM])
    fields = float(declared.noise[signal]), least, safe_count, float(declared.known[signal]) + deviation
    return Evidence(float(observed.observations), *fields)


def compute_regression_sums(block: ModelBlock, settings: Floats, key: str) -> Sums:
    """Return the sums of one regression that a mark stores: Σ zzᵀ and Σ yz."""
    observed = GET_STATISTICS(block)
    root = np.linalg.inv(np.tril(observed.root))
    matrix = root @ root.T  # V, as V⁻¹ = TᵀT
    return {
        f"squares {key}": matrix - FRAME(block, settings).ridge * np.eye(block.size),
        f"sums {key}": observed.fits @ matrix,
        f"outcomes {key}": np.array(observed.observations),
    }


def find_regression_changes(
    block: ModelBlock, settings: Floats, early: Sums, late: Sums, key: str, alarm: float
) -> Iterator[MeanChange]:
    """Yield the signals whose earlier and later ellipsoids are disjoint."""
    declared, ridge = GET_ASSUMPTIONS(block, settings), FRAME(block, settings).ridge
    matrices = [sums[f"squares {key}"] + ridge * np.eye(block.size) for sums in (early, late)]
    inverses = [np.linalg.inv(matrix) for matrix in matrices]
    log_dets = [max(float(np.linalg.slogdet(matrix / ridge)[1]), 0.0) for matrix in matrices]
    for signal in range(block.signals):
        noise, bound = float(declared.noise[signal]), float(declared.bound[signal])
        radii = [
            noise * math.sqrt(log_det + 2.0 * (alarm + LOG_TWO)) + bound * math.sqrt(ridge) for log_det in log_dets
        ]
        difference = inverses[0] @ early[f"sums {key}"][signal] - inverses[1] @ late[f"sums {key}"][signal]
        if are_disjoint(difference, radii[0] ** 2 * inverses[0], radii[1] ** 2 * inverses[1]):
            yield MeanChange(signal, float(early[f"outcomes {key}"]), float(late[f"outcomes {key}"]))


def are_disjoint(difference: Floats, one: Floats, other: Floats) -> bool:
    """Return whether two ellipsoids, whose centres differ by d, are shown to be disjoint.

    ‖θ − θ₁‖²_A ≤ 1 and ‖θ − θ₂‖²_B ≤ 1 are disjoint if for some w in (0, 1) w‖θ − θ₁‖²_A + (1 − w)‖θ − θ₂‖²_B > 1 for
    all θ; its minimum is dᵀ((wA)⁻¹ + ((1 − w)B)⁻¹)⁻¹d. The arguments are A⁻¹ and B⁻¹.
    """
    return any(difference @ np.linalg.solve(one / w + other / (1.0 - w), difference) > 1.0 for w in SHARES)
