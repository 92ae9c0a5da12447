"""A first problem of a log: actions, and ranges that hold what was seen. It tells how the log is read."""

import numpy as np

from stagewise.launch.doctor.finding import said
from stagewise.launch.doctor.proposing.ends import range_of
from stagewise.launch.doctor.proposing.roles import Roles
from stagewise.launch.doctor.splitting import Split
from stagewise.policies.problem import TAKEN, Problem
from stagewise.problem.declared import Limit, Reward
from stagewise.problem.errors import InvalidOutcome

LARGEST = 1e90


def names_for(roles: Roles) -> dict[str, str]:
    """Return names that a problem can have, and the columns that they are of."""
    columns = [roles.reward, *roles.limits, *roles.numbers]
    others, names = {*columns, *roles.texts}, dict[str, str]()
    for column in columns:
        name = column
        while name in TAKEN or (name != column and name in others):
            name = f"the_{name}"
        names[name] = column
    return names


def drafted(roles: Roles, names: dict[str, str], split: Split, delta: float, reasons: dict[str, str]) -> Problem:
    """Return a problem with ranges, before anything is known of its forms."""
    called, context, limits = {column: name for name, column in names.items()}, {}, {}
    for column, values in roles.numbers.items():
        there = values[np.isfinite(values)]  # of all rows: ranges of users' numbers choose nothing about outcomes
        if there.size and there.min() < there.max() and np.abs(there).max() < LARGEST:
            low, high = context[called[column]] = range_of(there)
            seen = f"seen {said(float(there.min()))} to {said(float(there.max()))}, rounded outward"
            reasons[f"context.{called[column]}"] = "shares, or 0 and 1" if (low, high) == (0.0, 1.0) else seen
        else:
            reasons[f"aside.{column}"] = "it has one value in all rows, or none that a range can hold"
    for column, value in roles.limits.items():
        low, high, reasons[f"range.{called[column]}"] = ends_of(roles, column, split)
        limits[called[column]] = Limit(low + 0.5 * (high - low) if value is None else value, low=low, high=high)
    low, high, reasons[f"range.{called[roles.reward]}"] = ends_of(roles, roles.reward, split)
    told = Reward(called[roles.reward], low=low, high=high)
    return Problem(actions=roles.actions, safe=roles.safe, reward=told, limits=limits, context=context, delta=delta)


def ends_of(roles: Roles, column: str, split: Split) -> tuple[float, float, str]:
    """Return between which numbers every outcome of a column lies, and why."""
    values = roles.outcomes[column][split.chosen_from]
    there = values[np.isfinite(values)]
    if not there.size or np.abs(there).max() > LARGEST:
        raise InvalidOutcome(f"the column {column!r} has no outcomes that a range could be read from")
    low, high = float(there.min()), float(there.max())
    if low < 0.0 or high > 1.0:
        ends = range_of(np.array([min(low, 0.0), max(high, 0.0)]) if low == high else there)
        words = f"SEEN {said(low)} to {said(high)}, so decide: the guarantee rests on every outcome lying in it"
        return *ends, words
    if not np.isin(there, (0.0, 1.0)).all():
        return 0.0, 1.0, f"seen {said(low)} to {said(high)}: shares"
    rate = float(there.mean())
    natural = said((rate * (1.0 - rate)) ** 0.5)
    words = f"0 or 1: noise of 1/2 follows from this range; sqrt(p (1 - p)) = {natural} would void the guarantee"
    return 0.0, 1.0, words
