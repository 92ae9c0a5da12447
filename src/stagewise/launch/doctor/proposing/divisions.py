"""Find the columns of text that users may be divided by: known before the decision, for every user, with few values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.launch.decision_log import to_text
from stagewise.launch.doctor.checks.leaks import describe_leak, estimate_group_auc
from stagewise.launch.doctor.checks.segments import find_text_columns
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.policies.problem import RESERVED_NAMES

MAX_SEGMENTS = 100  # if rates are shown to differ
FEW_SEGMENTS = 12  # divide users by so many segments unless rates are shown to be equal
ROWS_PER_CELL = 10  # rows of an action in a group that can teach something, on average
MIN_COVERED_SHARE = 0.9  # of all rows, in groups with enough rows; others get the safe action first


@dataclass
class Divisions:
    """The columns that users may be divided by, as group codes (n,) and names."""

    columns: dict[str, tuple[Ints, list[str]]] = field(default_factory=dict)
    few: list[str] = field(default_factory=list)
    """Columns with few values and enough rows, by which users are divided unless rates are shown to be equal."""
    unfit: list[str] = field(default_factory=list)
    """Columns of text that a problem cannot divide users by."""


def find_divisions(
    profile: LogProfile, texts: list[str], arrays: Mapping[Any, Any], alpha: float, reasons: dict[str, str]
) -> Divisions:
    """Return the columns that users may be divided by; `reasons` gets why others are left out."""
    divisions, found = Divisions(), find_text_columns(profile)
    for column in [name for name in found if name in texts]:
        groups, names = found[column]
        measure = partial(estimate_group_auc, profile, groups, p_value=alpha / (len(profile.names) * len(found)))
        if is_determined_by_action(groups, profile.log.actions):
            reasons[f"ignored.{column}"] = (
                "it is the same in all rows of an action, so it describes the action, not the user"
            )
        elif why := describe_leak(profile, measure):
            reasons[f"ignored.{column}"] = why
        elif any(to_text(entry) is None for entry in arrays[column].tolist()):
            reasons[f"ignored.{column}"] = "it is missing in some rows, and users are divided by what is always known"
            divisions.unfit.append(column)
        elif len(names) > MAX_SEGMENTS or column in RESERVED_NAMES or len(column) > 100:
            reasons[f"ignored.{column}"] = f"it has {len(names):,} groups, or a name that a problem cannot have"
            divisions.unfit.append(column)
        else:
            divisions.columns[column] = groups, names
            if len(names) <= FEW_SEGMENTS and has_enough_rows(groups, len(profile.log.problem.actions)):
                divisions.few.append(column)
    return divisions


def is_determined_by_action(groups: Ints, actions: Ints) -> bool:
    """Say whether all rows of every action are in one group, so the column describes the action.

    >>> actions = np.array([0, 0, 1])
    >>> is_determined_by_action(np.array([0, 0, 1]), actions), is_determined_by_action(np.array([0, 1, 1]), actions)
    (True, False)
    """
    return len(np.unique(np.column_stack([actions, groups]), axis=0)) == len(np.unique(actions))


def has_enough_rows(groups: Ints, actions: int) -> bool:
    """Say whether nearly all rows are in groups with enough rows for every action.

    >>> has_enough_rows(np.zeros(30, dtype=np.int64), 3), has_enough_rows(np.arange(30), 3)
    (True, False)
    """
    sizes = np.bincount(groups)
    return bool(sizes[sizes >= ROWS_PER_CELL * actions].sum() >= MIN_COVERED_SHARE * groups.size)
