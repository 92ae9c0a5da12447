"""The outcome queue against a naive model: every decision a dictionary, every question a loop over all of them."""

import json
import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.agent.outcome_queue import BUFFERED, DONE, DROPPED, MISSING, OutcomeQueue, SignalWindow

SIGNALS = 3
GROUPS = [((0, 1, 2),), ((0,), (1,), (2,)), ((1,), (0, 2))]
indices, signals = st.integers(0, 40), st.sets(st.integers(0, SIGNALS - 1), min_size=1).map(sorted)
windows = st.dictionaries(st.integers(0, SIGNALS - 1), st.tuples(st.integers(1, 9), st.sampled_from([0.5, math.nan])))
STEP = st.one_of(
    st.tuples(st.just("add"), st.booleans()),
    st.tuples(st.just("report"), indices, signals),
    st.tuples(st.just("advance"), st.integers(-3, 6)),
    st.tuples(st.just("drop"), indices),
    st.tuples(st.just("drop_missing"), indices),
    st.tuples(st.just("confirm"), indices),
    st.tuples(st.just("save")),
)


class Model:
    """What the queue promises, without any regard for speed."""

    def __init__(self, groups: Any, windows: dict[int, Any], in_order: bool) -> None:
        self.groups, self.windows, self.in_order = groups, windows, in_order
        self.rows: list[dict[str, Any]] = []
        self.now, self.clock = -math.inf, 0

    def close(self) -> None:
        """Let windows close, oldest decision first; a decision without a date gets this one."""
        if self.clock < self.now:
            return
        self.now = self.clock
        for row in self.rows:
            row["at"] = self.now if row["at"] is None else row["at"]

    def expire(self) -> None:
        longest = max((length for length, _ in self.windows.values()), default=0)
        for k, (length, value) in self.windows.items():
            for row in self.rows:
                if k in row["closed"] or row["at"] is None or row["at"] + length > self.now:
                    continue
                row["closed"].add(k)
                if row["deferred"]:
                    left = [k, *((j for j in range(SIGNALS) if j not in self.windows) if length == longest else ())]
                    self.put(row, [j for j in left if row["status"][j] != DONE], DROPPED)
                elif row["status"][k] == MISSING:
                    row["values"][k] = value
                    self.put(row, [k], BUFFERED if value == value else DROPPED)

    @staticmethod
    def put(row: dict[str, Any], which: Any, status: int) -> None:
        for k in which:
            row["status"][k] = status

    def due(self) -> list[tuple[int, int]]:
        found = []
        for group, which in enumerate(self.groups):
            for index, row in enumerate(self.rows):
                states = {row["status"][k] for k in which}
                if MISSING in states or (BUFFERED in states and row["deferred"]):
                    if self.in_order:
                        break
                    continue
                if states == {BUFFERED}:
                    found.append((index, group))
                self.put(row, [k for k in which if row["status"][k] == BUFFERED], DONE)
        return found

    def count(self, status: int) -> int:
        return sum(status in row["status"] for row in self.rows)


