"""A data frame as the log of a problem: every column by the name that the problem has for it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.named_caps import NamedCAPS
from stagewise.policies.rows_of_users import rows_of
from stagewise.problem.checks import mapping_of
from stagewise.problem.columns import each_of, named_column, numbers_in, occurring
from stagewise.problem.declared import Limit, Reward, scaled
from stagewise.problem.errors import InvalidActions, InvalidOutcome
from stagewise.problem.naming import number_of, outside, segment_name
from stagewise.problem.words import nearest, shown


def columns_by_name(given: Any, names: Any, what: str) -> dict[str, Any]:
    """Return the column of every name: its own, where nothing else is said."""
    told = {} if given is None else mapping_of(given, what, InvalidOutcome) if isinstance(given, Mapping) else None
    if told is None:
        raise InvalidOutcome(
            f"{what} is {shown(given)}; give a mapping from the problem's names to columns, or nothing"
        )
    for name in told:
        if name not in names:
            raise InvalidOutcome(
                f"{what} names {shown(name)}; the problem has {shown(list(names))}{nearest(name, names)}"
            )
    places = {name: told.get(name, name) for name in names}
    twice = [place for place in places.values() if list(places.values()).count(place) > 1]
    if twice:
        raise InvalidOutcome(f"{what} takes the column {shown(twice[0])} for two names; each has a column of its own")
    return places


def named_values(policy: NamedCAPS, columns: Mapping[Any, Any], reward: Any, costs: Any) -> Floats:
    """Return the values (n, 1 + m) of all rows, scaled and signed."""
    problem, signs = policy.problem, np.concatenate([[1.0], policy.thresholds.signs])
    places = {problem.reward.name: problem.reward.name if reward is None else reward}
    places |= columns_by_name(costs, tuple(problem.limits), "costs")
    rows = []
    for name, signal in problem.signals.items():
        what, other = ("costs", f"costs={{{name!r}: ...}}") if name in problem.limits else ("reward", "reward='...'")
        hint = f"; give {other} where it has another name"
        rows.append(scaled_column(signal, name, numbers_in(columns, places[name], what, hint=hint)))
    return np.asarray(np.column_stack(rows) * signs)


def scaled_column(signal: Reward | Limit, name: str, values: Floats) -> Floats:
    """Return outcomes in [0, 1], or say which row is out of range."""
    beyond = ~((values >= signal.low) & (values <= signal.high))
    if beyond.any():
        row = int(np.argmax(beyond))
        try:
            scaled(signal, name, float(values[row]))
        except InvalidOutcome as error:
            raise InvalidOutcome(f"row {row} of the frame: {error}") from None
    return np.asarray((values - signal.low) / (signal.high - signal.low))


def named_actions(policy: NamedCAPS, columns: Mapping[Any, Any], action: Any, context: Any) -> Floats:
    """Return the rows (n, 2 + numbers + segments) of what was done, for whom."""
    problem = policy.problem
    places = columns_by_name(context, problem.expected, "context")
    hint = "" if action is not None else "; give action='...' where the column of the actions has another name"
    place = "action" if action is None else action
    done = named_column(columns, place, "action", InvalidActions, hint).tolist()
    occurring(done, f"the column {shown(place)}", InvalidActions)
    numbered = each_of(done, lambda name: at_row(done, name, problem.place_of))
    told: dict[str, Any] = {}
    for name, (low, high) in problem.ranges:
        hint = f"; give context={{{name!r}: ...}} where it has another name"
        values = numbers_in(columns, places[name], "context", InvalidActions, hint)
        beyond = ~((values >= low) & (values <= high))
        if beyond.any():
            row = int(np.argmax(beyond))
            raise InvalidActions(f"row {row} of the frame: {outside(name, float(values[row]), low, high)}")
        told[name] = values
    for name in problem.divisions:
        hint = f"; give context={{{name!r}: ...}} where it has another name"
        segments = named_column(columns, places[name], "context", InvalidActions, hint).tolist()
        occurring(segments, f"the column {shown(places[name])}", InvalidActions)
        told[name] = each_of(segments, partial(number_at, segments, name))
    return rows_of(problem, numbered, told)


def number_at(segments: list[Any], division: str, segment: Any) -> float:
    """Return the number of a segment of a column."""
    return float(number_of(at_row(segments, segment, partial(segment_name, division=division))))


def at_row(values: list[Any], value: Any, take: Callable[[Any], Any]) -> Any:
    """Return what is made of a value of a column; where it is refused, say in which row it stands first."""
    try:
        return take(value)
    except InvalidActions as error:
        kind = type(value)
        row = next(i for i, other in enumerate(values) if other is value or (type(other) is kind and other == value))
        raise InvalidActions(f"row {row} of the frame: {error}") from None
