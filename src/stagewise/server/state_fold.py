"""The learner's state: a fold of the log, equal to the bit for any division of rows into batches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from stagewise.agent.learned_state import LearnedState, acknowledge_alert
from stagewise.agent.observed_costs import build_safe_cost_cause, format_safe_cost_name
from stagewise.agent.report import list_segment_names
from stagewise.engine.compile import Floats
from stagewise.policies.context_encoder import build_rows
from stagewise.policies.policy import PolicyState
from stagewise.policies.problem import Problem
from stagewise.problem.columns import to_objects
from stagewise.problem.context import hash_segment
from stagewise.problem.division import NO_BUCKET, ScoreDivision
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.signals import scale_outcome
from stagewise.records.random_key import FIRST
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.controls import ACKNOWLEDGE, ERASE, FORGET_COSTS, RESUME, TRIP
from stagewise.server.decide import DecisionRecord, PolicySnapshot, decode_decision
from stagewise.server.event_log import (
    CONTROL,
    DECISION,
    LOG,
    OUTCOME,
    PROBLEM,
    SHOWN,
    Event,
    decode_numbers,
    encode_numbers,
)
from stagewise.server.monitors import CircuitBreaker, FeedbackMonitor, get_default_value
from stagewise.server.offline_log import DECODE_PART, OfflineLogPart
from stagewise.server.outcomes import build_queue, decode_outcome, forget_indices, order_times, report_outcome

CHECK_INTERVAL = 256  # decisions between two checks of the declared assumptions


class StateFold:
    """The state after row `seq` of an experiment's log, for one version of its problem.

    Args:
        problem: The problem of this version.
        version: The number of the version.
        retired: Actions that are no longer available.
        feedback_timeout: Seconds in which signals are expected; None: feedback is not monitored.
    """

    def __init__(
        self,
        problem: Problem,
        version: int,
        retired: frozenset[str] = frozenset(),
        feedback_timeout: float | None = None,
    ) -> None:
        self.problem, self.version, self.retired, self.feedback_timeout = problem, version, retired, feedback_timeout
        self.policy = problem.policy()
        self._decision_policy = problem.policy()  # used by deciding threads meanwhile
        self.seq = self.at = 0  # of the last row
        self.seen = 0  # the highest number so far
        self._indices: dict[int, int] = {}  # of decisions that the queue has, by number
        self.learned = LearnedState(self.policy)
        self.signs = dict(zip(problem.limits, self.policy.thresholds.signs.tolist(), strict=True))
        self.queue = build_queue(problem.signals, self.policy.width, self.scale_value)
        self.circuit_breaker = CircuitBreaker(problem, self.queue)
        self.default_values = {name: get_default_value(signal) for name, signal in problem.signals.items()}
        self.feedback_monitor = self.new_feedback_monitor()
        self._due: list[tuple[int, int]] = []  # values to learn, by decision index and signal
        self._log: list[tuple[Floats, Floats]] = []  # parts of an incomplete offline log
        self._parts = 0
        self._problems: list[Problem] = []  # of the versions so far
        self._current = 0  # the number of the version at this row

    def take(self, events: Sequence[Event]) -> None:
        """Apply the rows that follow `seq`."""
        bodies = [msgspec.json.decode(event.body) for event in events if event.kind == PROBLEM]
        self._problems += [Problem.from_dict(body["problem"]) for body in bodies]
        events = order_times(events, self.at)
        made = [event for event in events if event.kind == DECISION]
        decisions = [decode_decision(event.body) for event in made]
        deferred = [bool(one.request.get("deferred")) for one in decisions]
        self.queue.stage(self.build_action_rows(decisions), [event.at for event in made], deferred)
        next_decision = iter(decisions)
        for event in events:
            self.check_next("row of the log", event.seq, self.seq + 1)
            self.seq, self.at, self.seen = event.seq, event.at, max(self.seen, event.number)
            self.advance(event.at)
            if event.kind == DECISION:
                self.apply_decision(next(next_decision), event)
            elif event.kind == OUTCOME:
                self.apply_outcome(event)
            elif event.kind == CONTROL:
                self.apply_control(msgspec.json.decode(event.body))
            elif event.kind == LOG:
                self.apply_log_part(DECODE_PART(event.body))
            elif event.kind == PROBLEM:
                self._current += 1
                self.circuit_breaker.add_limits(self.queue.end, self._problems[self._current - 1])
        self.learn()
        self.circuit_breaker.settle()
        forget_indices(self._indices, self.queue)

    def check_next(self, what: str, number: int, expected: int) -> None:
        """Reject a log with a gap."""
        if number != expected:
            subject = f"after row {self.seq} the number of the next {what}"
            raise InvalidProblem.must_be(ErrorCode.STORE_CORRUPT, subject, number, str(expected))

    def build_action_rows(self, decisions: Sequence[DecisionRecord]) -> Floats:
        """Return the rows that a policy learns (n, D): action, 1, context numbers, segments."""
        problem, contexts = self.problem, [one.request["context"] for one in decisions]
        columns = {name: to_objects([one.get(name) for one in contexts]) for name in problem.context_names}
        encoded = problem.encode_columns(columns, len(contexts))
        for error in encoded.refused.values():  # it was accepted when it was logged
            raise error
        self.learned.statistics.count_context(encoded.count_clipped())
        times = [one.time / 1e6 for one in decisions] if problem.needs_times else None
        rows = build_rows([problem.get_action_index(one.action) for one in decisions], encoded, times)
        self.leave_out_old_scores(rows, [one.problem for one in decisions])
        return rows

    def leave_out_old_scores(self, rows: Floats, versions: Sequence[int]) -> None:
        """Put users who had another score, by the version of the problem, into no bucket, so they are not learned."""
        for place, division in enumerate(self.problem.divisions):
            if isinstance(division, ScoreDivision):
                known = enumerate(self._problems, 1)
                others = {number for number, problem in known if division not in problem.divisions}
                is_old = np.array([version in others for version in versions], dtype=np.bool_)
                rows[is_old, self.policy.first_segment + place] = NO_BUCKET

    def divide_anew(self, before: Problem, rows: Floats) -> Floats:
        """Return rows (n, D) of an earlier version of the problem as rows of this one; who had another score has none.

        A division that is new is a score: nothing else of a division changes.
        """
        first, last = self.policy.first_segment, self.policy.first_segment + len(before.divisions)
        places = {division: first + place for place, division in enumerate(before.divisions)}
        none = np.full(len(rows), float(NO_BUCKET))
        keys = [rows[:, places[one]] if one in places else none for one in self.problem.divisions]
        return np.column_stack([rows[:, :first], *keys, rows[:, last:]])

    def advance(self, at: int) -> None:
        """Advance the time; windows close."""
        closed = self.queue.advance(at)  # each counts as declared from now on
        if closed:
            has_costs = [self.circuit_breaker.observe_rows(indices, signal) for signal, indices in closed]
            self._due += self.queue.take_pairs()
            if any(has_costs) and self.circuit_breaker.check():
                self.note_safe_cost_alerts()
        if self.feedback_monitor is not None:
            self.feedback_monitor.advance(at)

    def apply_decision(self, decision: DecisionRecord, event: Event) -> None:
        """Apply a decision; check the declared assumptions from time to time.

        Contradictions are recorded; they stay until a person acknowledges them. Tests begin anew with the first
        decision after a change was found, so what is due is learned before each.
        """
        if self.policy.moduli:
            self.learn()
        index = self._indices[event.number] = self.queue.end
        row = self.queue.add_staged()
        if self.feedback_monitor is not None:
            self.feedback_monitor.record_decision(index, int(row[0]))
        if decision.reason == FallbackReason.ASSUMPTION_CONTRADICTED or index % CHECK_INTERVAL == 0:
            self.learn()
            self.learned.decide(self.policy.context_in(row), FIRST)

    def apply_outcome(self, event: Event) -> None:
        """Apply an outcome; late signals are not learned."""
        index, values, queue = self._indices.get(event.decision, -1), decode_outcome(event.body).values, self.queue
        new = report_outcome(queue, index, values, self.scale_value)
        if index in queue.heads or queue.first:  # else nothing waited for it
            self._due += queue.take_pairs()
        changed = range(len(queue.names)) if SHOWN in values else map(queue.names.index, new)
        if self.circuit_breaker.observe(index, changed):
            self.note_safe_cost_alerts()
        if self.feedback_monitor is not None:
            self.feedback_monitor.record_outcome(queue.end)
            for name in new:
                if values[name] != self.default_values[name]:
                    action = int(queue.rows[index - queue.base, 0])
                    self.feedback_monitor.record_signal(index, action, queue.names.index(name))

    def note_safe_cost_alerts(self) -> None:
        """Record declared safe costs that the reported costs refute."""
        for j, (count, mean) in self.circuit_breaker.find_refuted_costs().items():
            alerts, name = self.learned.statistics.alerts, format_safe_cost_name(self.policy, j)
            if name not in alerts:
                alerts[name] = build_safe_cost_cause(self.policy, j, count, mean)

    def scale_value(self, name: str, value: float) -> float:
        """Return a value in [0, 1], signed so that lower costs are better."""
        scaled = scale_outcome(self.problem.signals[name], name, value)
        return float(self.signs[name]) * scaled if name in self.signs else scaled

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of the decisions in the tables."""
        return islice(self._indices, self.queue.base - self.queue.end + len(self._indices), None)

    def is_pending(self, number: int) -> bool:
        """Return whether a value of a decision may still be learned."""
        return self._indices[number] >= self.queue.first_changeable

    def find_closing(self, number: int) -> int | None:
        """Return when the last window of a decision closes; None if it lacks a signal that has none."""
        index = self._indices[number]
        if any(self.queue.is_missing(index, k) for k in self.queue.unbounded):
            return None
        return self.queue.date(index) + self.queue.longest

    def erase_rows(self, numbers: Iterable[int]) -> None:
        """Erase the contexts of decisions that are over from the tables."""
        for number in numbers:
            index = self._indices.get(number, -1)
            if self.queue.base <= index < self.queue.first_changeable:
                self.queue.rows[index - self.queue.base, 2:] = 0.0

    def apply_control(self, body: Mapping[str, Any]) -> None:
        """Apply a control; an acknowledgement changes the learned state."""
        if body["what"] == TRIP:
            self.circuit_breaker.mark_logged(ReasonDetails.from_json((body["trip"], body["details"])))
        elif body["what"] == RESUME:
            self.learn()
            self.circuit_breaker.resume()
            self.feedback_monitor = self.new_feedback_monitor()
        elif body["what"] == ERASE:
            self.learn()
            self.erase_rows(body["decisions"])
        elif body["what"] == FORGET_COSTS:
            self.learn()
            with suppress(StagewiseError):  # the action is not of this version of the problem
                self.learned.forget_costs(body["action"], body["before"], self.queue.pending_rows)
        elif body["what"] == ACKNOWLEDGE:
            self.learn()
            memory, note = self.learned.state.memory, f"{body['actor']}: {body['reason']}"
            with suppress(StagewiseError):  # the alert is closed, or not of this version of the problem
                acknowledge_alert(self.policy, memory, self.learned.statistics, body["name"], note)

    def apply_log_part(self, log_part: OfflineLogPart) -> None:
        """Apply a part of an offline log; the last one learns all parts as one batch, as an agent does."""
        rows = log_part.read(self.policy)
        self._parts += 1
        self.check_next("part of an offline log", log_part.number, self._parts)
        actions = np.array(rows.actions, dtype=np.float64)
        self.leave_out_old_scores(actions, [self._current] * len(actions))
        self._log.append((actions, rows.values))
        if log_part.number == log_part.parts:
            actions, values = (np.concatenate(columns) for columns in zip(*self._log, strict=True))
            self._log = []
            self.learned.learn_log(actions, values)

    def learn(self) -> None:
        """Learn all due values in order, in compiled code, up to each drift check, whatever the batch."""
        due, self._due = self._due, []
        if due:
            indices, signals = np.array(due).T
            at, values = indices - self.queue.base, np.full((len(due), len(self.queue.names)), math.nan)
            values[np.arange(len(due)), signals] = self.queue.values[at, signals]
            self.learned.learn_rows(indices, self.queue.rows[at], values)
            self.circuit_breaker.begin_anew_after_changes(self.learned.statistics)

    def new_feedback_monitor(self) -> FeedbackMonitor | None:
        """Return a new feedback monitor; None without a feedback timeout."""
        if self.feedback_timeout is None:
            return None
        signals, actions = len(self.default_values), len(self.problem.action_names)
        return FeedbackMonitor(signals, actions, self.problem.delta, self.feedback_timeout)

    def find_feedback_cause(self) -> ReasonDetails | None:
        """Return the cause if feedback stopped: all of it, or one signal."""
        if self.feedback_monitor is None:
            return None
        return self.feedback_monitor.find_cause(self.queue.names, self.problem.action_names)

    def build_snapshot(self) -> PolicySnapshot:
        """Return an immutable snapshot for deciders."""
        state, statistics = PolicyState(self.learned.state.memory.copy()), self.learned.statistics.without_history()
        learned = LearnedState(self._decision_policy, state, statistics)
        return PolicySnapshot(self.problem, learned, self.version, self.retired, self.seq, self.seen)

    def encode(self) -> bytes:
        """Encode the complete state, from which a learner continues."""
        queue, memory, log = self.queue.to_dict(), self.learned.state.memory, [actions for actions, _ in self._log]
        numbers = islice(self._indices, queue["base"] - self.queue.end + len(self._indices), None)
        return msgspec.msgpack.encode(
            {
                "seq": self.seq,
                "at": self.at,
                "seen": self.seen,
                "numbers": encode_numbers(numbers),
                **self.learned.to_dict(),
                "queue": queue,
                "segments": list_segment_names(self.policy, memory, self.queue.kept_rows, *log),
                "feedback_timeout": self.feedback_timeout,
                "log": [[actions.tobytes(), values.tobytes()] for actions, values in self._log],
                "parts": self._parts,
                "feedback_monitor": None if self.feedback_monitor is None else self.feedback_monitor.to_dict(),
                "circuit_breaker": self.circuit_breaker.to_dict(),
                "problems": [problem.to_dict() for problem in self._problems],
                "current": self._current,
            },
            enc_hook=np.ndarray.tobytes,
        )

    def change_version(self, problem: Problem, version: int, retired: frozenset[str]) -> None:
        """Go on with a later version of the problem where the rows that it would be folded from are gone.

        What was learned stays, except by an earlier version of a score, whose users are in no bucket of the new one.
        The tests of limits go on; the feedback monitor begins anew.
        """
        before = self.problem
        self.problem, self.version, self.retired = problem, version, retired
        self.policy, self._decision_policy = problem.policy(), problem.policy()
        self.learned.extend(self.policy)
        self.queue.replace_rows(self.divide_anew(before, self.queue.rows))
        self._log = [(self.divide_anew(before, actions), values) for actions, values in self._log]
        tests = self.circuit_breaker.to_dict()
        self.circuit_breaker = CircuitBreaker(problem, self.queue)
        self.circuit_breaker.restore(tests)
        self.feedback_monitor = self.new_feedback_monitor()

    def restore(self, content: bytes, *, is_checkpoint: bool = False) -> None:
        """Restore the state that `encode` returned; a checkpoint fits any feedback timeout."""
        state = msgspec.msgpack.decode(content)
        is_same = state["feedback_timeout"] == self.feedback_timeout
        if not is_same and not is_checkpoint:
            template = "the snapshot was saved with --feedback-timeout {saved}; the server has {feedback_timeout}"
            data = {"saved": state["feedback_timeout"], "feedback_timeout": self.feedback_timeout}
            raise InvalidProblem(ErrorCode.STATE_MISMATCH, template, **data)
        for segment in state["segments"]:
            hash_segment(segment)  # registers the segment's name, which later causes tell
        self.learned.restore(state)
        self.seq, self.at, self.seen = state["seq"], state["at"], state["seen"]
        self.queue.restore(state["queue"])
        self._indices = dict(zip(decode_numbers(state["numbers"]), range(self.queue.base, self.queue.end), strict=True))
        if self.feedback_monitor is not None and is_same:
            self.feedback_monitor.restore(state["feedback_monitor"])
        self.circuit_breaker.restore(state["circuit_breaker"])
        self._problems, self._current = [Problem.from_dict(one) for one in state["problems"]], state["current"]
        self._parts, width, signals = state["parts"], self.policy.width, len(self.problem.signals)
        self._log = [
            (np.frombuffer(actions).reshape(-1, width), np.frombuffer(values).reshape(-1, signals))
            for actions, values in state["log"]
        ]
