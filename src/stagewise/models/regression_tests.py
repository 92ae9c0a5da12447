"""Online tests of the assumptions (docs/theory/watch.md); a contradiction makes the policy play the safe action.

The level a of the tests is no part of δ: a false alarm plays the safe action, which violates no limit.

Diagnostics of regressions: residuals, and confidence sets of earlier and of later outcomes.
"""

import math
from collections.abc import Iterator

import numpy as np

from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.engine.limits import ALARM, NOISE, SAFE_COST, encode_contradiction
from stagewise.models.diagnostics import (
    LEAST_RATIO,
    Evidence,
    MeanChange,
    Sums,
    compute_least_noise,
    compute_max_deviation,
    compute_max_squares,
)
from stagewise.models.regression import (
    OBSERVATIONS,
    SAFE_OBSERVATIONS,
    SQUARES,
    Regression,
    get_coordinate_frame,
    get_ridge_assumptions,
    get_ridge_statistics,
)


@kernel
def compute_certain_noise(squares: float, bound: float, ridge: float, neglected: float) -> float:
    """Return the squares that only noise explains: (√(Σe²/(1 + w²) − λS²) − S √Σρ)², each term at least 0."""
    rest = max(math.sqrt(max(squares - ridge * bound * bound, 0.0)) - bound * neglected, 0.0)
    return rest * rest


@kernel
def check_regression(block: Regression, settings: Floats, memory: Floats, neglected: float) -> int:
    """Return the code of the first contradicted noise, or value at the safe action, of a regression's cost; 0: none.

    `neglected` is √Σρ of what a reproducing kernel's basis leaves out.
    """
    tally, declared, k, alarm = block.tally, get_ridge_assumptions(block, settings), block.signals, settings[ALARM]
    for signal in range(k):
        if block.first + signal == 0:
            continue  # a reward has no limit
        noise, squares, observations = declared.noise[signal], tally[SQUARES + signal], tally[OBSERVATIONS]
        if squares > LEAST_RATIO * observations * noise * noise:
            least = compute_certain_noise(squares, declared.bound[signal], settings[block.settings], neglected)
            if least > compute_max_squares(observations, alarm) * noise * noise:
                return encode_contradiction(NOISE, block.first + signal - 1)
        deviation = abs(tally[SQUARES + k + signal])
        if (
            block.anchored == 1
            and deviation > 0.0
            and deviation > compute_max_deviation(tally[SAFE_OBSERVATIONS], noise, alarm)
        ):
            return encode_contradiction(SAFE_COST, block.first + signal - 1)
    return 0


@kernel
def record_safe_outcome(block: Regression, settings: Floats, memory: Floats, values: Floats) -> None:
    """Add an outcome (k,) at the safe action to the sums, less the known values."""
    tally, known = block.tally, get_ridge_assumptions(block, settings).known
    tally[SAFE_OBSERVATIONS] += 1.0
    for signal in range(block.signals):
        tally[SQUARES + block.signals + signal] += values[signal] - known[signal]


GET_ASSUMPTIONS, FRAME = as_python(get_ridge_assumptions), as_python(get_coordinate_frame)
GET_STATISTICS = as_python(get_ridge_statistics)
LARGEST = 200  # largest number of features of a regression that is compared with its past
SHARES = np.linspace(0.1, 0.9, 9)
LOG_TWO = math.log(2.0)  # earlier and later sets share the error


def build_evidence(block: Regression, settings: Floats, signal: int, neglected: float = 0.0) -> Evidence:
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


def compute_regression_sums(block: Regression, settings: Floats, key: str) -> Sums:
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
    block: Regression, settings: Floats, early: Sums, late: Sums, key: str, alarm: float
) -> Iterator[MeanChange]:
    """Yield the signals whose earlier and later ellipsoids are disjoint."""
    declared, ridge = GET_ASSUMPTIONS(block, settings), FRAME(block, settings).ridge
    matrices = np.array([early[f"squares {key}"], late[f"squares {key}"]]) + ridge * np.eye(block.size)
    inverses, log_dets = np.linalg.inv(matrices), np.maximum(np.linalg.slogdet(matrices / ridge)[1], 0.0).tolist()
    for signal in range(block.signals):
        noise, bound = float(declared.noise[signal]), float(declared.bound[signal])
        radii = [
            noise * math.sqrt(log_det + 2.0 * (alarm + LOG_TWO)) + bound * math.sqrt(ridge) for log_det in log_dets
        ]
        difference = inverses[0] @ early[f"sums {key}"][signal] - inverses[1] @ late[f"sums {key}"][signal]
        within = [
            difference @ matrix @ difference <= radius**2 for matrix, radius in zip(matrices, radii, strict=True)
        ]  # a centre in the other's ellipsoid, which spares the search for a weight
        if not any(within) and are_disjoint(difference, radii[0] ** 2 * inverses[0], radii[1] ** 2 * inverses[1]):
            yield MeanChange(signal, float(early[f"outcomes {key}"]), float(late[f"outcomes {key}"]))


def are_disjoint(difference: Floats, one: Floats, other: Floats) -> bool:
    """Return whether two ellipsoids, whose centres differ by d, are shown to be disjoint.

    ‖θ − θ₁‖²_A ≤ 1 and ‖θ − θ₂‖²_B ≤ 1 are disjoint if for some w in (0, 1) w‖θ − θ₁‖²_A + (1 − w)‖θ − θ₂‖²_B > 1 for
    all θ; its minimum is dᵀ((wA)⁻¹ + ((1 − w)B)⁻¹)⁻¹d. The arguments are A⁻¹ and B⁻¹.
    """
    return any(difference @ np.linalg.solve(one / w + other / (1.0 - w), difference) > 1.0 for w in SHARES)
