"""A data frame as a log: columns by name, each checked as a whole, so that a million rows take as long as one look."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stagewise.files.tables import table_at
from stagewise.kernels.compile import Floats, Ints
from stagewise.policies.agent.named_frames import named_actions, named_values
from stagewise.policies.learning import Learning
from stagewise.problem.checks import is_listing, mapping_of
from stagewise.problem.columns import NOTHINGS, columns_of, distinct, lacking, named_column, near, numbers_in, occurring
from stagewise.problem.errors import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.words import shown


class Rows(NamedTuple):
    """A log as it is learned from."""

    actions: Floats | Ints  # (n, d) or (n,), as the policy's `logged` returns them
    values: Floats  # (n, 1 + m) rewards and signed costs


class Asked(NamedTuple):
    """Which columns hold what."""

    reward: Hashable | None
    action: Hashable | None
    costs: Any
    context: Any
    names: Any


def rows_in(policy: Any, frame: Any, asked: Asked) -> Rows | None:
    """Return the rows of a frame, or refuse it; None: it has none."""
    columns = table_at(frame) if isinstance(frame, str | Path) else columns_of(frame)
    if policy.problem is not None:
        if asked.names is not None:
            raise InvalidActions(f"names is {shown(asked.names)}; leave it out, since a problem's actions have names")
        done, seen = (
            named_actions(policy, columns, asked.action, asked.context),
            named_values(policy, columns, asked.reward, asked.costs),
        )
        return Rows(done, seen) if len(done) else None
    if asked.reward is None:
        raise InvalidOutcome("reward is missing; name the column that holds the rewards")
    rewards = numbers_in(columns, asked.reward, "reward")
    word = "costs" if asked.costs is not None else "costs, left out,"
    costs = [numbers_in(columns, name, word) for name in cost_columns(policy, asked.costs)]
    given = actions_in(policy, columns, asked)
    if not len(rewards):
        return None
    actions = policy.logged(given)
    values = np.column_stack([rewards, *costs])
    check_ends(policy, values)
    values[:, 1:] *= policy.thresholds.signs
    return Rows(actions, values)


def cost_columns(policy: Learning, costs: Any) -> list[Any]:
    """Return the column of each limit, in the order of the limits; they are matched by name, never by position."""
    names = policy.thresholds.names
    if costs is None:
        return list(names)
    if not names:
        raise InvalidProblem(f"costs is {shown(costs)}; leave it out, since this policy knows no limits")
    if isinstance(costs, Mapping):
        given = mapping_of(costs, "costs", InvalidOutcome)
        if set(given) != set(names):
            raise InvalidOutcome(f"costs names {shown(list(given))}; the limits are {shown(list(names))}")
        return [given[name] for name in names]
    if len(names) == 1 and not is_listing(costs):
        return [costs]
    listed = distinct(costs)
    if len(names) == len(listed) == 1:
        return listed
    if not listed or set(listed) != set(names):
        raise InvalidOutcome(
            f"costs is {shown(costs)}; give a mapping from each limit, {shown(list(names))}, to its column, since a "
            "list in another order would go to the wrong limits"
        )
    return list(names)


def actions_in(policy: Learning, columns: Mapping[Any, Any], asked: Asked) -> Any:
    """Return what was played: arms (n,) from one column, or features (n, d) from several."""
    safe: Any = getattr(policy, "safe_action", None)
    arms = hasattr(policy, "arms") or (safe is not None and safe.arm is not None)
    if arms and (asked.action is None or asked.context is not None):
        raise InvalidActions(
            f"action is {shown(asked.action)} and context {shown(asked.context)}; this policy chooses among arms, so "
            "name the column that says which was played (action=...), and no context"
        )
    if arms:
        return arms_in(policy, columns, asked.action, asked.names)
    if asked.context is None or asked.action is not None or asked.names is not None:
        raise InvalidActions(
            f"action is {shown(asked.action)} and context {shown(asked.context)}; this policy learns from the features "
            "of what was played, so list their columns in the order of the features (context=[...]), and no action"
        )
    listed = [asked.context] if isinstance(asked.context, str) else distinct(asked.context)
    if not listed:
        raise InvalidActions(f"context is {shown(asked.context)}; it must list the features' columns, each once")
    features = [numbers_in(columns, name, "context", InvalidActions) for name in listed]
    return np.column_stack(features)


def arms_in(policy: Learning, columns: Mapping[Any, Any], name: Any, names: Any) -> Ints:
    """Return the arms (n,) that a column holds, as whole numbers or by their names."""
    column, at = named_column(columns, name, "action", InvalidActions), f"the column {shown(name)}"
    if names is not None:
        return by_name(column, at, arm_names(policy, names))
    if column.size and column.dtype.kind not in "iu":
        raise InvalidActions(
            f"{at} holds {shown(column.tolist()[0])}, of type {column.dtype}; it must hold whole numbers, the arms "
            "counted from 0, or give names=[...], the name of every arm in their order"
        )
    for row in {int(column.argmin()), int(column.argmax())} if column.size else ():
        try:
            policy.logged(column[row : row + 1])
        except InvalidActions as error:
            raise InvalidActions(f"{at} holds {column[row]} in row {row}: {error}") from None
    return column.astype(np.int64)


def arm_names(policy: Learning, names: Any) -> list[Any]:
    """Return the name of every arm."""
    listed = distinct(names)
    count = getattr(policy, "arms", max(len(listed), 1))
    if len(listed) != count:
        raise InvalidActions(
            f"names is {shown(names)}; it must list the name of each of {count} arms once, in their order"
        )
    return listed


def by_name(column: Any, at: str, names: list[Any]) -> Ints:
    """Return the arms (n,) whose names a column holds."""
    labels = column.tolist()
    absent = np.array([type(label).__name__ in NOTHINGS for label in labels], dtype=np.bool_)
    if absent.any():
        raise InvalidActions(lacking(at, absent))
    place = {label: arm for arm, label in enumerate(names)}
    occurring(labels, at, InvalidActions)
    found = [place.get(label) for label in labels]
    if None in found:
        row = found.index(None)
        raise InvalidActions(
            f"{at} holds {shown(labels[row])} in row {row}, which is none of the actions{near(labels[row], names)}; "
            f"they are {shown(names)}"
        )
    return np.array(found, dtype=np.int64)


def check_ends(policy: Learning, outcomes: Floats) -> None:
    """Refuse outcomes (n, 1 + m), in the user's own direction, that the policy would refuse one by one.

    What a policy promises of outcomes is a range for each signal (`Learning.values`), so the rows with the least and
    the largest of each signal speak for all.
    """
    ends = np.concatenate([outcomes.argmin(axis=0), outcomes.argmax(axis=0)])
    for row in sorted({int(end) for end in ends}):
        reward, *costs = outcomes[row].tolist()
        try:
            policy.values(reward, costs)
        except InvalidOutcome as error:
            raise InvalidOutcome(f"row {row} of the frame: {error}") from None
