"""Draft a first problem from a log: actions, signals and ranges. It defines how the log is read."""

import numpy as np

from stagewise.launch.doctor.finding_messages import format_number
from stagewise.launch.doctor.holdout_split import Split
from stagewise.launch.doctor.proposing.roles import Roles
from stagewise.launch.doctor.proposing.rounding import propose_range
from stagewise.policies.problem import RESERVED_NAMES, Problem
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.signals import Limit, Reward

MAX_MAGNITUDE = 1e90


def choose_names(roles: Roles) -> dict[str, str]:
    """Return valid names for a problem, with the columns that they stand for."""
    columns = [roles.reward, *roles.limits, *roles.numbers]
    others, names = {*columns, *roles.texts}, dict[str, str]()
    for column in columns:
        name = column
        while name in RESERVED_NAMES or (name != column and name in others):
            name = f"the_{name}"
        names[name] = column
    return names


def draft_problem(roles: Roles, names: dict[str, str], split: Split, delta: float, reasons: dict[str, str]) -> Problem:
    """Return a problem with ranges, before its models are chosen."""
    names_of, context, limits = {column: name for name, column in names.items()}, {}, {}
    for column, values in roles.numbers.items():
        known = values[np.isfinite(values)]  # of all rows: ranges of numbers about users depend on no outcome
        if known.size and known.min() < known.max() and np.abs(known).max() < MAX_MAGNITUDE:
            low, high = context[names_of[column]] = propose_range(known)
            why = (
                f"observed {format_number(float(known.min()))} to {format_number(float(known.max()))}, rounded outward"
            )
            reasons[f"context.{names_of[column]}"] = "fractions, or 0 and 1" if (low, high) == (0.0, 1.0) else why
        else:
            reasons[f"ignored.{column}"] = "it has one value in all rows, or values that no range can contain"
    for column, value in roles.limits.items():
        low, high, reasons[f"range.{names_of[column]}"] = get_outcome_range(roles, column, split)
        limits[names_of[column]] = Limit(low + 0.5 * (high - low) if value is None else value, low=low, high=high)
    low, high, reasons[f"range.{names_of[roles.reward]}"] = get_outcome_range(roles, roles.reward, split)
    reward = Reward(names_of[roles.reward], low=low, high=high)
    return Problem(actions=roles.actions, safe=roles.safe, reward=reward, limits=limits, context=context, delta=delta)


def get_outcome_range(roles: Roles, column: str, split: Split) -> tuple[float, float, str]:
    """Return the range of a column's outcomes, and why."""
    values = roles.outcomes[column][split.selection]
    known = values[np.isfinite(values)]
    if not known.size or np.abs(known).max() > MAX_MAGNITUDE:
        raise InvalidOutcome(
            ErrorCode.LOG_EMPTY,
            "the column {column!r} has no outcomes, so no range can be proposed for it",
            column=column,
        )
    low, high = float(known.min()), float(known.max())
    if low < 0.0 or high > 1.0:
        ends = propose_range(np.array([min(low, 0.0), max(high, 0.0)]) if low == high else known)
        why = f"OBSERVED {format_number(low)} to {format_number(high)}, so decide: the guarantee relies on this range"
        return *ends, why
    if not np.isin(known, (0.0, 1.0)).all():
        return 0.0, 1.0, f"observed {format_number(low)} to {format_number(high)}: fractions"
    rate = float(known.mean())
    natural = format_number((rate * (1.0 - rate)) ** 0.5)
    why = f"0 or 1: noise of 1/2 follows from this range; sqrt(p (1 - p)) = {natural} would void the guarantee"
    return 0.0, 1.0, why
