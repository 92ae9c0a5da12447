"""Sequential tests of reported costs against the limits and the declared costs of the safe action.

A reported cost counts at once; a cost that is not reported yet counts as 0. Learning waits until windows close and
earlier outcomes arrive; these tests do not wait (docs/how-to/check-health.md). Where a change of one action was found,
that action is held back from then on; it explains what earlier decisions cost, so only later ones are tested.
"""

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np

from stagewise.agent.agent_statistics import Statistics
from stagewise.agent.e_process import EProcess, RowReader
from stagewise.agent.health_findings import Check, format_finding_name
from stagewise.agent.outcome_queue import BLOCK, DROPPED, OutcomeQueue
from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import PER_ROUND_SAFE, SAFE_INDEX
from stagewise.engine.workspace import has_switch
from stagewise.models.diagnostics import build_contradiction
from stagewise.policies.policy import BasePolicy
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import Contradiction, ReasonDetails

HAS = as_python(has_switch)
SAFE, LIMIT = "safe", "limit"


class CostTests:
    """Sequential tests of the reported costs in an outcome queue: of limits, and of declared costs of the safe action.

    Costs, limits and declared costs are in [0, 1], and less is better; a declared cost that is NaN is not tested.
    """

    def __init__(
        self,
        queue: OutcomeQueue,
        signs: Sequence[float],
        limits: Sequence[float],
        declared: Sequence[float],
        safe_index: int,
        level: float,
    ) -> None:
        self.queue, self.signs, self.limits, self.declared = queue, signs, limits, declared
        self.safe_index, self.level = safe_index, level
        self.limit_changes: list[tuple[int, list[float]]] = []  # the first decisions and the limits of each version
        self.nothing = [0.0 if sign > 0.0 else -1.0 for sign in signs]  # the outcomes that mean no cost
        self.tests = {(LIMIT, j): EProcess(level, queue.end) for j in range(len(signs))}
        self.tests |= {(SAFE, j): EProcess(FALSE_ALARMS, queue.end) for j, c in enumerate(declared) if c == c}

    def read_costs(self, j: int, start: int, end: int) -> Floats:
        """Return the reported costs of decisions, 0 where none is reported; NaN: dropped."""
        queue = self.queue
        rows = slice(start - queue.base, end - queue.base)
        status, values = queue.status[rows, 1 + j], queue.values[rows, 1 + j]
        is_reported = (status % 2 == 1) & (queue.deferred[rows] == 0)
        costs: Floats = np.where(is_reported, values if self.signs[j] > 0.0 else 1.0 + values, 0.0)
        costs[status == DROPPED] = math.nan
        return costs

    def observe(self, index: int, signals: Iterable[int]) -> bool:
        """Test signals of a decision that were just reported or dropped; return whether they reject a test."""
        queue, row, rejected = self.queue, index - self.queue.base, False
        if row < 0:
            return False
        status, values = queue.status[row].tolist(), queue.values[row].tolist()
        for signal in signals:  # as `read_costs`, for one row
            j, cost = signal - 1, 0.0
            if j >= 0 and status[signal] == DROPPED:
                cost = math.nan
            elif j >= 0 and status[signal] % 2 == 1 and not queue.deferred.item(row):
                cost = values[signal] if self.signs[j] > 0.0 else 1.0 + values[signal]
            if cost == 0.0:  # it counted as 0 already
                continue
            rejected |= self._check(LIMIT, j, index, cost)
            if (SAFE, j) in self.tests and queue.rows[row, 0] == self.safe_index:
                rejected |= self._check(SAFE, j, index, cost)
        return rejected

    def observe_whole(self, index: int, values: Floats) -> bool:
        """Test a decision whose signals (1 + m,) were all just reported; return whether they reject a test."""
        return values.tolist()[1:] != self.nothing and self.observe(index, self.queue.signals)  # else it counted as 0

    def observe_rows(self, indices: Ints, signal: int) -> bool:
        """Note that one signal of decisions was just reported or dropped; return whether `check` has to test them."""
        j = signal - 1
        if j < 0 or not indices.size:
            return False
        if indices.size == 1:
            return self.observe(int(indices[0]), (signal,))
        start, end = int(indices.min()), int(indices.max()) + 1
        changed = indices[self.read_costs(j, start, end)[indices - start] != 0.0]
        for kind in (LIMIT, SAFE) if changed.size else ():  # other costs counted as 0 already
            if (kind, j) in self.tests:
                self.tests[kind, j].invalidate(changed)
        return bool(changed.size)

    def check(self) -> bool:
        """Return whether a test rejects, after `observe_rows`."""
        rejected = [test.check(self._build_row_reader(*key), self.queue.end) for key, test in self.tests.items()]
        return any(rejected)

    def _check(self, kind: str, j: int, index: int, cost: float) -> bool:
        test = self.tests[kind, j]
        if test.rejection is not None or index < test.first:
            return False
        limits = [self.declared[j]]
        if kind == LIMIT:
            limits = [self.limits[j], *(values[j] for _, values in self.limit_changes)]
        rise = math.inf if min(limits) <= 0.0 else max(limits) if cost != cost else cost
        test.raise_values(index, index + 1, rise)
        return test.check(self._build_row_reader(kind, j), self.queue.end)

    def _build_row_reader(self, kind: str, j: int) -> RowReader:

        def rows(start: int, end: int) -> tuple[Floats, Floats]:
            costs = self.read_costs(j, start, end)
            if kind == LIMIT:
                return costs, self._get_limits(j, start, end)
            played = self.queue.rows[start - self.queue.base : end - self.queue.base, 0]
            return np.where(played == self.safe_index, costs, math.nan), np.full(end - start, self.declared[j])

        return rows

    def _get_limits(self, j: int, start: int, end: int) -> Floats:
        """Return the limit of each decision at the time it was made."""
        if not self.limit_changes:
            return np.full(end - start, self.limits[j])
        versions = np.searchsorted([first for first, _ in self.limit_changes], np.arange(start, end), side="right") - 1
        return np.array([limits[j] for _, limits in self.limit_changes])[versions]

    def begin_anew(self, j: int) -> None:
        """Test a limit from the next decision on, whatever came before."""
        self.tests[LIMIT, j] = EProcess(self.tests[LIMIT, j].level, self.queue.end)

    def settle(self) -> None:
        """Let the tests keep the sums of decisions that are over, so that the queue may leave out their rows."""
        for (kind, j), test in self.tests.items():
            test.settle(self._build_row_reader(kind, j), self.queue.oldest, self.queue.end)

    def summarize(self, kind: str, j: int) -> tuple[int, float]:
        """Return the number of decisions and the mean of their reported costs, a lower bound of the final mean."""
        if (kind, j) not in self.tests:
            return 0, 0.0
        count, total = self.tests[kind, j].count_and_total(self._build_row_reader(kind, j), self.queue.end)
        return count, total / max(count, 1)

    def to_list(self) -> list[Any]:
        return [[kind, j, *test.to_list()] for (kind, j), test in self.tests.items()]

    def restore(self, content: Any) -> None:
        """Restore the tests that `to_list` wrote."""
        stored = {(str(kind), int(j)): numbers for kind, j, *numbers in content}
        for key, test in self.tests.items():
            test.restore(stored[key])
            if not self.queue.base <= test.base * BLOCK <= self.queue.end or not test.is_valid:
                raise InvalidProblem(ErrorCode.FILE_CORRUPT, "a stored test does not match its rounds")


