"""A running count of an experiment's log: a look at it costs what is new since the last one."""

from collections import Counter, deque
from threading import Lock
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.records.reason import Cause, Reason
from stagewise.service.bands import Lately, Seen, own_value
from stagewise.service.buckets import Bucket, Buckets, fear
from stagewise.service.counted import Choice, Row, decoded, explores, fears
from stagewise.service.deciding import STOPPED
from stagewise.service.fold import DECODE_OUTCOME
from stagewise.service.offline import DECODE_SIZE
from stagewise.service.records import (
    CONTROL,
    DECISION,
    EVERYWHERE,
    KEY,
    LOG,
    OUTCOME,
    PROBLEM,
    REVOKED,
    SECRET,
    Event,
)
from stagewise.service.store.store import Store
from stagewise.service.waits import Waits

RECENT = 64  # decisions that "now" rests on, as in an agent's report
LAST, CHANGES = 20, 50  # how many are shown
LAGS = 501
PLANNED = (Reason.OFF, Reason.SHADOW, Reason.CANARY)
NOT_OURS = (*PLANNED, *STOPPED, Reason.FAILED, Reason.NOT_LOGGED, Reason.NOT_READ)  # the policy was not asked
WIDTH = 2  # kept of a decision that waits: the number of its action, and whether the policy chose it


