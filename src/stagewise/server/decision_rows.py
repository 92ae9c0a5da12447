"""The fields of decision rows that statistics count: actions, bounds and policy choices."""

from collections.abc import Iterator

from stagewise.policies.problem import Problem
from stagewise.server.decide import DecisionRecord, PolicyChoice

TOLERANCE = 1e-9  # an excess below this fraction of the limit is rounding


def exceeds_limit(value: float, threshold: float, at_most: bool) -> bool:
    """Return whether a value violates a limit, beyond rounding.

    >>> exceeds_limit(0.03, 0.02, True), exceeds_limit(0.02, 0.02, True), exceeds_limit(3.9, 4.0, False)
    (True, False, True)
    """
    over = value - threshold if at_most else threshold - value
    return over > TOLERANCE * max(abs(threshold), TOLERANCE)


def is_safe_cost_unknown(row: DecisionRecord | PolicyChoice, name: str, problem: Problem | None) -> bool:
    """Return whether a bound violates its limit because the safe action's cost is still being learned.

    This happens if that cost was not declared: only the safe action is served until it is known well enough.
    """
    limit = None if problem is None else problem.limits.get(name)
    if problem is None or limit is None or limit.safe is not None or row.probabilities.get(problem.safe, 0.0) < 1.0:
        return False
    pessimistic_cost, threshold = row.limits[name].pessimistic_cost, row.limits[name].threshold
    return pessimistic_cost is None or exceeds_limit(pessimistic_cost, threshold, not limit.at_least)


def iter_pessimistic_costs(row: DecisionRecord | PolicyChoice, problem: Problem | None) -> Iterator[tuple[str, float]]:
    """Yield the pessimistic cost of a row for each limit, except while the safe cost is unknown."""
    for name, bounds in row.limits.items():
        if bounds.pessimistic_cost is not None and not is_safe_cost_unknown(row, name, problem):
            yield name, bounds.pessimistic_cost


def is_exploring(row: DecisionRecord, safe: str) -> bool:
    """Return whether the served action is neither the safe one nor the most probable one."""
    if row.action == safe or not row.probabilities:
        return False
    return row.probabilities.get(row.action, 0.0) < max(row.probabilities.values())