class ObservedCosts(CostTests):
    """The tests of an agent's reported costs."""

    def __init__(self, policy: Any, queue: OutcomeQueue) -> None:
        limits, declared = to_unit_costs(policy)
        if HAS(policy.layout, PER_ROUND_SAFE):  # every round has a safe action of its own
            declared = [math.nan] * len(limits)
        signs = policy.thresholds.signs.tolist()
        super().__init__(queue, signs, limits, declared, int(policy.layout[SAFE_INDEX]), FALSE_ALARMS)

    def find_rejected(self, policy: Any) -> dict[str, ReasonDetails]:
        """Return the causes of the rejected tests, by the name of the finding."""
        found = {}
        for (kind, j), test in self.tests.items():
            if test.rejection is not None:
                count, total = test.rejection
                name, cause = (
                    (format_safe_cost_name, build_safe_cost_cause)
                    if kind == SAFE
                    else (format_limit_name, build_limit_cause)
                )
                found[name(policy, j)] = cause(policy, j, count, total / count)
        return found

    def record_alerts(self, policy: Any, statistics: Statistics) -> None:
        """Record an alert for each rejected test, unless check_assumptions=False."""
        if getattr(policy, "check_assumptions", False):
            for name, cause in self.find_rejected(policy).items():
                statistics.alerts.setdefault(name, cause)

    def begin_anew_after_changes(self, policy: Any, statistics: Statistics) -> None:
        """Test limits from the next decision on if a change of one action explains what their decisions cost."""
        for name in statistics.changed:
            j = policy.thresholds.names.index(name)
            self.begin_anew(j)
            statistics.alerts.pop(format_limit_name(policy, j), None)
        statistics.changed = set()

    def clone(self, queue: OutcomeQueue) -> "ObservedCosts":
        """Return an independent copy that reads another queue."""
        other = copy(self)
        other.queue, other.tests = queue, {key: test.clone() for key, test in self.tests.items()}
        return other


