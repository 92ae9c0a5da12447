"""Columns of text that users may be divided by: known of every user, before the decision, and of few enough values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from stagewise.kernels.compile import Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.leaks import leak, of_groups
from stagewise.launch.doctor.checks.segments import columns_of_text
from stagewise.launch.log import text_of
from stagewise.policies.problem import TAKEN

MOST_SEGMENTS = 100  # where rates are shown to differ by them
FEW = 12  # segments that are kept apart unless shown to be alike
ROWS_A_CELL = 10  # on average, of an action in a group: fewer teach nothing
MOST_ROWS = 0.9  # of all lie in such groups; those of rarer ones get the safe action until they are known


@dataclass
class Divisions:
    """What users may be divided by, as group numbers (n,) and the groups' names."""

    columns: dict[str, tuple[Ints, list[str]]] = field(default_factory=dict)
    few: list[str] = field(default_factory=list)
    """Those of few values and enough rows, by which users are divided unless that is shown to be needless."""
    unfit: list[str] = field(default_factory=list)
    """Columns of text by which a problem cannot divide users."""


def divisions_of(
    chart: Chart, texts: list[str], arrays: Mapping[Any, Any], alpha: float, reasons: dict[str, str]
) -> Divisions:
    """Return what users may be divided by; what is left out is told in `reasons`."""
    told, found = Divisions(), columns_of_text(chart)
    for column in [name for name in found if name in texts]:
        groups, names = found[column]
        measured = partial(of_groups, chart, groups, chance=alpha / (len(chart.names) * len(found)))
        if follows(groups, chart.log.actions):
            reasons[f"aside.{column}"] = "it says the same in all rows of an action, and so what was done, not for whom"
        elif why := leak(chart, measured):
            reasons[f"aside.{column}"] = why
        elif any(text_of(entry) is None for entry in arrays[column].tolist()):
            reasons[f"aside.{column}"] = "it names no group in some rows, and users are divided by what is always known"
            told.unfit.append(column)
        elif len(names) > MOST_SEGMENTS or column in TAKEN or len(column) > 100:
            reasons[f"aside.{column}"] = f"it has {len(names):,} groups, or a name that a problem cannot have"
            told.unfit.append(column)
        else:
            told.columns[column] = groups, names
            if len(names) <= FEW and enough(groups, len(chart.log.problem.actions)):
                told.few.append(column)
    return told


def follows(groups: Ints, actions: Ints) -> bool:
    """Say whether all rows of every action are in one group: then the column is about the action.

    >>> follows(np.array([0, 0, 1]), np.array([0, 0, 1])), follows(np.array([0, 1, 1]), np.array([0, 0, 1]))
    (True, False)
    """
    return len(np.unique(np.column_stack([actions, groups]), axis=0)) == len(np.unique(actions))


def enough(groups: Ints, actions: int) -> bool:
    """Say whether nearly all rows are in groups of which every action can have enough.

    >>> enough(np.zeros(30, dtype=np.int64), 3), enough(np.arange(30), 3)
    (True, False)
    """
    sizes = np.bincount(groups)
    return bool(sizes[sizes >= ROWS_A_CELL * actions].sum() >= MOST_ROWS * groups.size)
