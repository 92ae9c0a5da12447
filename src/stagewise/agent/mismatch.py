"""Tests of what a limit promises while an agent runs: who gets an action does not matter; costs rise with a score.

The users of a cell are halved by every number of the context, by the click score, which is the reward model's estimate,
and by the risk score, a direction in which earlier outcomes rose. Both halves have one mean, or the average depends on
who is chosen. Where a limit is promised to every user, outcomes are compared with the users' own ends
(`agent.calibration`). All tests together err with probability at most a, over all time (docs/theory/mismatch.md). A
difference is a warning, or, with `on_mismatch="stop"`, an alert.

Buckets of a score that are pooled, though mean costs fall from one to a later one.

The kernels that learn find it and bound the action by single buckets from then on (`models.score_rates`), so the limit
holds in every bucket and nothing stops. It is a warning: the score orders users wrongly, and pooling gains nothing.
"""

import math
from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.agent_statistics import LOOK_AFTER, Statistics, parse_count
from stagewise.agent.calibration import CalibratedLimit, ClickScores, TestedLimit
from stagewise.agent.health_findings import Check, format_finding_name
from stagewise.agent.observed_costs import to_user_units
from stagewise.engine.compile import FEW_ROWS, Floats, Ints, get_batch_rows
from stagewise.models.diagnostics import build_contradiction
from stagewise.models.promise_tests import (
    CUT,
    HALF_FIELDS,
    HIGH_COUNT,
    HIGH_SUM,
    LOW_COUNT,
    LOW_SUM,
    compute_evidence,
    count_rows,
)
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.checks import MANY
from stagewise.problem.context import get_segment_name
from stagewise.problem.division import name_segment
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.signals import Promise
from stagewise.records.reason import Contradiction, ReasonDetails


def list_pooled_limits(policy: Any) -> list[str]:
    """Return the limits whose buckets of a score are pooled."""
    return [name for name, buckets in getattr(policy, "buckets", {}).items() if buckets.pooled]


def record_falls(policy: Any, memory: Floats, statistics: Statistics) -> None:
    """Record the limits whose means fall from bucket to bucket, and schedule the next look."""
    pooled = list_pooled_limits(policy)
    if pooled:
        statistics.updates_until_check = min(statistics.updates_until_check, LOOK_AFTER)
    for limit in pooled:
        name = format_finding_name(Check.POOLING, limit)
        cause = None if name in statistics.warnings else find_fall(policy, memory, limit)
        if cause is not None:
            statistics.warnings[name] = cause


def find_fall(policy: Any, memory: Floats, limit: str) -> ReasonDetails | None:
    """Return the surest fall of a limit's means; None: there is none."""
    j = policy.thresholds.names.index(limit)
    model, block = next(one for one in policy.rounds.iter_blocks(memory) if one[1].first == 1 + j)
    falls = model.diagnostics.list_falls(block, policy.settings, memory)
    if not falls:
        return None
    fall = max(falls, key=lambda one: one.low - one.high)
    division = None if policy.problem is None else policy.problem.get_division(limit)
    name_bucket = get_segment_name if division is None else division.get_segment_name
    low, high = (policy.to_user_units(1 + j, mean) for mean in (fall.low, fall.high))
    return build_contradiction(
        Contradiction.POOLING, policy.display_thresholds, j,
        action=policy.describe_action(fall.action), score="" if division is None else division.name,
        before=name_bucket(fall.before), after=name_bucket(fall.after), low=low, high=high,
    )  # fmt: skip


LOGGED = MANY  # the index of a row of a log: no model has seen its outcome
MOST_CELLS, MOST_HALVES = 256, 16_384  # the first cells of a limit are tested, fewer if there are many columns
FIRST_CELLS = 4
BLOCK = 512  # decisions that are counted together
STEP, SLOWDOWN, GROWTH = 512, 12, 8  # a limit is tested again after so many outcomes, 12 for each half, an eighth more
FALSE_WARNINGS = 1e-3  # level of a test that stops nothing
SCORES = ("click_score", "risk_score")  # the columns after the numbers