def to_unit_cost(value: float, sign: float) -> float:
    """Return a limit or a declared cost as a cost in [0, 1], smaller is better."""
    return float(value if sign > 0.0 else 1.0 - value)


def to_unit_costs(policy: Any) -> tuple[list[float], list[float]]:
    """Return the limits and the declared costs of the safe action as costs in [0, 1]; NaN: none is declared."""
    given = policy.thresholds
    limits = [to_unit_cost(value, sign) for value, sign in zip(given.values, given.signs, strict=True)]
    return limits, [to_unit_cost(cost, sign) for cost, sign in zip(given.declared_safe, given.signs, strict=True)]


def build_observed_costs(policy: BasePolicy, queue: OutcomeQueue) -> ObservedCosts | None:
    """Return the tests of an agent's costs; None if their range is not declared or there are no limits."""
    has_range = policy.has_parts and policy.requires_unit_range
    return ObservedCosts(policy, queue) if has_range and policy.thresholds.names else None


def format_safe_cost_name(policy: Any, j: int) -> str:
    """Return the name of the finding about the safe action's declared cost."""
    return format_finding_name(Check.SAFE_COST, policy.thresholds.names[j])


def format_limit_name(policy: Any, j: int) -> str:
    return format_finding_name(Check.LIMIT, policy.thresholds.names[j])


def to_user_units(policy: Any, j: int, mean: float) -> float:
    """Return a mean of costs in [0, 1] in the user's units."""
    return float(policy.to_user_units(1 + j, mean if policy.thresholds.signs[j] > 0.0 else mean - 1.0))


def build_safe_cost_cause(policy: Any, j: int, count: float, mean: float) -> ReasonDetails:
    """Return the cause that reported costs reject the safe action's declared cost."""
    limits, mean = policy.display_thresholds, to_user_units(policy, j, mean)
    declared = limits.declared_safe[j]
    return build_contradiction(Contradiction.SAFE_COST_SO_FAR, limits, j, declared=declared, count=count, mean=mean)


def build_limit_cause(policy: Any, j: int, count: float, mean: float) -> ReasonDetails:
    """Return the cause that reported costs violate a limit."""
    limits, mean = policy.display_thresholds, to_user_units(policy, j, mean)
    threshold = limits.values[j]
    return build_contradiction(Contradiction.LIMIT_SO_FAR, limits, j, threshold=threshold, count=count, mean=mean)
