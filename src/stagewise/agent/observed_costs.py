"""Sequential tests of reported costs against the limits and the declared costs of the safe action.

A reported cost counts at once; a cost that is not reported yet counts as 0. Learning waits until windows close and
earlier outcomes arrive; these tests do not wait (docs/how-to/check-health.md).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.agent.e_process import BLOCK, EProcess, RowReader
from stagewise.agent.health_findings import Check, Health, HealthFinding, Verdict, format_finding_name
from stagewise.agent.outcome_queue import MISSING, OutcomeQueue
from stagewise.agent.statistics import Statistics
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import PER_ROUND_SAFE, SAFE_INDEX
from stagewise.engine.limits import has_switch
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.contradictions import build_contradiction
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.checks import check_integer
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import Contradiction, ReasonDetails

HAS = as_python(has_switch)
INITIAL_CAPACITY = 1024
SAFE, LIMIT = "safe", "limit"

Values = Sequence[float] | Mapping[int, float]
"""Values by signal, signed as they are learned; NaN values are left out."""


class ObservedCosts:
    """The costs in [0, 1] of an agent's decisions, from the first pending one on, and their tests."""

    def __init__(self, policy: Any, first: int = 0) -> None:
        limits = policy.thresholds
        self.signs = [float(sign) for sign in limits.signs]
        self.limits = [to_unit_cost(value, sign) for value, sign in zip(limits.values, self.signs, strict=True)]
        self.declared = [to_unit_cost(cost, sign) for cost, sign in zip(limits.declared_safe, self.signs, strict=True)]
        if HAS(policy.layout, PER_ROUND_SAFE):  # every round has a safe action of its own
            self.declared = [math.nan] * len(self.signs)
        self.safe_index = int(policy.layout[SAFE_INDEX])
        self.tests = {(LIMIT, j): EProcess(FALSE_ALARMS, first) for j in range(len(self.signs))}
        self.tests |= {(SAFE, j): EProcess(FALSE_ALARMS, first) for j, cost in enumerate(self.declared) if cost == cost}
        self.base, self.end = first - first % BLOCK, first
        self.costs = np.zeros((INITIAL_CAPACITY, len(self.signs)))
        self.safe = np.zeros(INITIAL_CAPACITY, dtype=bool)

    def add(self, round_: int, index: int, outcome_queue: OutcomeQueue) -> None:
        """Add a decision whose costs are not reported yet."""
        if round_ - self.base >= len(self.safe):
            self._make_room(outcome_queue)
        self.safe[round_ - self.base] = index == self.safe_index
        self.end = round_ + 1

    def observe(self, round_: int, values: Values, given: Iterable[int]) -> bool:
        """Add reported signals of a decision; return whether they reject a test."""
        rejected = False
        for k in given:
            if k:
                cost = values[k] if self.signs[k - 1] > 0.0 else 1.0 + values[k]
                if cost != 0.0:  # a missing cost counts as 0
                    rejected |= self._put(round_, k - 1, cost)
        return rejected

    def drop(self, round_: int, signals: Sequence[int]) -> bool:
        """Exclude signals of a decision that will not arrive; return whether that rejects a test."""
        return self.observe(round_, dict.fromkeys(signals, math.nan), signals)

    def give_up(self, outcome_queue: OutcomeQueue, before: int) -> bool:
        """Exclude all signals missing before a round; return whether that rejects a test."""
        signals, rejected = range(len(outcome_queue.names)), False
        for round_ in [r for r in outcome_queue.open if r < before]:
            rejected |= self.drop(round_, signals)
        for round_, row in [(r, row) for r, row in outcome_queue.rows.items() if r < before]:
            rejected |= self.drop(round_, [k for k in signals if row.status[k] == MISSING])
        return rejected

    def _put(self, round_: int, j: int, cost: float) -> bool:
        """Store a cost and update its tests; a NaN cost does not count."""
        row = round_ - self.base
        if row < 0:
            return False
        self.costs[row, j] = cost
        rejected = self._check(LIMIT, j, round_, cost, self.limits[j])
        if self.safe[row] and (SAFE, j) in self.tests:
            rejected |= self._check(SAFE, j, round_, cost, self.declared[j])
        return rejected

    def _check(self, kind: str, j: int, round_: int, cost: float, limit: float) -> bool:
        test = self.tests[kind, j]
        if test.rejection is not None or round_ < test.first:
            return False
        test.raise_values(round_, round_ + 1, math.inf if limit <= 0.0 else limit if cost != cost else cost)
        return test.check(self.build_row_reader(kind, j), self.end)

    def build_row_reader(self, kind: str, j: int) -> RowReader:
        """Return the function that reads the rows of a test."""
        limit = self.limits[j] if kind == LIMIT else self.declared[j]

        def rows(start: int, end: int) -> tuple[Floats, Floats]:
            part = slice(start - self.base, end - self.base)
            costs = self.costs[part, j] if kind == LIMIT else np.where(self.safe[part], self.costs[part, j], math.nan)
            return costs, np.full(end - start, limit)

        return rows

    def _make_room(self, outcome_queue: OutcomeQueue) -> None:
        """Drop blocks whose outcomes are complete, and enlarge the table if that is not enough."""
        first_pending = min([*outcome_queue.open, *outcome_queue.rows], default=self.end)
        for (kind, j), test in self.tests.items():
            test.settle(self.build_row_reader(kind, j), first_pending, self.end)
        low = max(first_pending - first_pending % BLOCK, self.base)
        count, capacity = self.end - low, len(self.safe)
        while count >= capacity // 2:
            capacity *= 2
        start = low - self.base
        costs, safe = np.zeros((capacity, len(self.signs))), np.zeros(capacity, dtype=bool)
        costs[:count], safe[:count] = self.costs[start : start + count], self.safe[start : start + count]
        self.costs, self.safe, self.base = costs, safe, low

    def summarize(self, kind: str, j: int) -> tuple[int, float]:
        """Return the number of decisions and the mean of their reported costs, a lower bound of the final mean."""
        if (kind, j) not in self.tests:
            return 0, 0.0
        count, total = self.tests[kind, j].count_and_total(self.build_row_reader(kind, j), self.end)
        return count, total / max(count, 1)

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

    def clone(self) -> "ObservedCosts":
        """Return an independent copy."""
        other = ObservedCosts.__new__(ObservedCosts)
        vars(other).update(vars(self))
        other.costs, other.safe = self.costs.copy(), self.safe.copy()
        other.tests = {key: test.clone() for key, test in self.tests.items()}
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return the costs that are not 0 and the tests as JSON holds them."""
        count = self.end - self.base
        nonzero = np.flatnonzero((self.costs[:count] != 0.0).any(axis=1)).tolist()
        return {
            "base": self.base,
            "safe": np.flatnonzero(self.safe[:count]).tolist(),
            "costs": {str(i): [None if c != c else c for c in self.costs[i].tolist()] for i in nonzero},
            "tests": [[kind, j, *test.to_list()] for (kind, j), test in self.tests.items()],
        }

    @classmethod
    def from_dict(cls, policy: Any, content: Any, end: int) -> "ObservedCosts":
        """Return the costs that `to_dict` wrote of the rounds before `end`, checked."""
        observed = cls(policy)
        base = check_integer(content["base"], "base", f"from 0 to {end}", 0, end)
        if base % BLOCK:
            raise InvalidProblem(
                ErrorCode.FILE_CORRUPT, "base is {base}; it must be a multiple of {block}", base=base, block=BLOCK
            )
        count = end - base
        observed.base, observed.end = base, end
        capacity, rule = max(INITIAL_CAPACITY, 2 * count), f"from 0 to {count - 1}"
        observed.costs, observed.safe = np.zeros((capacity, len(observed.signs))), np.zeros(capacity, dtype=bool)
        observed.safe[[check_integer(i, "a round", rule, 0, count - 1) for i in content["safe"]]] = True
        for i, costs in content["costs"].items():
            row = np.array([math.nan if cost is None else float(cost) for cost in costs])
            if row.shape != (len(observed.signs),) or (row < 0.0).any() or (row > 1.0).any():
                raise InvalidProblem(
                    ErrorCode.FILE_CORRUPT,
                    "the stored costs of a round are {costs!r}; there must be one in [0, 1] for each limit",
                    costs=costs,
                )
            observed.costs[check_integer(int(i), "a round", rule, 0, count - 1)] = row
        tests = {(str(kind), int(j)): numbers for kind, j, *numbers in content["tests"]}
        for key, test in observed.tests.items():
            test.restore(tests[key])
            if not base <= test.base * BLOCK <= end or not test.is_valid:
                raise InvalidProblem(ErrorCode.FILE_CORRUPT, "a stored test does not match its rounds")
        return observed


def to_unit_cost(value: float, sign: float) -> float:
    """Return a limit or a declared cost as a cost in [0, 1], smaller is better."""
    return float(value if sign > 0.0 else 1.0 - value)


def build_observed_costs(policy: BasePolicy | None, first: int = 0) -> ObservedCosts | None:
    """Return the tests of an agent's costs; None if their range is not declared or there are no limits."""
    has_range = policy is not None and policy.has_parts and getattr(policy, "requires_unit_range", False)
    return ObservedCosts(policy, first) if has_range and policy is not None and policy.thresholds.names else None


