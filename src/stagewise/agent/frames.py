"""Logs given as arrays, or as frames with columns by name; each column is checked as a whole."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.files.tables import read_table
from stagewise.policies.context_encoder import TIME, ContextRows, build_rows
from stagewise.policies.policy import BasePolicy
from stagewise.policies.problem import Problem
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.checks import as_array, check_mapping, check_outcome_array, is_listing, list_entries
from stagewise.problem.columns import (
    find_missing_rows,
    get_column,
    get_named_values,
    get_numeric_column,
    is_missing,
    list_column_names,
    list_names_once,
    list_unique_names,
    map_unique,
    read_columns,
    suggest_column,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.problem.signals import Limit, Reward, scale_outcome
from stagewise.problem.timing import LATEST, parse_timestamp


class LogRows(NamedTuple):
    """A log as it is learned."""

    actions: Floats | Ints  # (n, d) or (n,), as the policy's `check_logged_actions` returns them
    values: Floats  # (n, 1 + m) rewards and signed costs
    refused: Mapping[int, InvalidActions] = {}  # rows whose context is refused, which are left out
    clipped: Mapping[str, int] = {}  # how many values of each number were beyond its range

    def require_all(self) -> "LogRows":
        """Return these rows; raise the first error if any was refused."""
        for row, error in self.refused.items():
            with name_row(row, "frame"):
                raise error
        return self


class ColumnNames(NamedTuple):
    """The columns of a frame; None: the names that the problem declares."""

    reward: Hashable | None = None
    action: Hashable | None = None
    costs: Any = None
    context: Any = None
    names: Any = None


AS_DECLARED = ColumnNames()


@contextmanager
def name_row(row: int, what: str) -> Iterator[None]:
    try:
        yield
    except (InvalidOutcome, InvalidActions) as error:
        template = "row {row} of the {what}: {error}"
        raise type(error)(ErrorCode.INVALID_ROW, template, row=row, what=what, error=error) from None


def parse_log(policy: BasePolicy, features: Any, rewards: Any, costs: Any) -> LogRows:
    """Return the rows of a log given as arrays, or raise."""
    actions, checked_rewards = policy.check_logged_actions(features), check_outcome_array(rewards, "the logged rewards")
    count = len(actions)
    if checked_rewards.shape != (count,):
        raise InvalidOutcome.must_be(
            ErrorCode.WRONG_SHAPE, "the shape of the logged rewards", checked_rewards.shape, f"({count},)"
        )
    rows, values = split_cost_rows(costs, count), np.empty((count, 1 + policy.thresholds.signs.size))
    if len(rows) != count:
        raise InvalidOutcome.must_be(
            ErrorCode.WRONG_SHAPE, "the number of rows of the logged costs", len(rows), f"{count}, that of the actions"
        )
    for i, row in enumerate(rows):
        with name_row(i, "log"):
            values[i] = policy.values(float(checked_rewards[i]), row)
    return LogRows(actions, values)


def split_cost_rows(costs: Any, count: int) -> list[Any]:
    """Return the logged costs row by row; a mapping or a data frame has a column for each limit."""
    if costs is None:
        return [None] * count
    by_name = get_named_values(costs, "the logged costs")
    if by_name is None and not is_listing(costs):
        rule = "one row of costs for each logged action"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the value of the logged costs", costs, rule)
    if by_name is None:
        is_list = isinstance(costs, list | tuple)
        return list(costs) if is_list else list(as_array(costs, "the logged costs", InvalidOutcome))
    columns = {}
    for name, column in by_name.items():
        columns[name] = list_entries(column, "a logged cost", InvalidOutcome) if is_listing(column) else []
        if not is_listing(column) or len(columns[name]) != count:
            rule = f"a list of {count} costs, one for each logged action"
            raise InvalidOutcome.must_be(ErrorCode.WRONG_SHAPE, f"the column {name!r} of the costs", column, rule)
    return [{name: column[i] for name, column in columns.items()} for i in range(count)]


def read_rows(policy: Any, frame: Any, asked: ColumnNames = AS_DECLARED) -> LogRows | None:
    """Return the rows of a frame, or raise; None if it has none."""
    columns = read_table(frame) if isinstance(frame, str | Path) else read_columns(frame)
    if policy.problem is not None:
        if asked.names is not None:
            raise InvalidActions.unused("names", asked.names, "the actions of a problem have names")
        numbered = read_action_names(policy.problem, columns, asked.action)
        times, mapping = split_times(policy.problem, columns, asked.context)
        contexts = read_problem_contexts(policy.problem, columns, mapping, len(numbered))
        values = read_problem_values(policy, columns, asked.reward, asked.costs)
        return select_accepted(build_rows(numbered, contexts, times), values, contexts) if numbered else None
    if asked.reward is None:
        raise InvalidOutcome(ErrorCode.MISSING_VALUE, "reward is missing; give the name of the reward column")
    rewards = get_numeric_column(columns, asked.reward, "reward")
    word = "costs" if asked.costs is not None else "costs, left out,"
    costs = [get_numeric_column(columns, name, word) for name in find_cost_columns(policy, asked.costs)]
    given = read_actions(policy, columns, asked)
    if not len(rewards):
        return None
    checked, values = policy.check_logged_actions(given), np.column_stack([rewards, *costs])
    # A policy restricts each signal to a range, so the rows with the smallest and largest values are enough.
    for row in sorted({*values.argmin(axis=0).tolist(), *values.argmax(axis=0).tolist()}):
        with name_row(row, "frame"):
            policy.values(values[row, 0].item(), values[row, 1:].tolist())
    values[:, 1:] *= policy.thresholds.signs
    return LogRows(checked, values)


def select_accepted(actions: Floats, values: Floats, contexts: ContextRows) -> LogRows:
    """Return the rows whose context is accepted; raise the first error if there is none."""
    rows = LogRows(actions, values, contexts.refused, contexts.count_clipped())
    if len(rows.refused) == len(actions):
        return rows.require_all()
    if not rows.refused:
        return rows
    kept = np.delete(np.arange(len(actions)), list(rows.refused))
    return rows._replace(actions=actions[kept], values=values[kept])


def find_cost_columns(policy: BasePolicy, costs: Any) -> list[Any]:
    """Return the column of each limit, in the order of the limits; matched by name, never by position."""
    names = list(policy.thresholds.names)
    if costs is None:
        return names
    if not names:
        raise InvalidProblem.unused("costs", costs, "this policy has no limits")
    if isinstance(costs, Mapping):
        given = check_mapping(costs, "costs", InvalidOutcome)
        if set(given) == set(names):
            return [given[name] for name in names]
        raise InvalidOutcome.must_be(
            ErrorCode.UNKNOWN_SIGNAL, "the list of names in costs", list(given), f"that of the limits, {names}"
        )
    if len(names) == 1 and not is_listing(costs):
        return [costs]
    listed = list_names_once(costs)
    if len(names) == len(listed) == 1:
        return listed
    if not listed or set(listed) != set(names):
        rule = f"a mapping from each limit, {safe_repr(names)}, to its column, as a list could be in another order"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "costs", costs, rule)
    return names


def read_actions(policy: BasePolicy, columns: Mapping[Any, Any], asked: ColumnNames) -> Any:
    """Return the played actions: arms (n,) from one column, or features (n, d) from several."""
    safe: Any = getattr(policy, "safe_action", None)
    arms = hasattr(policy, "arms") or (safe is not None and safe.arm is not None)
    if arms and (asked.action is None or asked.context is not None):
        fact = f"context is {safe_repr(asked.context)}, and this policy chooses among arms"
        raise InvalidActions.conflict(
            "action", asked.action, fact, "give the column of the played arm (action=...) and no context"
        )
    if arms:
        return read_arms(policy, columns, asked.action, asked.names)
    if asked.context is None or asked.action is not None or asked.names is not None:
        fact = f"context is {safe_repr(asked.context)}, and this policy learns from features"
        raise InvalidActions.conflict(
            "action", asked.action, fact, "list the feature columns in order (context=[...]) and give no action"
        )
    listed = [asked.context] if isinstance(asked.context, str) else list_names_once(asked.context)
    if not listed:
        rule = "a list that names every feature column once"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "context", asked.context, rule)
    return np.column_stack([get_numeric_column(columns, name, "context", InvalidActions) for name in listed])


def read_arms(policy: BasePolicy, columns: Mapping[Any, Any], name: Any, names: Any) -> Ints:
    """Return the arms (n,) of a column, given by index or by name."""
    column, at = get_column(columns, name, "action", InvalidActions), f"the column {safe_repr(name)}"
    if names is not None:
        return match_arm_names(policy, column, at, names)
    if column.size and column.dtype.kind not in "iu":
        rule = "an arm's index from 0, or give names=[...], the names of all arms in order"
        what = f"an entry of {at}, of type {column.dtype},"
        raise InvalidActions.must_be(ErrorCode.COLUMN_WRONG_TYPE, what, column.tolist()[0], rule)
    for row in {int(column.argmin()), int(column.argmax())} if column.size else ():
        with name_row(row, "frame"):
            policy.check_logged_actions(column[row : row + 1])
    return column.astype(np.int64)


def match_arm_names(policy: BasePolicy, column: Any, at: str, names: Any) -> Ints:
    """Return the arms (n,) whose names a column holds."""
    listed = list_names_once(names)
    count = getattr(policy, "arms", max(len(listed), 1))
    if len(listed) != count:
        rule = f"a list of the names of {count} arms in order, each once"
        raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "names", names, rule)
    labels = column.tolist()
    absent = np.array([is_missing(label) for label in labels], dtype=np.bool_)
    if absent.any():
        raise InvalidActions(ErrorCode.MISSING_VALUE, "{problem}", problem=find_missing_rows(at, absent))
    arms = {label: arm for arm, label in enumerate(listed)}
    list_unique_names(labels, at, InvalidActions)
    matched = [arms.get(label) for label in labels]
    if None in matched:
        row = matched.index(None)
        rule = f"one of the actions {safe_repr(listed)}{suggest_column(labels[row], listed)}"
        raise InvalidActions.must_be(ErrorCode.UNKNOWN_ACTION, f"row {row} of {at}", labels[row], rule)
    return np.array(matched, dtype=np.int64)


# A problem's frame: every column has the name that the problem declares.


def map_columns(given: Any, names: Any, what: str) -> dict[str, Any]:
    """Return the column of every name; by default its own."""
    if given is not None and not isinstance(given, Mapping):
        rule = "a mapping from the problem's names to columns, or None"
        raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, what, given, rule)
    mapping = {} if given is None else check_mapping(given, what, InvalidOutcome)
    for name in mapping:
        if name not in names:
            raise InvalidOutcome.must_be_one_of(ErrorCode.UNKNOWN_NAME, f"a name in {what}", name, names)
    columns = {name: mapping.get(name, name) for name in names}
    twice = [column for column in columns.values() if list(columns.values()).count(column) > 1]
    if twice:
        template = "{what} maps two names to the column {twice}; every name needs its own column"
        raise InvalidOutcome(ErrorCode.DUPLICATE_NAME, template, what=what, twice=safe_repr(twice[0]))
    return columns


def read_problem_values(policy: ProblemPolicy, columns: Mapping[Any, Any], reward: Any, costs: Any) -> Floats:
    """Return the values (n, 1 + m) of all rows, scaled and signed."""
    problem, signs = policy.problem, np.concatenate([[1.0], policy.thresholds.signs])
    if policy.first_reported and reward is not None:
        raise InvalidOutcome.unused("reward", reward, "this problem has no reward to learn")
    mapping = {problem.reward.name: problem.reward.name if reward is None else reward}
    mapping |= map_columns(costs, tuple(problem.limits), "costs")
    rows = []
    for name, signal in problem.reported.items():
        what, other = ("costs", f"costs={{{name!r}: ...}}") if name in problem.limits else ("reward", "reward='...'")
        hint = f"; give {other} where it has another name"
        rows.append(scale_column(signal, name, get_numeric_column(columns, mapping[name], what, hint=hint)))
    if policy.first_reported:
        rows.insert(0, np.full(len(rows[0]), np.nan))
    return np.asarray(np.column_stack(rows) * signs)


def scale_column(signal: Reward | Limit, name: str, values: Floats) -> Floats:
    """Return outcomes scaled to [0, 1], or raise with the row that is out of range."""
    beyond = ~((values >= signal.low) & (values <= signal.high))
    if beyond.any():
        row = int(np.argmax(beyond))
        with name_row(row, "frame"):
            scale_outcome(signal, name, float(values[row]))
    return np.asarray((values - signal.low) / (signal.high - signal.low))


def read_problem_contexts(
    problem: Problem, columns: Mapping[Any, Any], context: Any = None, rows: int | None = None
) -> ContextRows:
    """Return the contexts of all rows, encoded, with the rows that are refused.

    A column without which no row can be read is an error; one that may be missing can be left out if `rows` is given.
    """
    mapping, listed = map_columns(context, problem.context_names, "context"), list_column_names(columns, InvalidActions)
    values = {}
    for name, column in mapping.items():
        declared = problem.declared_columns.get(name)
        may_be_absent = declared is not None and declared.missing is not None and rows is not None
        if may_be_absent and column == name and column not in listed:
            values[name] = np.full(rows or 0, None)
            continue
        hint = f"; give context={{{name!r}: ...}} where it has another name"
        values[name] = get_column(columns, column, "context", InvalidActions, hint)
    return problem.encode_columns(values, len(next(iter(values.values()))) if values else rows or 0)


def split_times(problem: Problem, columns: Mapping[Any, Any], context: Any) -> tuple[Floats | None, Any]:
    """Return the times of all rows, None where the problem needs none, and the mapping of the other columns."""
    if not problem.needs_times:
        return None, context
    mapping = dict(context) if isinstance(context, Mapping) else {}
    times = read_times(columns, mapping.pop(TIME, TIME))
    return times, mapping if isinstance(context, Mapping) else context


def read_action_names(problem: Problem, columns: Mapping[Any, Any], action: Any) -> list[int]:
    """Return the index of the action of every row."""
    column, hint = ("action", "; give action='...' where it has another name") if action is None else (action, "")
    names = get_column(columns, column, "action", InvalidActions, hint).tolist()
    list_unique_names(names, f"the column {safe_repr(column)}", InvalidActions)
    return map_unique(names, partial(parse_at_row, names, problem.get_action_index))


def read_times(columns: Mapping[Any, Any], name: Any) -> Floats:
    """Return the times of decisions in seconds since 1970, from numbers, dates or texts."""
    hint = f"; means move, so rows need their times: give context={{{TIME!r}: ...}} where they have another name"
    column = get_column(columns, name, "context", InvalidActions, hint)
    if column.dtype.kind in "iuf":
        times = column.astype(np.float64)
    else:
        try:
            times = column.astype("datetime64[us]").astype(np.int64) / 1e6
        except (TypeError, ValueError, OverflowError):
            times = np.array([parse_at_row(column.tolist(), parse_timestamp, value) for value in column.tolist()])
    wrong = ~(np.abs(times) <= LATEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        rule = "the time of its decision, in seconds since 1970 or as a date"
        what = f"row {row} of the column {safe_repr(name)}"
        raise InvalidActions.must_be(ErrorCode.INVALID_TIME, what, column.tolist()[row], rule)
    return np.asarray(times)


def parse_at_row(values: list[Any], take: Callable[[Any], Any], value: Any) -> Any:
    """Return a parsed value of a column; an error names the first row that has it."""
    try:
        return take(value)
    except StagewiseError:
        kind = type(value)
        row = next(i for i, other in enumerate(values) if other is value or (type(other) is kind and other == value))
        with name_row(row, "frame"):
            return take(value)
