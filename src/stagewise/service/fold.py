"""The learner's state: a fold of the log, row by row, the same to the bit however the rows are cut into batches."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.agent.guard import acknowledged, look_for_drift, note_contradictions
from stagewise.policies.agent.notes import Notes
from stagewise.policies.agent.told import safe_cost_name, safe_cost_so_far
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.policies.rows_of_users import rows_of
from stagewise.problem.declared import scaled
from stagewise.problem.errors import InvalidProblem, StagewiseError
from stagewise.problem.naming import number_of, segment_name
from stagewise.records.draw import FIRST
from stagewise.records.reason import Cause, Reason
from stagewise.service.controls import ACKNOWLEDGE, REVIVE, TRIP
from stagewise.service.deciding import Known
from stagewise.service.offline import DECODE_PART, Part
from stagewise.service.records import CONTROL, DECISION, LOG, OUTCOME, PROBLEM, SHOWN, Event
from stagewise.service.silences import Silences, nothing_of
from stagewise.service.trips import Trips
from stagewise.service.waits import Waits

EVERY = 256  # decisions, after which what was declared is held against the data even if no decision met a contradiction


class Asked(msgspec.Struct):
    """What a decision was asked for."""

    context: dict[str, Any]
    deferred: bool = False


class Decided(msgspec.Struct):
    """What of a decision's row is learned from."""

    action: str
    asked: Asked
    reason: str | None = None


class Came(msgspec.Struct):
    """What of an outcome's row is learned from."""

    values: dict[str, float]


DECODE_DECISION = msgspec.json.Decoder(Decided).decode
DECODE_OUTCOME = msgspec.json.Decoder(Came).decode