def format_safe_cost_name(policy: Any, j: int) -> str:
    """Return the name of the finding about the safe action's declared cost."""
    return format_finding_name(Check.SAFE_COST, policy.thresholds.names[j])


def format_limit_name(policy: Any, j: int) -> str:
    """Return the name of the finding about a limit."""
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


def add_observed_costs(
    policy: Any, findings: Sequence[HealthFinding], reported: Mapping[str, tuple[int, float]]
) -> list[HealthFinding]:
    """Add the reported costs to the findings about the safe action's costs.

    Args:
        policy: The policy.
        findings: The findings of `check_health`.
        reported: By limit, the number of decisions for the safe action and the mean of their reported costs in [0, 1].
    """
    return [
        add_observed_cost(policy, one, policy.thresholds.names.index(one.signal), reported.get(one.signal, (0, 0.0)))
        if one.check is Check.SAFE_COST and one.verdict in (Verdict.FINE, Verdict.UNKNOWN) and one.signal is not None
        else one
        for one in findings
    ]


def add_observed_cost(policy: Any, finding: HealthFinding, j: int, reported: tuple[int, float]) -> HealthFinding:
    """Add the reported costs to a finding about the safe action's cost, if any is reported."""
    limits, (count, mean) = policy.display_thresholds, reported
    if not count or mean == 0.0 or math.isnan(limits.declared_safe[j]):
        return finding
    sign = float(limits.signs[j])
    details = {
        **finding.details,
        "declared": float(limits.declared_safe[j]),
        "at_most": sign > 0.0,
        "reported_count": count,
        "reported_mean": to_user_units(policy, j, mean),
    }
    if finding.verdict is Verdict.UNKNOWN:
        details["exceeds_declared"] = bool(mean > to_unit_cost(policy.thresholds.declared_safe[j], sign))
    return finding._replace(details=details)


def add_observed_health(policy: Any, health: Health, observed: ObservedCosts | None) -> Health:
    """Add the tests of reported costs to an agent's findings."""
    if observed is None:
        return health
    rejected = observed.find_rejected(policy)
    findings = [
        one._replace(verdict=Verdict.CONTRADICTED, details=rejected[one.name].details)
        if one.name in rejected and one.verdict in (Verdict.FINE, Verdict.UNKNOWN)
        else one
        for one in health
    ]
    reported = {name: observed.summarize(SAFE, j) for j, name in enumerate(policy.thresholds.names)}
    return Health(add_observed_costs(policy, findings, reported))
