"""Diagnostics: compare a model's assumptions with the data, online and afterwards; the causes of contradictions.

Online tests of the assumptions (docs/theory/watch.md); a contradiction makes the policy play the safe action.

The level a of the tests is no part of δ: a false alarm plays the safe action, which violates no limit.

Diagnostics of regressions: residuals, and confidence sets of earlier and of later outcomes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, kernel
from stagewise.engine.layout import PER_ROUND_SAFE, SAFE_COST_DECLARED, SAFE_INDEX, get_round_safe_action
from stagewise.engine.model import Model
from stagewise.engine.workspace import (
    ALARM,
    CENTRE,
    CONTRADICTED,
    CONTRADICTION_KINDS,
    HALF,
    MEAN_COST_BOUND,
    MODEL,
    NOISE,
    SAFE_COST,
    encode_contradiction,
    get_ceiling,
    has_switch,
)
from stagewise.models.model_block import iter_model_blocks
from stagewise.models.regression import (
    OBSERVATIONS,
    SAFE_OBSERVATIONS,
    SQUARES,
    Regression,
    get_coordinate_frame,
    get_ridge_assumptions,
    get_ridge_statistics,
)
from stagewise.problem.thresholds import Thresholds
from stagewise.records.reason import Contradiction, FallbackReason, ReasonDetails

FEW, SOME, MANY = 0.9, 0.3, 0.05  # values of s at which squared residuals are tested against the noise
SPENT = math.log(3.0)
LEAST_RATIO = 1.025  # −log(1 − s) ≥ 1.025 s at all three: mean squares below 1.025 R² cannot contradict R
PER_FEW, PER_SOME, PER_MANY = -math.log1p(-FEW), -math.log1p(-SOME), -math.log1p(-MANY)


@kernel
def compute_max_squares(count: float, alarm: float) -> float:
    """Return an upper bound on the sum of squares of n numbers, in units of R²: min_s (2 log(3/a) − n log(1 − s))/s."""
    spent = 2.0 * (alarm + SPENT)
    few, some = (spent + count * PER_FEW) / FEW, (spent + count * PER_SOME) / SOME
    return min(few, some, (spent + count * PER_MANY) / MANY)


@kernel
def compute_least_noise(squares: float, count: float, alarm: float) -> float:
    """Return the least R for which n R-sub-Gaussian numbers may have squares that add up to Q or more.

    R² ≥ s Q/(2 log(3/a) − n log(1 − s)) for s = .9, .3 and .05 and all n at once, with probability 1 − a.
    """
    return math.sqrt(max(squares, 0.0) / compute_max_squares(count, alarm))


@kernel
def compute_max_deviation(count: float, noise: float, alarm: float) -> float:
    """Return a bound on |Σ of n R-sub-Gaussian numbers|: R √((n + 1)(log(n + 1) + 2 log 1/a)), for all n at once."""
    return noise * math.sqrt((count + 1.0) * (math.log1p(count) + 2.0 * alarm))


Sums = dict[str, Any]  # sums at some time, by name; names of outcome counts begin with "outcomes"
Marks = Sequence[Sums]  # sums at several times, the last of which is now


class Evidence(NamedTuple):
    """Statistics of one signal, signed, beside its declared noise."""

    outcomes: float = 0.0  # number of outcomes
    noise: float = 0.0  # declared
    least: float = 0.0  # the least noise that explains the residuals
    safe_count: float = 0.0  # outcomes at the safe action itself
    safe_mean: float = 0.0  # their mean


class MeanChange(NamedTuple):
    """A signal of a block whose mean has changed."""

    signal: int  # index within the block
    early: float  # outcomes before
    late: float  # outcomes after
    means: tuple[float, float] | None = None  # signed, before and after; None: a parameter changed, not one mean
    action: int = -1  # arm or action; -1: all
    segment: int | None = None  # segment; None: all
    cells: int = 1  # number of means that changed together; `means` are then weighted as the later outcomes are
    word: str = "action"  # what a candidate is called
    unit: str = "outcome"  # what is counted
    since: float = 0.0  # when the last outcome before was decided, where outcomes have times

    def distance(self) -> float:
        """Return the absolute difference of the means."""
        return 0.0 if self.means is None else abs(self.means[1] - self.means[0])


class UpperForecast(NamedTuple):
    """The upper end of one mean, if it stays as it is."""

    cell: int  # the same for outcomes that are learned together
    pulls: float  # so far
    mean: float
    upper: Callable[[float], float]  # the upper end after a number of pulls


class FoundChange(NamedTuple):
    """A mean that moved further than declared, in a model that forgets what is older by itself."""

    action: int
    segment: int | None
    since: float  # seconds: when the oldest outcomes that are kept were decided
    mean: float  # since then, signed; NaN: there is no outcome
    fell: bool  # the outcomes that show it are kept, so that the mean is known to be lower than before


class AgedBound(NamedTuple):
    """The upper bound of a mean that drifts, at a time, and what it consists of; values are signed."""

    action: int
    segment: int | None
    upper: float
    age_term: float  # the part of it that the age of the outcomes and the declared drift make
    mean: float  # of the longest epoch that is kept; NaN: there is no outcome
    outcomes: int  # that it has
    begin: float  # when it began, in seconds
    changed: float  # from when outcomes count after the last change or a person's word; 0: all count
    ends: Callable[[float], float] | None  # the upper bound after so many more seconds at the present rate


class MeanFall(NamedTuple):
    """Means of an action that fall from one bucket of a score to a later one, though they are declared not to."""

    action: int
    before: int  # the bucket up to which some mean is at least `low`
    after: int  # the bucket from which some mean is at most `high`
    low: float  # signed
    high: float  # signed


class ModelDiagnostics:
    """Diagnostics of a model that keeps no sums for them."""

    kept_marks, per_doubling = 4, 1  # number of marks kept, and marks per doubling of the data
    checks_safe_value = False  # whether outcomes at the safe action are compared with its declared values
    has_safe_cost_per_user = False  # whether the safe action's cost is declared per user

    def tests_noise(self, block: Any) -> bool:
        """Return whether a noise is declared that residuals can contradict."""
        return False

    def get_evidence(self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        """Return the statistics of one of a block's signals."""
        return Evidence()

    def contradicts_safe_value(
        self, block: Any, layout: Ints, settings: Floats, memory: Floats, signal: int, observed: Evidence, known: float
    ) -> bool:
        """Return whether the outcomes at the safe action contradict its declared value, signed."""
        deviation = observed.safe_count * abs(observed.safe_mean - known)
        return bool(deviation > compute_max_deviation(observed.safe_count, observed.noise, settings[ALARM]))

    def find_contradictions(self, block: Any, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        """Yield the (negative) code of every other contradiction."""
        return iter(())

    def get_sums(self, block: Any, settings: Floats, memory: Floats, key: str) -> Sums | None:
        """Return a block's sums for a mark, under names that end with `key`; None: means cannot be compared."""
        return None

    def count(self, block: Any, settings: Floats, memory: Floats) -> float | None:
        """Return how many outcomes of a block were learned; None: means cannot be compared."""
        sums = self.get_sums(block, settings, memory, "")
        return None if sums is None else count_outcomes(sums)

    def moved(
        self, block: Any, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        """Yield the signals whose confidence sets before and after a mark are disjoint, mark by mark.

        The last of the marks is now. For each signal and mark a false alarm has probability at most e^-alarm.
        """
        return iter(())

    def list_changes(self, block: Any, settings: Floats, memory: Floats) -> list[FoundChange]:
        """Return the last change of every mean that has changed."""
        return []

    def list_bounds(self, block: Any, settings: Floats, memory: Floats, time: float) -> list[AgedBound]:
        """Return for every action the largest bound of its means that drift, at a time."""
        return []

    def get_newest_time(self, block: Any, settings: Floats, memory: Floats) -> float:
        """Return the time of the newest outcome of means that drift; 0: there is none."""
        return 0.0

    def list_falls(self, block: Any, settings: Floats, memory: Floats) -> list[MeanFall]:
        """Return every action whose means fall from a bucket of a score to a later one, where they are pooled."""
        return []

    def forget(
        self, block: Any, settings: Floats, memory: Floats, index: int, since: float, changed: float = 0.0
    ) -> None:
        """Forget what was learned of a candidate in epochs that began before a time, where there are epochs.

        `changed` is the time of a change that was found in all its means together.
        """

    def get_false_alarms(self, block: Any, settings: Floats) -> float | None:
        """Return the probability of a false alarm of `moved`, where a change is part of the model's own promise."""
        return None

    def restart(self, block: Any, base: Sums | None, now: Sums, key: str) -> Sums | None:
        """Return the sums from which outcomes are compared: `base`, or later where the model has forgotten since."""
        return base

    def fill_estimates(self, block: Any, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        """Write estimates (K,) that are not the centres of intervals; NaN stays where there is none."""

    def count_learned(self, block: Any, features: Floats, memory: Floats, index: int) -> float | None:
        """Return how many outcomes of one candidate were learned; None: candidates are not distinguished."""
        return None

    def forecast(
        self, block: Any, features: Floats, settings: Floats, memory: Floats, arm: int, signal: int
    ) -> UpperForecast | None:
        """Return the upper end of an action by its pulls, if its mean stays; None: the model does not count pulls."""
        return None

    def fill_totals(self, block: Any, settings: Floats, memory: Floats, pulls: Floats, totals: Floats) -> None:
        """Write the number and the signed sum of every action's outcomes, over all contexts."""

    def segments(self, block: Any, memory: Floats) -> tuple[Floats, Floats] | None:
        """Return the numbers (S,) of segments and their statistics by action (S, K, 3); None: no segments."""
        return None


def split_at_marks(marks: Marks, alarms: Sequence[float]) -> Iterator[tuple[Sums, Sums, float]]:
    """Yield the sums before a mark and after it, and the mark's alarm."""
    for mark, alarm in zip(marks[:-1], alarms, strict=True):
        yield mark, subtract_sums(mark, marks[-1]), alarm


def subtract_sums(earlier: Sums | None, later: Sums) -> Sums:
    """Return the sums between two marks."""
    return later if earlier is None else {name: subtract(value, earlier[name]) for name, value in later.items()}


def subtract(later: Any, earlier: Any) -> Any:
    """Return the difference of sums; cells that are new in either had none in the other."""
    if later.ndim == 1:
        size = max(later.size, earlier.size)
        later, earlier = (np.pad(one, (0, size - one.size)) for one in (later, earlier))
    return later - earlier


def count_outcomes(sums: Sums) -> float:
    return sum(float(value) for name, value in sums.items() if name.startswith("outcomes"))


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


HAS, ROUND_SAFE_ACTION = as_python(has_switch), as_python(get_round_safe_action)


def decode_subject(code: int) -> tuple[int, int]:
    """Return the kind of a kernel's contradiction code and its constraint."""
    return (-code - CONTRADICTED) % CONTRADICTION_KINDS, (-code - CONTRADICTED) // CONTRADICTION_KINDS


def build_cause(
    code: int,
    thresholds: Thresholds,
    models: Sequence[Model],
    layout: Ints,
    settings: Floats,
    memory: Floats,
    bounds: Floats,
) -> ReasonDetails:
    """Return the cause of a kernel's code in the thresholds' units; `bounds` are those of the round."""
    constraint, evidence = decode_subject(code)[1], Evidence()  # a model can have no evidence
    for model, block in iter_model_blocks(models, layout, memory):
        signal = 1 + constraint - block.first
        if 0 <= signal < block.signals:
            evidence = model.diagnostics.get_evidence(block, layout, settings, memory, signal)
    if HAS(layout, PER_ROUND_SAFE) and decode_subject(code)[0] == SAFE_COST:
        most = float(ROUND_SAFE_ACTION(layout, settings).costs[constraint])
        return build_contradiction(
            Contradiction.SAFE_COST_OF_A_ROUND, thresholds, constraint,
            declared=thresholds.to_user_unit(constraint, most), outcomes=evidence.outcomes, count=evidence.safe_count,
        )  # fmt: skip
    if HAS(layout, SAFE_COST_DECLARED) and decode_subject(code)[0] == SAFE_COST:
        safe_bounds = bounds[1 + constraint, :, int(layout[SAFE_INDEX])]
        low = float(safe_bounds[CENTRE] - safe_bounds[HALF])
        return build_contradiction(
            Contradiction.SAFE_COST_OF_A_USER, thresholds, constraint,
            declared=thresholds.declared_safe[constraint], found_at=thresholds.to_user_unit(constraint, low),
            count=evidence.safe_count, mean=thresholds.to_user_unit(constraint, evidence.safe_mean),
        )  # fmt: skip
    return build_cause_from_evidence(code, thresholds, get_ceiling(layout, settings, constraint), evidence)


def build_cause_from_evidence(code: int, thresholds: Thresholds, ceiling: float, evidence: Evidence) -> ReasonDetails:
    """Return the cause of a kernel's code in the thresholds' units; the ceiling is signed."""
    (what, j), setting = decode_subject(code), thresholds.bound_name
    if what == MEAN_COST_BOUND:
        bound = thresholds.to_user_unit(j, ceiling)
        return build_contradiction(Contradiction.MEAN_COST_BOUND, thresholds, j, bound=bound, setting=setting)
    if what == NOISE and setting == "mean_cost_bound":
        return build_noise_cause(thresholds, j, evidence)
    if what == SAFE_COST and not math.isnan(thresholds.declared_safe[j]):
        return build_safe_cost_cause(thresholds, j, thresholds.declared_safe[j], evidence)
    if what in (MODEL, NOISE):
        return build_contradiction(Contradiction.NO_LINEAR_MEAN, thresholds, j, setting=setting)
    return build_contradiction(Contradiction.SAFE_ACTION_UNSAFE, thresholds, j, threshold=thresholds.values[j])


def build_noise_cause(thresholds: Thresholds, j: int, evidence: Evidence) -> ReasonDetails:
    """Return the cause: the residuals are larger than the declared noise allows."""
    unit = abs(thresholds.to_user_unit(j, 1.0) - thresholds.to_user_unit(j, 0.0))
    numbers = {"declared": unit * evidence.noise, "outcomes": evidence.outcomes, "needed": unit * evidence.least}
    return build_contradiction(Contradiction.NOISE, thresholds, j, **numbers)


def build_safe_cost_cause(thresholds: Thresholds, j: int, declared: float, evidence: Evidence) -> ReasonDetails:
    """Return the cause: outcomes of the safe action contradict its declared cost."""
    numbers = {"count": evidence.safe_count, "mean": thresholds.to_user_unit(j, evidence.safe_mean)}
    return build_contradiction(Contradiction.SAFE_COST, thresholds, j, declared=declared, **numbers)


def build_contradiction(found: Contradiction, thresholds: Thresholds, constraint: int, **numbers: Any) -> ReasonDetails:
    """Return the cause for a contradicted value of a cost."""
    name, at_most = thresholds.names[constraint], bool(thresholds.signs[constraint] > 0.0)
    return ReasonDetails.of(FallbackReason.ASSUMPTION_CONTRADICTED, found=found, limit=name, at_most=at_most, **numbers)
