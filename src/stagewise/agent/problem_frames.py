"""Data frames as logs of a problem: every column has the name that the problem declares."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.policies.context_encoder import build_rows
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.checks import check_mapping
from stagewise.problem.columns import get_column, get_numeric_column, list_unique_names, map_unique
from stagewise.problem.context import check_segment_name, describe_range_error, hash_segment
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.problem.signals import Limit, Reward, scale_outcome


def map_columns(given: Any, names: Any, what: str) -> dict[str, Any]:
    """Return the column of every name; by default its own."""
    mapping: dict[str, Any] | None = {} if given is None else None
    if isinstance(given, Mapping):
        mapping = check_mapping(given, what, InvalidOutcome)
    if mapping is None:
        raise InvalidOutcome(
            ErrorCode.WRONG_TYPE,
            "{what} is {given}; it must be a mapping from the problem's names to columns, or None",
            what=what,
            given=safe_repr(given),
        )
    for name in mapping:
        if name not in names:
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_NAME,
                "{what} has {name}, which the problem does not declare; it declares {names}{name_2}",
                what=what,
                name=safe_repr(name),
                names=safe_repr(list(names)),
                name_2=suggest_name(name, names),
            )
    columns = {name: mapping.get(name, name) for name in names}
    twice = [column for column in columns.values() if list(columns.values()).count(column) > 1]
    if twice:
        raise InvalidOutcome(
            ErrorCode.DUPLICATE_NAME,
            "{what} maps two names to the column {twice}; every name needs its own column",
            what=what,
            twice=safe_repr(twice[0]),
        )
    return columns


def read_problem_values(policy: ProblemPolicy, columns: Mapping[Any, Any], reward: Any, costs: Any) -> Floats:
    """Return the values (n, 1 + m) of all rows, scaled and signed."""
    problem, signs = policy.problem, np.concatenate([[1.0], policy.thresholds.signs])
    mapping = {problem.reward.name: problem.reward.name if reward is None else reward}
    mapping |= map_columns(costs, tuple(problem.limits), "costs")
    rows = []
    for name, signal in problem.signals.items():
        what, other = ("costs", f"costs={{{name!r}: ...}}") if name in problem.limits else ("reward", "reward='...'")
        hint = f"; give {other} where it has another name"
        rows.append(scale_column(signal, name, get_numeric_column(columns, mapping[name], what, hint=hint)))
    return np.asarray(np.column_stack(rows) * signs)


def scale_column(signal: Reward | Limit, name: str, values: Floats) -> Floats:
    """Return outcomes scaled to [0, 1], or raise with the row that is out of range."""
    beyond = ~((values >= signal.low) & (values <= signal.high))
    if beyond.any():
        row = int(np.argmax(beyond))
        try:
            scale_outcome(signal, name, float(values[row]))
        except InvalidOutcome as error:
            raise InvalidOutcome(
                ErrorCode.INVALID_ROW, "row {row} of the frame: {error}", row=row, error=error
            ) from None
    return np.asarray((values - signal.low) / (signal.high - signal.low))


def read_problem_actions(policy: ProblemPolicy, columns: Mapping[Any, Any], action: Any, context: Any) -> Floats:
    """Return the rows (n, 2 + numbers + segments) of actions and contexts."""
    problem = policy.problem
    mapping = map_columns(context, problem.context_names, "context")
    hint = "" if action is not None else "; give action='...' where the column of the actions has another name"
    action_column = "action" if action is None else action
    played = get_column(columns, action_column, "action", InvalidActions, hint).tolist()
    list_unique_names(played, f"the column {safe_repr(action_column)}", InvalidActions)
    numbered = map_unique(played, lambda name: parse_at_row(played, name, problem.get_action_index))
    contexts: dict[str, Any] = {}
    for name, (low, high) in problem.ranges:
        hint = f"; give context={{{name!r}: ...}} where it has another name"
        values = get_numeric_column(columns, mapping[name], "context", InvalidActions, hint)
        beyond = ~((values >= low) & (values <= high))
        if beyond.any():
            row = int(np.argmax(beyond))
            raise InvalidActions(
                ErrorCode.INVALID_ROW,
                "row {row} of the frame: {name}",
                row=row,
                name=describe_range_error(name, float(values[row]), low, high),
            )
        contexts[name] = values
    for name in problem.divisions:
        hint = f"; give context={{{name!r}: ...}} where it has another name"
        segments = get_column(columns, mapping[name], "context", InvalidActions, hint).tolist()
        list_unique_names(segments, f"the column {safe_repr(mapping[name])}", InvalidActions)
        contexts[name] = map_unique(segments, partial(parse_segment_at, segments, name))
    return build_rows(problem, numbered, contexts)


def parse_segment_at(segments: list[Any], division: str, segment: Any) -> float:
    """Return the hash of a segment of a column."""
    return float(hash_segment(parse_at_row(segments, segment, partial(check_segment_name, division=division))))


def parse_at_row(values: list[Any], value: Any, take: Callable[[Any], Any]) -> Any:
    """Return a parsed value of a column; an error names the first row that has it."""
    try:
        return take(value)
    except InvalidActions as error:
        kind = type(value)
        row = next(i for i, other in enumerate(values) if other is value or (type(other) is kind and other == value))
        raise InvalidActions(ErrorCode.INVALID_ROW, "row {row} of the frame: {error}", row=row, error=error) from None