class Tally:
    """What the rows of one experiment come to."""

    def __init__(self, experiment: str) -> None:
        self.experiment, self.seq, self.everywhere, self.head = experiment, 0, 0, 0
        self.problem: Problem | None = None
        self.version = 0
        self.waits, self.buckets = Waits(WIDTH, {}), Buckets()
        self.decisions, self.actions = 0, dict[str, int]()
        self.log_rows = 0  # of an offline log
        self.names: list[str] = []
        self.seen: dict[tuple[str, str], Seen] = {}  # by action and signal
        self.under: dict[str, Seen] = {}  # by signal, of decisions since its limit moved last
        self.moved: dict[str, int] = {}  # by limit, the first of these decisions
        self.lately: dict[bool, Lately] = {True: Lately(), False: Lately()}  # the reward of what the policy served
        self.lags: dict[str, deque[float]] = {}
        self.fallbacks: Counter[str] = Counter()
        self.recent: deque[Row] = deque(maxlen=RECENT)
        self.would: Counter[str] = Counter()  # what the policy would have served, in shadow
        self.recent_would: deque[Choice] = deque(maxlen=RECENT)
        self.last: deque[dict[str, Any]] = deque(maxlen=LAST)
        self.changes: deque[dict[str, Any]] = deque(maxlen=CHANGES)
        self.alone = Lock()

    def follow(self, store: Store, most: int) -> bool:
        """Take in what the log has more of, at most so many rows; say whether there are more."""
        with self.alone:
            for event in store.events(EVERYWHERE, self.everywhere, most):
                self.everywhere = event.seq
                if msgspec.json.decode(event.body).get("what") not in (KEY, REVOKED, SECRET):
                    self.change(event, "all experiments")
            self.head = store.head(self.experiment).seq
            for event in store.events(self.experiment, self.seq, most):
                self.take(event)
            return self.seq < self.head

    def take(self, event: Event) -> None:
        """Take in the next row."""
        self.seq, due = event.seq, list[tuple[int, int]]()
        self.waits.passed(event.at, due)
        self.settle(due)
        if event.kind == DECISION:
            self.decide(event, decoded(event.body))
        elif event.kind == OUTCOME:
            for name in self.waits.told(event.place, DECODE_OUTCOME(event.body).values, due):
                lag = (event.at - self.waits.date(event.place)) / 1e6
                self.lags.setdefault(name, deque(maxlen=LAGS)).append(lag)
            self.settle(due)
        elif event.kind == CONTROL:
            self.change(event)
        elif event.kind == LOG:
            self.log_rows = DECODE_SIZE(event.body).rows
            if event.key == "1":
                self.change(event)
        elif event.kind == PROBLEM:
            body = msgspec.json.decode(event.body)
            problem, self.version = Problem.from_plain(body["problem"]), int(body.get("version", 0))
            if self.problem is None:  # later versions have the same signals, with the same windows
                self.waits = Waits(WIDTH, problem.signals)
            else:
                self.move(self.problem, problem)
            self.problem = problem
            self.change(event)

    def move(self, old: Problem, new: Problem) -> None:
        """Begin anew with what is held against limits that move: nobody had promised the new ones of it."""
        moved = [name for name, limit in new.limits.items() if own_value(limit) != own_value(old.limits[name])]
        for name in moved:
            self.moved[name] = self.waits.end
            self.under.pop(name, None)
        if moved:
            self.recent.clear()
            self.recent_would.clear()

    def decide(self, event: Event, row: Row) -> None:
        """Take in a decision."""
        if row.action not in self.actions:
            self.names.append(row.action)
        self.actions[row.action] = self.actions.get(row.action, 0) + 1
        ours = row.reason not in NOT_OURS
        self.decisions += 1
        self.waits.lay([[self.names.index(row.action), ours]], [event.at], [row.asked.deferred])
        self.waits.add()
        bucket = self.buckets.at(event.at)
        bucket.count += 1
        bucket.actions[row.action] = bucket.actions.get(row.action, 0) + 1
        bucket.exploring += explores(row, "" if self.problem is None else self.problem.safe)
        for name, dearest in fears(row, self.problem):
            fear(bucket.dearest, name, dearest, dearest)
        if row.choice is not None:
            self.choose(bucket, row.choice)
        cause = None if row.reason is None else Cause.read((row.reason, row.details))
        if cause is not None:
            bucket.fallback += cause.reason not in PLANNED
            self.fallbacks[cause.reason] += 1
        self.recent.append(row)
        told = {name: getattr(row, name) for name in ("action", "mode", "reason", "limits", "probabilities")}
        told["fallback"] = None if cause is None else cause.sentence
        would = None if row.choice is None else row.choice.action
        self.last.append({"decision_id": event.key, "at": event.at / 1e6, **told, "would": would})

    def choose(self, bucket: Bucket, choice: Choice) -> None:
        """Take in what the policy would have served."""
        self.would[choice.action] += 1
        self.recent_would.append(choice)
        bucket.would[choice.action] = bucket.would.get(choice.action, 0) + 1
        for name, dearest in fears(choice, self.problem):
            fear(bucket.would_dearest, name, dearest, dearest)

    def settle(self, due: list[tuple[int, int]]) -> None:
        """Count what is due, and empty the list."""
        waits = self.waits
        for place, k in due:
            signal, row = waits.names[k], place - waits.base
            action, ours, value = self.names[int(waits.rows[row, 0])], waits.rows[row, 1], float(waits.values[row, k])
            self.seen.setdefault((action, signal), Seen()).add(value)
            if place >= self.moved.get(signal, 0):
                self.under.setdefault(signal, Seen()).add(value)
            self.buckets.at(waits.date(place)).seen.setdefault(signal, Seen()).add(value)
            if self.problem is not None and signal == self.problem.reward.name:
                if ours:
                    self.lately[True].add(value)
                if action == self.problem.safe:
                    self.lately[False].add(value)
        due.clear()

    def change(self, event: Event, where: str = "") -> None:
        """Take in who changed what, and why."""
        body = msgspec.json.decode(event.body)
        what = "log" if event.kind == LOG else body.get("what") or f"version {body.get('version', '')} of the problem"
        more = {name: body[name] for name in ("mode", "share", "name", "doubt", "rows") if body.get(name) is not None}
        who = {"actor": body.get("actor", ""), "reason": body.get("reason", "")}
        if "trip" in body:
            why = Cause.read((body["trip"], body["details"]))
            who, more = {**who, "reason": why.sentence}, {**more, "trip": why.reason, "details": why.details}
        self.changes.append({"at": event.at / 1e6, "seq": event.seq, "what": what, **who, **more, "where": where})

    def of_signal(self, signal: str) -> Seen:
        """Return what was seen of a signal, whatever was served, since its limit is what it is."""
        return self.under.get(signal, Seen())
