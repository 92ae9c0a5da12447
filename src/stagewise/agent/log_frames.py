"""Logs given as data frames: columns by name, each checked as a whole."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.problem_frames import read_problem_actions, read_problem_values
from stagewise.engine.compile import Floats, Ints
from stagewise.files.tables import read_table
from stagewise.policies.policy import BasePolicy
from stagewise.problem.checks import check_mapping, is_listing
from stagewise.problem.columns import (
    NOTHINGS,
    find_missing_rows,
    get_column,
    get_numeric_column,
    list_names_once,
    list_unique_names,
    read_columns,
    suggest_column,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr


class LogRows(NamedTuple):
    """A log as it is learned."""

    actions: Floats | Ints  # (n, d) or (n,), as the policy's `logged` returns them
    values: Floats  # (n, 1 + m) rewards and signed costs


class ColumnNames(NamedTuple):
    """The columns of a frame."""

    reward: Hashable | None
    action: Hashable | None
    costs: Any
    context: Any
    names: Any


def read_rows(policy: Any, frame: Any, asked: ColumnNames) -> LogRows | None:
    """Return the rows of a frame, or raise; None if it has none."""
    columns = read_table(frame) if isinstance(frame, str | Path) else read_columns(frame)
    if policy.problem is not None:
        if asked.names is not None:
            raise InvalidActions(
                ErrorCode.UNUSED_SETTING,
                "names is {names}; leave it out, since the actions of a problem have names",
                names=safe_repr(asked.names),
            )
        played = read_problem_actions(policy, columns, asked.action, asked.context)
        outcomes = read_problem_values(policy, columns, asked.reward, asked.costs)
        return LogRows(played, outcomes) if len(played) else None
    if asked.reward is None:
        raise InvalidOutcome(ErrorCode.MISSING_VALUE, "reward is missing; give the name of the reward column")
    rewards = get_numeric_column(columns, asked.reward, "reward")
    word = "costs" if asked.costs is not None else "costs, left out,"
    costs = [get_numeric_column(columns, name, word) for name in find_cost_columns(policy, asked.costs)]
    given = read_actions(policy, columns, asked)
    if not len(rewards):
        return None
    actions = policy.check_logged_actions(given)
    values = np.column_stack([rewards, *costs])
    check_ranges(policy, values)
    values[:, 1:] *= policy.thresholds.signs
    return LogRows(actions, values)


def find_cost_columns(policy: BasePolicy, costs: Any) -> list[Any]:
    """Return the column of each limit, in the order of the limits; matched by name, never by position."""
    names = policy.thresholds.names
    if costs is None:
        return list(names)
    if not names:
        raise InvalidProblem(
            ErrorCode.UNUSED_SETTING,
            "costs is {costs}; leave it out, since this policy has no limits",
            costs=safe_repr(costs),
        )
    if isinstance(costs, Mapping):
        given = check_mapping(costs, "costs", InvalidOutcome)
        if set(given) != set(names):
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_SIGNAL,
                "costs names {given}; the limits are {names}",
                given=safe_repr(list(given)),
                names=safe_repr(list(names)),
            )
        return [given[name] for name in names]
    if len(names) == 1 and not is_listing(costs):
        return [costs]
    listed = list_names_once(costs)
    if len(names) == len(listed) == 1:
        return listed
    if not listed or set(listed) != set(names):
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "costs is {costs}; it must map each limit, {names}, to its column, since a list could be in another order",
            costs=safe_repr(costs),
            names=safe_repr(list(names)),
        )
    return list(names)


def read_actions(policy: BasePolicy, columns: Mapping[Any, Any], asked: ColumnNames) -> Any:
    """Return the played actions: arms (n,) from one column, or features (n, d) from several."""
    safe: Any = getattr(policy, "safe_action", None)
    arms = hasattr(policy, "arms") or (safe is not None and safe.arm is not None)
    if arms and (asked.action is None or asked.context is not None):
        raise InvalidActions(
            ErrorCode.CONFLICTING_SETTINGS,
            "action is {action} and context is {context}; this policy chooses among arms, so give "
            "the column of the played arm (action=...) and no context",
            action=safe_repr(asked.action),
            context=safe_repr(asked.context),
        )
    if arms:
        return read_arms(policy, columns, asked.action, asked.names)
    if asked.context is None or asked.action is not None or asked.names is not None:
        raise InvalidActions(
            ErrorCode.CONFLICTING_SETTINGS,
            "action is {action} and context is {context}; this policy learns from features, so list "
            "the feature columns in order (context=[...]) and give no action",
            action=safe_repr(asked.action),
            context=safe_repr(asked.context),
        )
    listed = [asked.context] if isinstance(asked.context, str) else list_names_once(asked.context)
    if not listed:
        raise InvalidActions(
            ErrorCode.WRONG_TYPE,
            "context is {context}; it must list every feature column once",
            context=safe_repr(asked.context),
        )
    features = [get_numeric_column(columns, name, "context", InvalidActions) for name in listed]
    return np.column_stack(features)


def read_arms(policy: BasePolicy, columns: Mapping[Any, Any], name: Any, names: Any) -> Ints:
    """Return the arms (n,) of a column, given by index or by name."""
    column, at = get_column(columns, name, "action", InvalidActions), f"the column {safe_repr(name)}"
    if names is not None:
        return match_arm_names(column, at, check_arm_names(policy, names))
    if column.size and column.dtype.kind not in "iu":
        raise InvalidActions(
            ErrorCode.COLUMN_WRONG_TYPE,
            "{at} holds {column}, of type {dtype}; it must hold arm indices from 0, or give "
            "names=[...], the names of all arms in order",
            at=at,
            column=safe_repr(column.tolist()[0]),
            dtype=column.dtype,
        )
    for row in {int(column.argmin()), int(column.argmax())} if column.size else ():
        try:
            policy.check_logged_actions(column[row : row + 1])
        except InvalidActions as error:
            raise InvalidActions(
                ErrorCode.INVALID_ROW,
                "{at} holds {column} in row {row}: {error}",
                at=at,
                column=column[row],
                row=row,
                error=error,
            ) from None
    return column.astype(np.int64)


def check_arm_names(policy: BasePolicy, names: Any) -> list[Any]:
    """Return the name of every arm."""
    listed = list_names_once(names)
    count = getattr(policy, "arms", max(len(listed), 1))
    if len(listed) != count:
        raise InvalidActions(
            ErrorCode.WRONG_TYPE,
            "names is {names}; it must list the names of {count} arms in order, each once",
            names=safe_repr(names),
            count=count,
        )
    return listed


def match_arm_names(column: Any, at: str, names: list[Any]) -> Ints:
    """Return the arms (n,) whose names a column holds."""
    labels = column.tolist()
    absent = np.array([type(label).__name__ in NOTHINGS for label in labels], dtype=np.bool_)
    if absent.any():
        raise InvalidActions(ErrorCode.MISSING_VALUE, "{problem}", problem=find_missing_rows(at, absent))
    arms = {label: arm for arm, label in enumerate(names)}
    list_unique_names(labels, at, InvalidActions)
    matched = [arms.get(label) for label in labels]
    if None in matched:
        row = matched.index(None)
        raise InvalidActions(
            ErrorCode.UNKNOWN_ACTION,
            "{at} holds {labels} in row {row}, which is not an action{labels_2}; the actions are {names}",
            at=at,
            labels=safe_repr(labels[row]),
            row=row,
            labels_2=suggest_column(labels[row], names),
            names=safe_repr(names),
        )
    return np.array(matched, dtype=np.int64)


def check_ranges(policy: BasePolicy, outcomes: Floats) -> None:
    """Raise if the policy would reject one of the outcomes (n, 1 + m), in the user's direction.

    A policy restricts each signal to a range (`BasePolicy.values`), so the rows with the smallest and largest value of
    each signal are enough.
    """
    ends = np.concatenate([outcomes.argmin(axis=0), outcomes.argmax(axis=0)])
    for row in sorted({int(end) for end in ends}):
        reward, *costs = outcomes[row].tolist()
        try:
            policy.values(reward, costs)
        except InvalidOutcome as error:
            raise InvalidOutcome(
                ErrorCode.INVALID_ROW, "row {row} of the frame: {error}", row=row, error=error
            ) from None
