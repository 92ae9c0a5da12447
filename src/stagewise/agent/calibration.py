"""The test of a limit that is promised to every user: outcomes do not exceed the users' own upper ends.

The ends are those that the model had when the outcome was learned. Outcomes are bet to exceed them in subgroups of the
users, by every number, by pairs of numbers, by click score and by the end itself (docs/theory/mismatch.md).
"""

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.agent.agent_statistics import LOOK_AFTER, parse_count
from stagewise.agent.observed_costs import to_unit_cost, to_user_units
from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import SAFE_INDEX
from stagewise.models.diagnostics import build_contradiction
from stagewise.models.promise_tests import (
    BET_ENDS,
    BET_SUM,
    BETS,
    CENTRE,
    COLUMN_FIELDS,
    FIELDS,
    SCORES,
    SPREAD,
    compute_log_wealth,
    count_paired,
    count_rows_in_subgroups,
    count_subgroups,
)
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import Contradiction, ReasonDetails

MOST_CELLS, MOST_ENTRIES = 65, 65_536  # all actions and the first ones; fewer if there are many subgroups
NO_SLOPES = np.zeros((0, 0))
SMALLEST_GUESS = 1e-6  # smallest prior rate
SCORE_NAMES = ("click_score", "upper_end")
SUBGROUPS, PAIRED = as_python(count_subgroups), as_python(count_paired)


class Excess(NamedTuple):
    """Outcomes of a subgroup of the users that exceed their upper ends."""

    cell: int  # 0: all actions, else 1 + the action
    subgroup: int


class Condition(NamedTuple):
    """A column of the users of a subgroup, and between which values they are."""

    column: int
    above: float | None
    up_to: float | None


class ClickScores(NamedTuple):
    """The slopes by which users have click scores: those of now, and older ones for earlier decisions."""

    none: Floats  # (0, d)
    newer: Floats  # (K, d)
    since: int = 0  # the first decision that they may score
    older: Floats = NO_SLOPES
    older_since: int = 0

    def get(self, index: int) -> Floats:
        """Return the slopes that score a decision."""
        return self.newer if index >= self.since else self.older if index >= self.older_since else self.none


