"""Diagnostics: compare a model's assumptions with the data. What a model's diagnostics do not cover is not tested."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.limits import ALARM

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