class Fold:
    """What is known after row `seq` of an experiment's log, by one version of its problem."""

    def __init__(
        self,
        problem: Problem,
        version: int,
        retired: frozenset[str] = frozenset(),
        dry_after: float | None = None,
    ) -> None:
        """Begin before the first row.

        Args:
            problem: The problem, as this version has it.
            version: Its number.
            retired: Actions that are offered no more.
            dry_after: Seconds that signals have to be heard of a decision; None: nobody asks whether feeds go on.
        """
        self.problem, self.version, self.retired, self.dry_after = problem, version, retired, dry_after
        self.policy = problem.policy()
        self._deciding = problem.policy()  # of those who decide meanwhile, in other threads
        self.seq = self.at = 0
        self.learned = 0
        """How many values were learned."""
        self.state: State = self.policy.start()
        self.notes = Notes()
        self._noted: Notes | None = None  # a copy, until there is something else to note
        self.signs = dict(zip(problem.limits, self.policy.thresholds.signs.tolist(), strict=True))
        self.waits = Waits(self.policy.width, problem.signals, self.scaled)
        self.trips = Trips(problem, self.waits)
        self.nothing = {name: nothing_of(signal) for name, signal in problem.signals.items()}
        self.silences = self.fresh_silences()
        self._due: list[tuple[int, int]] = []
        self._log: list[tuple[Floats, Floats]] = []  # of an offline log, as long as parts of it are to come
        self._parts = 0

    def take(self, events: Sequence[Event]) -> None:
        """Take in the rows that follow `seq`."""
        decisions = [DECODE_DECISION(event.body) for event in events if event.kind == DECISION]
        dates, deferred = [e.at for e in events if e.kind == DECISION], [one.asked.deferred for one in decisions]
        self.waits.lay(self.rows_of(decisions), dates, deferred)
        told = iter(decisions)
        for event in events:
            if event.seq != self.seq + 1:
                raise InvalidProblem(f"row {event.seq} of the log follows row {self.seq}; rows are missing")
            self.seq, self.at = event.seq, event.at
            self.passed(event.at)
            if event.kind == DECISION:
                self.decided(next(told), event)
            elif event.kind == OUTCOME:
                self.came(event)
            elif event.kind == CONTROL:
                self.controlled(msgspec.json.decode(event.body))
            elif event.kind == LOG:
                self.logged(DECODE_PART(event.body))
            elif event.kind == PROBLEM:
                self.trips.promise(self.waits.end, Problem.from_plain(msgspec.json.decode(event.body)["problem"]))
        self.learn()
        self.trips.settle()

    def passed(self, at: int) -> None:
        """Let time pass: windows close."""
        closed = list(self.waits.closed)
        self.waits.passed(at, self._due)
        if self.waits.closed != closed:
            self.trips.close(closed)
            self.note_told()
        if self.silences is not None:
            self.silences.passed(at)

    def logged(self, part: Part) -> None:
        """Take in a part of an offline log; with the last one all is learned as one batch, as by an agent."""
        rows = part.read(self.policy)
        self._parts += 1
        if part.part != self._parts:
            raise InvalidProblem(
                f"row {self.seq} of the log is part {part.part} of an offline log; it must be {self._parts}"
            )
        self._log.append((np.asarray(rows.actions), rows.values))
        if part.part < part.parts:
            return
        actions, values = (np.concatenate(columns) for columns in zip(*self._log, strict=True))
        self._log = []
        self.state = self.policy.learn_log(self.state, actions, values)
        self.learned += values.size
        look_for_drift(self.policy, self.state.memory, self.notes, at_once=True)
        self._noted = None

    def rows_of(self, decisions: Sequence[Decided]) -> Floats:
        """Return what was played (n, D): the action, 1, the numbers about the user, the segments."""
        problem, contexts = self.problem, [one.asked.context for one in decisions]
        columns: dict[str, list[Any]] = {name: [told[name] for told in contexts] for name in problem.context}
        for name in problem.divisions:
            columns[name] = [number_of(segment_name(told[name], name)) for told in contexts]
        return rows_of(problem, [problem.place_of(one.action) for one in decisions], columns)

    def decided(self, told: Decided, event: Event) -> None:
        """Take in a decision; from time to time, hold what was declared against the data."""
        waits = self.waits
        if event.place != waits.end:
            raise InvalidProblem(f"decision {event.key!r} has place {event.place}; it must be {waits.end}")
        row = waits.add()
        if self.silences is not None:
            self.silences.decide(event.place, int(row[0]))
        if told.reason == Reason.CONTRADICTION or event.place % EVERY == 0:
            self.learn()
            self.check(row)
            self._noted = None

    def check(self, row: Floats) -> None:
        """Note what contradicts what was declared; once noted it stays, until a person acknowledges it."""
        decision = self.policy.choose(self.state, self.policy.context_in(row), FIRST)
        if decision.reason is Reason.CONTRADICTION:
            note_contradictions(self.policy, self.state, self.notes, decision)

    def came(self, event: Event) -> None:
        """Take in an outcome; what comes too late to be learned is not heard."""
        values, waits = DECODE_OUTCOME(event.body).values, self.waits
        costs = self.trips.costs(event.place) if SHOWN in values else None
        new = waits.told(event.place, values, self._due)
        if costs is None:
            self.trips.tell(event.place, new)
        else:
            self.trips.change(event.place, costs)
        self.note_told()
        if self.silences is None:
            return
        self.silences.answer(waits.end)
        for name in new:
            if values[name] != self.nothing[name]:
                action = int(waits.rows[event.place - waits.base, 0])
                self.silences.hear(event.place, action, waits.names.index(name))

    def note_told(self) -> None:
        """Note the declared costs of the safe action that what was told of it refutes."""
        for j, (count, mean) in self.trips.doubted().items():
            name = safe_cost_name(self.policy, j)
            if name not in self.notes.doubts:
                self.notes.doubts[name] = safe_cost_so_far(self.policy, j, count, mean)
                self._noted = None

    def scaled(self, name: str, value: float) -> float:
        """Return a value as it is learned: in [0, 1], and signed so that less of a cost is better."""
        told = scaled(self.problem.signals[name], name, value)
        return float(self.signs[name]) * told if name in self.signs else told

    def controlled(self, told: Mapping[str, Any]) -> None:
        """Take in a control: a person's word on a contradiction is part of what is known."""
        if told["what"] == TRIP:
            self.trips.stand(Cause.read((told["trip"], told["details"])))
        if told["what"] == REVIVE:
            self.learn()
            self.trips.revive()
            self.silences = self.fresh_silences()
        if told["what"] != ACKNOWLEDGE:
            return
        self.learn()
        self._noted = None
        with suppress(StagewiseError):  # it is in doubt no more, or not by this version of the problem
            acknowledged(self.policy, self.state.memory, self.notes, told["name"], f"{told['actor']}: {told['reason']}")

    def learn(self) -> None:
        """Learn all that is due, in its order, in compiled code."""
        due, self._due = self._due, []
        while due:  # to where a signal is due for a look, whatever the batch
            now, due = due[: self.notes.rest], due[self.notes.rest :]
            self.learn_all(now)
            self.notes.rest -= len(now)
            if self.notes.rest <= 0:
                look_for_drift(self.policy, self.state.memory, self.notes)
                self._noted = None

    def learn_all(self, due: Sequence[tuple[int, int]]) -> None:
        """Learn these, each a decision's place and one of its signals."""
        places, signals = np.array(due).T
        at = places - self.waits.base
        values = np.full((len(due), len(self.waits.names)), math.nan)
        values[np.arange(len(due)), signals] = self.waits.values[at, signals]
        rows = self.waits.rows[at]
        self.state = self.policy.learn_rows(self.state, rows, values)
        self.learned += len(due)

    def fresh_silences(self) -> Silences | None:
        """Return what is known of silences before anything is heard."""
        if self.dry_after is None:
            return None
        return Silences(len(self.nothing), len(self.problem.actions), self.problem.delta, self.dry_after)

    def dried(self) -> Cause | None:
        """Return that feedback dried up, if it did: all of it, or a signal that used to come."""
        return None if self.silences is None else self.silences.cause(self.waits.names, self.problem.actions)

    def known(self) -> Known:
        """Return what a decider needs, as a value that does not change."""
        state = State(self.state.memory.copy())
        if self._noted is None:
            self._noted = self.notes.for_deciders()
        return Known(self.problem, self._deciding, self.version, self.retired, self.seq, state, self._noted)

    def whole(self) -> bytes:
        """Return everything, for a snapshot that a learner goes on from."""
        return msgspec.msgpack.encode(
            {
                "seq": self.seq, "at": self.at, "learned": self.learned, "memory": self.state.memory.tobytes(),
                "notes": self.notes.plain(), "waits": self.waits.plain(), "dry_after": self.dry_after,
                "log": [[actions.tobytes(), values.tobytes()] for actions, values in self._log], "parts": self._parts,
                "silences": None if self.silences is None else self.silences.plain(), **self.trips.plain(),
            }
        )  # fmt: skip

    def restore(self, content: bytes) -> None:
        """Go on from what `whole` wrote down."""
        told = msgspec.msgpack.decode(content)
        if told["dry_after"] != self.dry_after:
            raise InvalidProblem(f"it was kept with --dry-after {told['dry_after']}, which is {self.dry_after} now")
        self.state = self.policy.own(State(np.frombuffer(told["memory"]).copy()))
        self.seq, self.at, self.learned = told["seq"], told["at"], told["learned"]
        self._noted = None
        self.notes = Notes.of(told["notes"])
        self.waits.restore(told["waits"])
        if self.silences is not None:
            self.silences.restore(told["silences"])
        self.trips.restore(told)
        self._parts = told["parts"]
        width, signals = self.policy.width, len(self.problem.signals)
        self._log = [
            (np.frombuffer(actions).reshape(-1, width), np.frombuffer(values).reshape(-1, signals))
            for actions, values in told["log"]
        ]


def encoded_known(known: Known) -> bytes:
    """Return what a decider in another process needs beside the problem."""
    return msgspec.msgpack.encode(
        {"seq": known.seq, "memory": known.state.memory.tobytes(), "notes": known.notes.plain()}
    )


def decoded_known(problem: Problem, version: int, retired: frozenset[str], content: bytes) -> Known:
    """Return what `encoded_known` wrote down."""
    told, policy = msgspec.msgpack.decode(content), problem.policy()
    state = policy.own(State(np.frombuffer(told["memory"]).copy()))
    return Known(problem, policy, version, retired, told["seq"], state, Notes.of(told["notes"]))


def beginning(problem: Problem, version: int, retired: frozenset[str]) -> Known:
    """Return what is known before anything is learned."""
    policy = problem.policy()
    return Known(problem, policy, version, retired, 0, policy.start(), Notes())
