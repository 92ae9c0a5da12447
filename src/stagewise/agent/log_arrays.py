"""Logs given as arrays."""

from typing import Any

from stagewise.policies.policy import BasePolicy
from stagewise.problem.checks import as_array, check_outcome_array, is_listing, list_entries
from stagewise.problem.columns import get_named_values
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import safe_repr


def parse_log(policy: BasePolicy, features: Any, rewards: Any, costs: Any) -> tuple[Any, list[Any]]:
    """Return the actions of a log and the values (1 + m,) of each row, or raise."""
    actions, checked_rewards = policy.check_logged_actions(features), check_outcome_array(rewards, "the logged rewards")
    if checked_rewards.shape != (len(actions),):
        raise InvalidOutcome(
            ErrorCode.WRONG_SHAPE,
            "the logged rewards have shape {shape}; there must be one for each of {actions_count}",
            shape=checked_rewards.shape,
            actions_count=len(actions),
        )
    rows, values = split_cost_rows(costs, len(actions)), []
    if len(rows) != len(actions):
        raise InvalidOutcome(
            ErrorCode.WRONG_SHAPE,
            "there are {rows_count} logged costs; there must be one row for each of {actions_count}",
            rows_count=len(rows),
            actions_count=len(actions),
        )
    for i, row in enumerate(rows):
        try:
            values.append(policy.values(float(checked_rewards[i]), row))
        except InvalidOutcome as error:
            raise InvalidOutcome(ErrorCode.INVALID_ROW, "row {i} of the log: {error}", i=i, error=error) from None
    return actions, values


def split_cost_rows(costs: Any, count: int) -> list[Any]:
    """Return the logged costs row by row; a mapping or a data frame has a column for each limit."""
    if costs is None:
        return [None] * count
    by_name = get_named_values(costs, "the logged costs")
    if by_name is not None:
        if not all(is_listing(column) for column in by_name.values()):
            raise InvalidOutcome(
                ErrorCode.WRONG_SHAPE, "the logged costs map a name to a number; give one list for each name"
            )
        columns = {name: list_entries(column, "a logged cost", InvalidOutcome) for name, column in by_name.items()}
        if any(len(column) != count for column in columns.values()):
            raise InvalidOutcome(
                ErrorCode.WRONG_SHAPE,
                "the columns of the logged costs differ in length from the {count} logged actions",
                count=count,
            )
        return [{name: column[i] for name, column in columns.items()} for i in range(count)]
    if not is_listing(costs):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "the logged costs are {costs}; there must be one row of costs for each logged action",
            costs=safe_repr(costs),
        )
    return list(costs) if isinstance(costs, list | tuple) else list(as_array(costs, "the logged costs", InvalidOutcome))