@settings(max_examples=300)
@given(
    groups=st.sampled_from(GROUPS), windows=windows, in_order=st.booleans(), bulk=st.booleans(),
    pairs=st.booleans(), steps=st.lists(STEP, max_size=60),
)  # fmt: skip
def test_the_queue_does_what_a_naive_model_does(
    groups: Any, windows: Any, in_order: bool, bulk: bool, pairs: bool, steps: Any
) -> None:
    windows = windows if in_order else {}  # windows need an order
    model = Model(groups, windows, in_order)
    spans = [SignalWindow(k, length, value) for k, (length, value) in windows.items()]
    queue = OutcomeQueue("abc", groups, spans, in_order=in_order)
    for verb, *arguments in steps:
        index = arguments[0] if arguments else 0
        if verb == "add":
            deferred = arguments[0] and in_order
            model.close()
            model.expire()
            queue.advance(model.clock)
            if bulk:
                assert queue.add_rows(np.full((1, 1), 7.0), at=model.clock) == len(model.rows)
            else:
                assert queue.add(7.0, played=f"played {queue.end}", at=model.clock) == len(model.rows)
            queue.deferred[queue.end - 1 - queue.base] = deferred
            date = model.clock if model.clock >= model.now else None
            row = {"status": [MISSING] * SIGNALS, "values": [0.0] * SIGNALS, "closed": set()}
            model.rows.append({**row, "at": date, "deferred": deferred})
        elif verb == "advance":
            model.clock += index
            before = [list(row["status"]) for row in model.rows]
            model.close()
            model.expire()
            closed = {(i, k) for k, found in queue.advance(model.clock) for i in found.tolist()}
            lacked = [(i, k) for i, k in closed if not model.rows[i]["deferred"]]
            assert all(before[i][k] == MISSING and k in model.rows[i]["closed"] for i, k in lacked)
            assert all(model.rows[i]["status"][k] == DROPPED for i, k in closed if model.rows[i]["deferred"])
        elif verb == "save":
            copy = OutcomeQueue("abc", groups, spans, in_order=in_order)
            copy.restore(json.loads(json.dumps(queue.to_dict(), default=bytes.decode)), queue.played)
            assert copy.to_dict() == queue.to_dict()
            queue = copy.clone()
        elif index < len(model.rows) and verb == "report":
            row = model.rows[index]
            missing = [k for k in arguments[1] if queue.is_missing(index, k)]
            assert missing == [k for k in arguments[1] if row["status"][k] == MISSING]
            assert all(queue.is_late(index, k) == (k in row["closed"]) for k in range(SIGNALS))
            value = float(index)
            if len(missing) == SIGNALS and queue.is_next(index) and not row["deferred"]:
                queue.learn_whole(index, [value] * SIGNALS)
                model.put(row, range(SIGNALS), DONE)
            else:
                for k in missing if bulk else ():
                    queue.report_rows(np.array([index]), k, np.array([value]))
                queue.report(index, [] if bulk else missing, [value] * SIGNALS)
                model.put(row, missing, BUFFERED)
            row["values"] = [value if k in missing else old for k, old in enumerate(row["values"])]
        elif index < len(model.rows) and verb == "drop":
            queue.drop(index)
            row = model.rows[index]
            model.put(row, [k for k in range(SIGNALS) if row["status"][k] != DONE], DROPPED)
        elif index < len(model.rows) and verb == "confirm":
            queue.confirm(index)
            model.rows[index]["deferred"] = False
        elif verb == "drop_missing" and index <= len(model.rows):
            rows = [(i, row) for i, row in enumerate(model.rows[:index]) if MISSING in row["status"]]
            missing = [(i, [k for k in range(SIGNALS) if row["status"][k] == MISSING]) for i, row in rows]
            assert list(queue.drop_missing(index)) == missing
            for i, which in missing:
                model.put(model.rows[i], which, DROPPED)
        due, pairs = queue.take_pairs() if pairs and in_order else [], pairs and in_order
        for i, row in zip(*queue.take_due(), strict=True) if bulk and in_order and not pairs else ():
            for group, which in enumerate(groups):
                if not np.isnan(row[list(which)]).all():
                    assert row[list(which)].tolist() == [model.rows[i]["values"][k] for k in which]
                    due.append((int(i), group))
        for index, group in queue.iter_due():
            expected = [model.rows[index]["values"][k] if k in groups[group] else math.nan for k in range(SIGNALS)]
            np.testing.assert_array_equal(queue.select(index, group), expected)
            assert bulk or queue.played[index] == f"played {index}"
            due.append((index, group))
        assert sorted(due) == sorted(model.due())
        if in_order:
            assert due == sorted(due, key=lambda one: one if bulk and not pairs else one[::-1])
        if not in_order:
            assert all(queue.is_pending(i) == (min(row["status"]) < DROPPED) for i, row in enumerate(model.rows))
        assert (queue.pending_count, queue.buffered_count) == (model.count(MISSING), model.count(BUFFERED))
        for k in range(SIGNALS):
            for status in (MISSING, BUFFERED):
                found = [i for i, row in enumerate(model.rows) if row["status"][k] == status]
                assert queue.find(k, status) == found


def test_tables_do_not_grow_while_outcomes_arrive_in_order() -> None:
    queue = OutcomeQueue("abc", GROUPS[0])
    capacity = len(queue.dates)
    for _ in range(5 * capacity):
        queue.learn_whole(queue.add(), [0.0] * SIGNALS)
    assert len(queue.dates) == capacity
    assert not queue.played
    first = queue.add()
    for _ in range(3 * capacity):  # nothing is lost while one outcome is missing
        queue.report(queue.add(), range(SIGNALS), [1.0] * SIGNALS)
    assert not list(queue.iter_due())
    queue.report(first, range(SIGNALS), [1.0] * SIGNALS)
    assert len(list(queue.iter_due())) == 3 * capacity + 1


def test_a_report_without_new_signals_of_a_decision_that_is_long_over_changes_nothing() -> None:
    queue = OutcomeQueue("abc", GROUPS[0])
    for _ in range(5 * len(queue.dates)):
        queue.learn_whole(queue.add(), [0.0] * SIGNALS)
    before = queue.clone()
    for index in (-1, 0, queue.base - 1):
        queue.report(index, [], [0.0] * SIGNALS)
    assert (queue.pending_count, queue.buffered_count) == (before.pending_count, before.buffered_count)
    np.testing.assert_array_equal(queue.status, before.status)


def test_many_that_are_due_at_once_are_taken_in_the_same_order() -> None:
    for step in (0, 1):  # all at the same time, or each at its own
        queue = OutcomeQueue("ab", [(0,), (1,)], [SignalWindow(0, 5, 0.5), SignalWindow(1, 9, math.nan)])
        for i in range(20):
            queue.advance(i * step)
            queue.add(float(i), at=i * step)
        queue.report(7, [0, 1], [1.0, 1.0])
        queue.drop(9, [0])
        queue.confirm(3)
        queue.deferred[18] = 1
        queue.advance(40)
        other = queue.clone()
        pairs = list(queue.iter_due())
        assert len(pairs) > 15
        assert other.take_pairs() == pairs
        assert other.to_dict() == queue.to_dict()