class Difference(NamedTuple):
    """A difference between the halves of one cell, or of all of them (-1), by a column."""

    cell: int
    column: int
    excess: float  # of the evidence over what is needed


class HalvedLimit(TestedLimit):
    """The halves of every cell of one limit."""

    every_user = False
    arrays = ("cells", "table", "risk")

    def __init__(self, policy: SafeContextPosteriorSampling, j: int) -> None:
        super().__init__(policy, j)
        name, division = self.name, policy.divisions[self.name]
        self.segment = -1 if division < 0 else policy.first_segment + division  # its column of a row
        self.buckets = policy.buckets[name].size if name in policy.buckets else math.inf
        self.cells: dict[tuple[float, float], int] = {}
        self.table = np.zeros((FIRST_CELLS, policy.context + 2, HALF_FIELDS))
        self.risk = np.zeros(policy.context + 1)  # the sums of the risk score's slopes, and the number of rows
        self.most_cells = max(min(MOST_CELLS, MOST_HALVES // self.table.shape[1]), 1)

    def learn_rows(self, rows: Floats, values: Floats, ends: Floats, places: Ints, scores: ClickScores) -> None:
        cells = self.find_cells(rows)  # may enlarge the table
        count_rows(
            self.table, self.risk, cells, values - self.low, rows, places, scores.newer, scores.since, scores.older,
            scores.older_since, scores.none,
        )  # fmt: skip

    def find_cause(self, policy: Any, level: float) -> ReasonDetails | None:
        difference = self.find_difference(level)
        return None if difference is None else build_mismatch_cause(policy, self, difference)

    def find_cell(self, action: float, segment: float) -> int:
        """Return the cell of an action in a segment, adding it if there is room; -1: it is not tested."""
        cell = self.cells.get((action, segment))
        if cell is None:
            if action == self.untested or segment >= self.buckets or len(self.cells) == self.most_cells:
                return -1
            cell = self.cells[action, segment] = len(self.cells)
            if cell == len(self.table):
                self.table = np.concatenate([self.table, np.zeros_like(self.table)])
        return cell

    def find_cells(self, rows: Floats) -> Ints:
        """Return the cells (n,) of rows, new ones in the order of their rows."""
        actions, segments = rows[:, 0].astype(np.int64), rows[:, self.segment] if self.segment >= 0 else None
        if segments is not None:
            names, codes = np.unique(segments, return_inverse=True)
            actions = actions * names.size + codes
        _, first, codes = np.unique(actions, return_index=True, return_inverse=True)
        found = np.empty(first.size, dtype=np.int64)
        for at in np.argsort(first).tolist():
            segment = 0.0 if segments is None else float(segments[first[at]])
            found[at] = self.find_cell(float(rows[first[at], 0]), segment)
        return np.asarray(found[codes])

    def find_difference(self, level: float) -> Difference | None:
        """Return the largest difference beyond chance, by a number if there is one; None: there is none.

        It errs ever with probability `level`, of which half is for the risk score and half for the other columns, and
        of each share half for each direction.
        """
        columns = self.table.shape[1]
        alarms = [math.log(4.0 * (columns - 1) / level)] * (columns - 1) + [math.log(4.0 / level)]
        return max(
            self.find_unlike(alarms), key=lambda one: (one.column < columns - len(SCORES), one.excess), default=None
        )

    def find_unlike(self, alarms: list[float]) -> Iterator[Difference]:
        """Yield the columns by which the means of the halves differ, in all cells alike or in one.

        Half of the level is for all cells together, half for single ones, the i-th of which has 1/i(i+1) of it.
        """
        cells, doubled = len(self.cells), math.log(2.0)
        single, order = np.empty(cells), np.arange(1.0, cells + 1.0)
        for column, alarm in enumerate(alarms):
            for rises in (1, 0):
                together = compute_evidence(self.table, cells, column, rises, single) - alarm - doubled
                alone = single - np.log(order * (order + 1.0)) - alarm - doubled
                if together >= 0.0:
                    yield Difference(-1 if cells > 1 else 0, column, together)
                elif cells and alone.max() >= 0.0:
                    yield Difference(int(alone.argmax()), column, float(alone.max()))

    @property
    def halves(self) -> int:
        return len(self.cells) * self.table.shape[1]

    def to_dict(self) -> dict[str, Any]:
        table, cells = self.table[: len(self.cells)].tolist(), [list(key) for key in self.cells]
        return {**super().to_dict(), "cells": cells, "table": table, "risk": self.risk.tolist()}

    def restore(self, content: Any) -> None:
        super().restore(content)
        self.cells = {(float(action), float(segment)): cell for cell, (action, segment) in enumerate(content["cells"])}
        cells, size = len(self.cells), FIRST_CELLS
        stored = np.array(content["table"], dtype=np.float64).reshape(cells, self.table.shape[1], HALF_FIELDS)
        risk = np.array(content["risk"], dtype=np.float64).reshape(self.risk.size)
        if cells > self.most_cells or not (np.isfinite(stored).all() and np.isfinite(risk).all()):
            raise InvalidProblem(ErrorCode.FILE_CORRUPT, "the stored halves do not match the problem")
        while size < cells:
            size *= 2
        self.table = np.zeros((size, *self.table.shape[1:]))
        self.table[:cells], self.risk = stored, risk


class MismatchTest:
    """The tests of all limits of a problem, and the slopes by which users have click scores.

    The slopes are those of the reward's regressions at some check. They score only decisions whose reward was not
    learned then: in which half a user is must not depend on the user's own outcome.
    """

    def __init__(self, policy: SafeContextPosteriorSampling) -> None:
        self.limits: list[TestedLimit] = [
            CalibratedLimit(policy, j) if policy.promises[name] is Promise.EVERY_USER else HalvedLimit(policy, j)
            for j, name in enumerate(policy.thresholds.names)
        ]
        self.needs_ends = any(limit.every_user for limit in self.limits)  # `learn_rows` needs the rows' own upper ends
        none = np.zeros((0, policy.context))
        self.scores = ClickScores(none, none, older=none)
        self.last_reward = -1  # the last decision whose reward is learned
        self._uncounted: list[tuple[Floats, Floats, int]] = []  # decisions to be counted: rows, values, indices

    def extend(self, before: SafeContextPosteriorSampling, policy: SafeContextPosteriorSampling) -> None:
        """Go on with a policy that has more actions; a limit with a later version of its score has other cells."""
        self._count_all()
        for j, limit in enumerate(self.limits):
            if before.buckets.get(limit.name) != policy.buckets.get(limit.name):
                self.limits[j] = HalvedLimit(policy, j)
            elif isinstance(limit, HalvedLimit):
                limit.segment = HalvedLimit(policy, j).segment

    def learn_row(self, row: Floats, values: Floats, index: int) -> None:
        """Count the outcomes of a decision, where no limit needs ends; NaN: it is not learned now.

        Rows are counted in blocks, and before anything is read; the counts are those of rows one by one.
        """
        self._uncounted.append((row, values, index))
        if len(self._uncounted) % FEW_ROWS == 0 and len(self._uncounted) >= min(BLOCK, get_batch_rows(count_rows)):
            self._count_all()

    def _count_all(self) -> None:
        """Count the decisions that wait."""
        if self._uncounted:
            rows, values, indices = zip(*self._uncounted, strict=True)
            self._uncounted = []
            shape = len(indices), -1
            self._count(np.concatenate(rows).reshape(shape), np.concatenate(values).reshape(shape), np.array(indices))

    def learn_rows(self, rows: Any, values: Floats, indices: Ints | None = None, ends: Floats | None = None) -> None:
        """Count rows as one by one; without indices they are of a log, in their order, and without ends.

        `ends` (n, 1 + m) are the rows' own upper ends of the limits that are promised to every user; where there are
        none, outcomes tell the rates of parts, and nothing is bet on them.
        """
        self._count_all()
        self._count(rows, values, indices, ends)

    def _count(self, rows: Any, values: Floats, indices: Ints | None, ends: Floats | None = None) -> None:
        is_log = indices is None
        places = np.full(len(rows), LOGGED) if indices is None else indices
        rewarded = places[~np.isnan(values[:, 0])]
        if not is_log and rewarded.size:
            self.last_reward = max(self.last_reward, int(rewarded.max()))
        for limit in self.limits:
            known = ~np.isnan(values[:, limit.signal])
            if not known.any():
                continue
            chosen, at = rows[known], places[known]
            limit.count += len(chosen)
            limit.last = limit.last if is_log else max(limit.last, int(at.max()))
            own = np.ones(len(chosen)) if ends is None else ends[known, limit.signal]
            limit.learn_rows(chosen, values[known, limit.signal], own, at, self.scores)

    def learn_state(self, policy: Any, state: Any, rows: Floats, values: Floats, indices: Ints) -> Any:
        """Return the state that has learned the rows of decisions, which are counted."""
        ends = np.ones(values.shape) if self.needs_ends else None
        state = policy.learn_rows(state, rows, values, ends)
        self.learn_rows(rows, values, indices, ends)
        return state

    def check(self, policy: Any, memory: Floats, statistics: Statistics, at_once: bool = False) -> None:
        """Test the limits that are due, or all at once, and schedule the next test."""
        self._count_all()
        due = [limit for limit in self.limits if at_once or limit.count >= limit.next_check]
        for limit in due:
            # so that all tests together cost little per outcome
            limit.next_check = limit.count + max(STEP, SLOWDOWN * limit.halves, limit.count // GROWTH)
            name = format_finding_name(Check.MISMATCH, limit.name)
            if name in statistics.alerts or name in statistics.warnings:
                continue
            stops = policy.problem.limits[limit.name].on_mismatch == "stop" and policy.check_assumptions
            cause = limit.find_cause(policy, (FALSE_ALARMS if stops else FALSE_WARNINGS) / len(self.limits))
            if cause is not None:
                (statistics.alerts if stops else statistics.warnings)[name] = cause
        if due and max(limit.last for limit in self.limits) + 1 >= self.scores.since:
            self._refresh_slopes(policy, memory)
        left = min((limit.next_check - limit.count for limit in self.limits), default=LOOK_AFTER)
        statistics.updates_until_check = min(statistics.updates_until_check, max(left, 1))

    def _refresh_slopes(self, policy: SafeContextPosteriorSampling, memory: Floats) -> None:
        """Score later decisions by what the reward's regressions have learned until now."""
        slopes = read_reward_slopes(policy, memory)
        if slopes is not None:
            none, newer, since, *_ = self.scores
            self.scores = ClickScores(none, slopes, self.last_reward + 1, newer, since)

    def clone(self) -> "MismatchTest":
        """Return an independent copy."""
        self._count_all()
        other = copy(self)
        other.limits = [limit.clone() for limit in self.limits]
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON holds it."""
        self._count_all()
        return {
            "limits": [limit.to_dict() for limit in self.limits],
            "slopes": [self.scores.newer.tolist(), self.scores.older.tolist()],
            "since": [self.scores.since, self.scores.older_since, self.last_reward + 1],
        }

    def restore(self, content: Any) -> None:
        """Restore the state that `to_dict` wrote."""
        for limit, stored in zip(self.limits, content["limits"], strict=True):
            limit.restore(stored)
        none = self.scores.none
        newer, older = (
            np.array(entry, dtype=np.float64).reshape(len(entry), none.shape[1]) for entry in content["slopes"]
        )
        since, older_since, last = (parse_count(number) for number in content["since"])
        self.scores, self.last_reward = ClickScores(none, newer, since, older, older_since), last - 1
        if not (np.isfinite(newer).all() and np.isfinite(older).all()):
            raise InvalidProblem(ErrorCode.FILE_CORRUPT, "the stored slopes of click scores are not finite")


def build_mismatch_test(policy: Any) -> MismatchTest | None:
    """Return the test of a problem whose context has numbers; None for any other policy."""
    if not isinstance(policy, SafeContextPosteriorSampling) or policy.problem is None or not policy.context:
        return None
    return MismatchTest(policy)


def read_reward_slopes(policy: SafeContextPosteriorSampling, memory: Floats) -> Floats | None:
    """Return what each number adds to the estimated reward of each action (K, d); None unless it is linear."""
    if policy.models["reward"] != "linear":
        return None
    model, block = next(one for one in policy.rounds.iter_blocks(memory) if one[1].first == 0)
    rows, fits = policy._template.copy(), np.zeros((1 + policy.context, policy.actions + 1))
    for number in range(1 + policy.context):
        rows[:, 2 : policy.first_segment] = 0.0
        rows[:, 1 + number] = 1.0
        model.diagnostics.fill_estimates(block, rows, policy.settings, memory, fits[number])
    return np.ascontiguousarray((fits[1:, :-1] - fits[0, :-1]).T)


def build_mismatch_cause(policy: Any, limit: HalvedLimit, difference: Difference) -> ReasonDetails:
    """Return the difference in the user's units, with the column and the cut of a split."""
    j, details = limit.signal - 1, summarize_difference(policy, limit, difference)
    segment = details.pop("segment")
    return build_contradiction(
        Contradiction.MISMATCH, policy.display_thresholds, j,
        promise=str(policy.promises[limit.name]),
        segment=None if segment is None else name_segment(policy, limit.name, segment), **details,
    )  # fmt: skip


def summarize_difference(policy: Any, limit: HalvedLimit, difference: Difference) -> dict[str, Any]:
    """Return the column with its cut, the cell, and the halves' means, weighted by cell, in the user's units."""
    j, column, names, keys = limit.signal - 1, difference.column, policy.problem.feature_names, list(limit.cells)
    entries = limit.table[list(range(len(keys))) if difference.cell < 0 else [difference.cell], column]
    entries = entries[(entries[:, LOW_COUNT] > 0.0) & (entries[:, HIGH_COUNT] > 0.0)]
    shares = (entries[:, LOW_COUNT] + entries[:, HIGH_COUNT]) / max(entries[:, [LOW_COUNT, HIGH_COUNT]].sum(), 1.0)
    cut, is_number = float(shares @ entries[:, CUT]), column < len(policy.problem.ranges)
    if is_number:
        low, high = policy.problem.ranges[column][1]
        cut = 0.5 * (low + high + cut * (high - low))
    low_mean, high_mean = (
        to_user_units(policy, j, float(shares @ (entries[:, total] / entries[:, count])))
        for total, count in ((LOW_SUM, LOW_COUNT), (HIGH_SUM, HIGH_COUNT))
    )
    is_one = difference.cell >= 0
    action, segment = keys[difference.cell] if is_one else (0.0, 0.0)
    return {
        "kind": "number" if is_number else "level" if column < len(names) else SCORES[column - len(names)],
        "column": names[column] if column < len(names) else None,
        "cut": cut if is_number else None,
        "action": policy.problem.action_names[int(action)] if is_one else None,
        "segment": int(segment) if is_one and limit.segment >= 0 else None,
        "low_mean": low_mean,
        "low_count": int(entries[:, LOW_COUNT].sum()),
        "high_mean": high_mean,
        "high_count": int(entries[:, HIGH_COUNT].sum()),
    }