class TestedLimit:
    """One limit whose promise is tested against the outcomes of its users."""

    every_user: ClassVar[bool]  # it is promised to every user, so the users' own upper ends are compared with outcomes
    arrays: ClassVar[tuple[str, ...]]  # the tables that are copied

    def __init__(self, policy: SafeContextPosteriorSampling, j: int) -> None:
        name, sign = policy.thresholds.names[j], float(policy.thresholds.signs[j])
        self.name, self.signal, self.low = name, 1 + j, 0.0 if sign > 0.0 else -1.0
        self.untested = float(policy.layout[SAFE_INDEX]) if np.isfinite(policy.declared_costs[j]) else -1.0
        self.count, self.next_check, self.last = 0, LOOK_AFTER, -1  # outcomes, and the last decision learned

    @property
    @abstractmethod
    def halves(self) -> int:
        """The number of comparisons of a test."""

    @abstractmethod
    def learn_rows(self, rows: Floats, values: Floats, ends: Floats, places: Ints, scores: ClickScores) -> None:
        """Count outcomes in [low, low + 1] of rows (n, D) of these decisions, with the upper ends that they had."""

    @abstractmethod
    def find_cause(self, policy: Any, level: float) -> ReasonDetails | None:
        """Return what contradicts the promise; None: nothing beyond chance. It errs ever with probability `level`."""

    def clone(self) -> "TestedLimit":
        """Return an independent copy."""
        other = copy(self)
        vars(other).update({name: copy(getattr(self, name)) for name in self.arrays})
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return what was counted as JSON holds it."""
        return {"count": self.count, "next_check": self.next_check, "last": self.last + 1}

    def restore(self, content: Any) -> None:
        """Restore what `to_dict` wrote."""
        self.count, self.next_check = parse_count(content["count"]), parse_count(content["next_check"])
        self.last = parse_count(content["last"]) - 1


class CalibratedLimit(TestedLimit):
    """The outcomes and the upper ends of one limit, by subgroups of the users."""

    every_user = True
    arrays = ("table", "columns")

    def __init__(self, policy: SafeContextPosteriorSampling, j: int) -> None:
        super().__init__(policy, j)
        sign = float(policy.thresholds.signs[j])
        self.guess = min(max(to_unit_cost(float(policy.thresholds.values[j]), sign), SMALLEST_GUESS), 1.0)
        subgroups = SUBGROUPS(policy.context)
        self.table = np.zeros((1, subgroups, FIELDS))
        self.most_cells = min(max(MOST_ENTRIES // subgroups, 1), MOST_CELLS)
        self.columns = np.zeros((policy.context + SCORES, COLUMN_FIELDS))

    @property
    def halves(self) -> int:
        return len(self.table) * self.table.shape[1] // 4

    def learn_rows(self, rows: Floats, values: Floats, ends: Floats, places: Ints, scores: ClickScores) -> None:
        which = np.where(places >= scores.since, 2, np.where(places >= scores.older_since, 1, 0))
        starts = [0, *(np.flatnonzero(np.diff(which)) + 1).tolist(), len(which)]
        for start, stop in itertools.pairwise(starts):  # runs of rows that the same slopes score
            part = slice(start, stop)
            self.count_rows(rows[part], values[part], ends[part], scores.get(int(places[start])))

    def count_rows(self, rows: Floats, values: Floats, ends: Floats, slopes: Floats) -> None:
        """Count outcomes of rows that the same slopes score."""
        is_tested = (rows[:, 0] != self.untested) & ~np.isnan(values)
        chosen, own = np.ascontiguousarray(rows[is_tested]), np.ascontiguousarray(ends[is_tested])
        outcomes = np.ascontiguousarray(values[is_tested] - self.low)
        cells = min(int(chosen[:, 0].max(initial=-1.0)) + 2, self.most_cells)
        if cells > len(self.table):
            self.table = np.concatenate([self.table, np.zeros((cells - len(self.table), *self.table.shape[1:]))])
        count_rows_in_subgroups(self.table, self.columns, outcomes, own, self.guess, chosen, slopes)

    def find_cause(self, policy: Any, level: float) -> ReasonDetails | None:
        excess = self.find_difference(level)
        return None if excess is None else build_excess_cause(policy, self, excess)

    def find_difference(self, level: float) -> Excess | None:
        """Return the largest excess beyond chance; None: there is none. It errs ever with probability `level`."""
        found = np.zeros(2, dtype=np.int64)
        is_found = compute_log_wealth(self.table, found) >= -np.log(level)
        return Excess(int(found[0]), int(found[1])) if is_found else None

    def iter_conditions(self, subgroup: int) -> Iterator[Condition]:
        """Yield the columns by which the users of a subgroup are chosen."""
        numbers = len(self.columns) - SCORES
        first_pair = 1 + 4 * len(self.columns)
        if 0 < subgroup < first_pair:
            column, quarter = divmod(subgroup - 1, 4)
            centre, spread = float(self.columns[column, CENTRE]), float(self.columns[column, SPREAD])
            cuts = [None, centre - spread, centre, centre + spread, None]
            yield Condition(column, cuts[quarter], cuts[quarter + 1])
        elif subgroup:
            pair, quadrant = divmod(subgroup - first_pair, 4)
            pairs = [(i, j) for i in range(1, PAIRED(numbers)) for j in range(i)]
            for column, is_upper in zip(pairs[pair], (quadrant & 2, quadrant & 1), strict=True):
                cut = float(self.columns[column, CENTRE])
                yield Condition(column, cut if is_upper else None, None if is_upper else cut)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "table": self.table.tolist(), "columns": self.columns.tolist()}

    def restore(self, content: Any) -> None:
        super().restore(content)
        table = np.array(content["table"], dtype=np.float64).reshape(-1, *self.table.shape[1:])
        columns = np.array(content["columns"], dtype=np.float64).reshape(self.columns.shape)
        are_valid = bool(np.isfinite(columns).all() and np.isfinite(table).all())
        if not (1 <= len(table) <= self.most_cells and are_valid and (columns[:, 0] >= 0.0).all()):
            raise InvalidProblem(ErrorCode.FILE_CORRUPT, "the stored outcomes of subgroups do not match the problem")
        self.table, self.columns = table, columns


def build_excess_cause(policy: Any, limit: CalibratedLimit, excess: Excess) -> ReasonDetails:
    """Return the excess in the user's units, with the subgroup of the users."""
    return build_contradiction(
        Contradiction.MEAN_FORM, policy.display_thresholds, limit.signal - 1,
        promise=str(policy.promises[limit.name]), form=policy.models[limit.name],
        **summarize_excess(policy, limit, excess),
    )  # fmt: skip


def summarize_excess(policy: Any, limit: CalibratedLimit, excess: Excess) -> dict[str, Any]:
    """Return the subgroup of the users, their mean outcome, and the mean of their upper ends, in the user's units."""
    entry, j = limit.table[excess.cell, excess.subgroup], limit.signal - 1
    mean, end = (to_user_units(policy, j, float(entry[one] / max(entry[BETS], 1.0))) for one in (BET_SUM, BET_ENDS))
    conditions = [describe_condition(policy, one) for one in limit.iter_conditions(excess.subgroup)]
    first, second = (*conditions, {}, {})[:2]
    names = ("column", "kind", "above", "up_to")
    return {
        "action": policy.problem.action_names[excess.cell - 1] if excess.cell else None,
        **{name: first.get(name) for name in names},
        **{f"second_{name}": second.get(name) for name in names},
        "count": int(entry[BETS]), "mean": mean, "end": end,
    }  # fmt: skip


def describe_condition(policy: Any, condition: Condition) -> dict[str, Any]:
    """Return the name of a column and its cuts, which only numbers have."""
    column, names, ranges = condition.column, policy.problem.feature_names, policy.problem.ranges
    above, up_to = condition.above, condition.up_to
    if column >= len(names):
        side = {"above": 0.0 if above is not None else None, "up_to": 0.0 if up_to is not None else None}
        return {"column": None, "kind": SCORE_NAMES[column - len(names)], **side}
    if column >= len(ranges):
        return {"column": names[column], "kind": "level", "above": above, "up_to": up_to}
    low, high = ranges[column][1]
    above, up_to = (None if cut is None else 0.5 * (low + high + cut * (high - low)) for cut in (above, up_to))
    return {"column": names[column], "kind": "number", "above": above, "up_to": up_to}
