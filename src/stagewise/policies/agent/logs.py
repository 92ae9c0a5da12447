"""Logged data, given as arrays: what was played, and the values that it is learned from."""

from typing import Any

from stagewise.policies.learning import Learning
from stagewise.problem.checks import as_array, entries_of, is_listing, outcomes, shown
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.tables import named


def log_of(policy: Learning, features: Any, rewards: Any, costs: Any) -> tuple[Any, list[Any]]:
    """Return the actions of a log and the values (1 + m,) of each row, or refuse it."""
    actions, seen = policy.logged(features), outcomes(rewards, "the logged rewards")
    if seen.shape != (len(actions),):
        raise InvalidOutcome(f"the logged rewards have shape {seen.shape}; they must be one for each of {len(actions)}")
    rows, values = rows_of(costs, len(actions)), []
    if len(rows) != len(actions):
        raise InvalidOutcome(f"there are {len(rows)} logged costs; they must be one row for each of {len(actions)}")
    for i, row in enumerate(rows):
        try:
            values.append(policy.values(float(seen[i]), row))
        except InvalidOutcome as error:
            raise InvalidOutcome(f"row {i} of the log: {error}") from None
    return actions, values


def rows_of(costs: Any, count: int) -> list[Any]:
    """Return the logged costs row by row; a mapping or a data frame holds a column for each constraint."""
    if costs is None:
        return [None] * count
    by_name = named(costs, "the logged costs")
    if by_name is not None:
        if not all(is_listing(column) for column in by_name.values()):
            raise InvalidOutcome("the logged costs hold a number where a column belongs; give one list for each name")
        columns = {name: entries_of(column, "a logged cost", InvalidOutcome) for name, column in by_name.items()}
        if any(len(column) != count for column in columns.values()):
            raise InvalidOutcome(f"the logged costs have columns of other lengths than the {count} logged actions")
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]
    if not is_listing(costs):
        raise InvalidOutcome(
            f"the logged costs are {shown(costs)}; they must be one row of costs for each logged action"
        )
    return list(costs) if isinstance(costs, list | tuple) else list(as_array(costs, "the logged costs", InvalidOutcome))
