"""Monitors of a running experiment: realised costs above a limit, and signals that stopped.

`CircuitBreaker`: each limit has an e-process (`e_process`) that stops the experiment when decisions cost more than the
limit. Each declared cost of the safe action has another one that raises an alert. Both read the table of the outcome
queue: a reported cost counts at once, an unreported cost counts as zero, whatever learning waits for. If a version of
the problem changes a limit, each decision is tested against the limit that it was made under.

`FeedbackMonitor`: one feed can fail while others continue, and its costs would count as zero. A decision has a signal
if the signal is reported in time with a value other than its default; a feed that reports only zeros counts as stopped.
A decision counts once its time is over. After m signals in n decisions for an action and k more decisions without one,

    (n/(n + k))^m ≤ a

ever holds with probability at most a, whatever the constant rate is (docs/theory/server.md). The run after the m-th
signal has the level 6α/(π²m²), so that all of them together raise a false alarm with probability at most α.

Time is that of the log: at most two slots pass between two rows, each 1/16 of the timeout. So nothing expires while
no server runs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from stagewise.agent.e_process import EProcess, RowReader
from stagewise.agent.outcome_queue import BUFFERED, DONE, DROPPED, OutcomeQueue
from stagewise.engine.compile import Floats
from stagewise.policies.problem import Problem
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.signals import Limit, Reward
from stagewise.records.reason import ReasonDetails, TripReason

SLOTS = 16
MIN_UNANSWERED = 100  # unanswered decisions before the first alarm


class CircuitBreaker:
    """The tests of every limit of a problem, and the stops in the log."""

    def __init__(self, problem: Problem, queue: OutcomeQueue) -> None:
        self.problem, self.queue, thresholds = problem, queue, problem.policy().thresholds
        self.names, self.signs = tuple(problem.limits), thresholds.signs.tolist()
        self.safe_index = problem.get_action_index(problem.safe_name)
        self.scaled_limits = get_scaled_thresholds(problem)
        self.declared = [
            cost if sign > 0 else 1.0 - cost for cost, sign in zip(thresholds.declared_safe, self.signs, strict=True)
        ]
        self.limits = {name: EProcess(self.level) for name in self.names}
        self.safe = {name: EProcess(FALSE_ALARMS) for name, c in zip(self.names, self.declared, strict=True) if c == c}
        self.limit_changes: list[tuple[int, list[float]]] = []  # first decision and scaled limits of each version
        self.logged_stops: set[str | None] = set()  # stops in the log: by limit; None: feedback stopped

    @property
    def level(self) -> float:
        """The level of each test: the probability of any false stop is at most δ."""
        return self.problem.delta / max(len(self.names), 1)

    def add_limits(self, decision_index: int, problem: Problem) -> None:
        """Test decisions from this one on against the limits of a new version."""
        self.limit_changes.append((decision_index, get_scaled_thresholds(problem)))

    def get_costs(self, decision_index: int) -> list[float] | None:
        """Return the reported costs of a decision by limit; None if they are no longer in the table."""
        if decision_index < self.queue.base:
            return None
        return [float(self.read_costs(j, decision_index, decision_index + 1)[0]) for j in range(len(self.names))]

    def record_costs(self, decision_index: int, new: Sequence[str]) -> None:
        """Record the first report of signals of a decision."""
        row = decision_index - self.queue.base
        for name in new:
            if name in self.limits and not self.queue.deferred[row]:
                j = self.names.index(name)
                value = float(self.queue.values[row, 1 + j])
                cost = value if self.signs[j] > 0 else 1.0 + value
                if cost != 0.0:  # zero counts already
                    self._raise_costs(j, decision_index, decision_index + 1, cost)

    def update_costs(self, decision_index: int, before: Sequence[float] | None) -> None:
        """Record that a decision was reported as shown or not shown; `before` are its earlier costs."""
        now = self.get_costs(decision_index)
        for j, (old, new) in enumerate(zip(before or (), now or (), strict=True)):
            if new != old and not (math.isnan(new) and math.isnan(old)):
                self._raise_costs(
                    j, decision_index, decision_index + 1, None if math.isnan(new) else max(new - old, 0.0)
                )

    def close_windows(self, before: Sequence[int]) -> None:
        """Record that windows closed; `before` are the earlier ends of closed windows by signal."""
        windows = {window.signal: window for window in self.queue.windows}
        longest = next((window for window in self.queue.windows if window.length == self.queue.longest), None)
        for j, sign in enumerate(self.signs):
            window = windows.get(1 + j)
            last = longest if window is None else window
            if last is None:
                continue
            start, end = before[last.signal], self.queue.closed[last.signal]
            cost = 0.0 if window is None else window.value if sign > 0 else 1.0 + window.value
            base = self.queue.base
            has_deferred = self.queue.deferred[start - base : end - base].any()
            if start < end and (cost != 0.0 or has_deferred):
                self._raise_costs(j, start, end, None if has_deferred or math.isnan(cost) else cost)

    def _raise_costs(self, j: int, start: int, end: int, by: float | None) -> None:
        """Recheck the tests of a limit after values rose by `by`; None: rows were dropped."""
        for test, rows, (least, most) in self.get_tests(j):
            if test.rejection is None and end > test.first:
                test.raise_values(max(start, test.first), end, math.inf if least <= 0.0 else most if by is None else by)
                test.check(rows, self.queue.end)

    def settle(self) -> None:
        """Move learned rows out of the tests; their values are final."""
        for j in range(len(self.names)):
            for test, rows, _ in self.get_tests(j):
                test.settle(rows, self.queue.heads[1 + j], self.queue.end)

    def get_tests(self, j: int) -> list[tuple[EProcess, RowReader, tuple[float, float]]]:
        """Return the tests of a limit, with their row readers and the smallest and largest limit."""
        name, limits = self.names[j], [self.scaled_limits[j], *(values[j] for _, values in self.limit_changes)]
        tests = [(self.limits[name], self.build_row_reader(j, safe=False), (min(limits), max(limits)))]
        if name in self.safe:
            tests.append((self.safe[name], self.build_row_reader(j, safe=True), (self.declared[j], self.declared[j])))
        return tests

    def build_row_reader(self, j: int, safe: bool) -> RowReader:
        """Return a reader of test rows: all decisions against the limit, or safe actions against their cost."""

        def rows(start: int, end: int) -> tuple[Floats, Floats]:
            costs = self.read_costs(j, start, end)
            if not safe:
                return costs, self.get_limits(j, start, end)
            base = self.queue.base
            actions = self.queue.rows[start - base : end - base, 0]
            return np.where(actions == self.safe_index, costs, math.nan), np.full(end - start, self.declared[j])

        return rows

    def read_costs(self, j: int, start: int, end: int) -> Floats:
        """Return the reported costs of decisions in [0, 1]; NaN: not shown or dropped."""
        queue = self.queue
        rows = slice(start - queue.base, end - queue.base)
        status, values = queue.status[rows, 1 + j], queue.values[rows, 1 + j]
        is_reported = ((status == BUFFERED) | (status == DONE)) & (queue.deferred[rows] == 0)
        costs: Floats = np.where(is_reported, values if self.signs[j] > 0 else 1.0 + values, 0.0)
        costs[status == DROPPED] = math.nan
        return costs

    def get_limits(self, j: int, start: int, end: int) -> Floats:
        """Return the limit of each decision at the time it was made."""
        if not self.limit_changes:
            return np.full(end - start, self.scaled_limits[j])
        versions = np.searchsorted([first for first, _ in self.limit_changes], np.arange(start, end), side="right") - 1
        return np.array([limits[j] for _, limits in self.limit_changes])[versions]

    def resume(self) -> None:
        """Restart the tests that stopped the experiment, after a person resumed it; only later decisions count."""
        for name, test in self.limits.items():
            if test.crossed:
                self.limits[name] = EProcess(self.level, self.queue.end)
        self.logged_stops = set()

    def find_breach(self) -> ReasonDetails | None:
        """Return why the experiment must stop; None if it need not."""
        for (name, test), sign in zip(self.limits.items(), self.signs, strict=True):
            if test.rejection is not None:
                count, total = test.rejection
                mean = total / count if sign > 0 else 1.0 - total / count
                return ReasonDetails.of(
                    TripReason.OBSERVED_COST_ABOVE_LIMIT,
                    limit=name,
                    at_most=sign > 0,
                    count=count,
                    mean=mean,
                    level=test.level,
                )
        return None

    def find_refuted_costs(self) -> dict[int, tuple[int, float]]:
        """Return the limits whose declared safe cost is refuted, with the number and mean of costs."""
        rejections = {j: self.safe[name].rejection for j, name in enumerate(self.names) if name in self.safe}
        return {j: (by[0], by[1] / by[0]) for j, by in rejections.items() if by is not None}

    def mark_logged(self, cause: ReasonDetails) -> None:
        """Record that a stop is in the log."""
        self.logged_stops.add(cause.details.get("limit"))

    def is_logged(self, cause: ReasonDetails) -> bool:
        """Return whether the log has a stop of this kind; it is not repeated after a person resumes."""
        return cause.details.get("limit") in self.logged_stops

    def to_dict(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        tests = {"limits": self.limits, "safe": self.safe}
        states = {kind: {name: test.to_list() for name, test in group.items()} for kind, group in tests.items()}
        return {**states, "limit_changes": self.limit_changes, "logged_stops": sorted(self.logged_stops, key=str)}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Restore the state that `to_dict` returned."""
        self.limit_changes = [(first, limits) for first, limits in content["limit_changes"]]
        self.logged_stops = set(content["logged_stops"])
        for kind, tests in (("limits", self.limits), ("safe", self.safe)):
            for name, test in tests.items():
                test.restore(content[kind][name])


def get_scaled_thresholds(problem: Problem) -> list[float]:
    """Return each limit in [0, 1], oriented so that lower costs are better."""
    thresholds = problem.policy().thresholds
    pairs = zip(thresholds.values, thresholds.signs, strict=True)
    return [float(value if sign > 0 else 1.0 - value) for value, sign in pairs]


class TimeSlot(msgspec.Struct):
    """Decisions that expire together."""

    number: int
    first: int
    """The index of the first decision."""
    decisions: list[int]
    """By action."""
    observed: list[list[int]]
    """By signal and action."""


class FeedbackMonitor:
    """Counts of decisions and signals by action, and the decisions whose time is not over."""

    def __init__(self, signals: int, actions: int, level: float, seconds: float) -> None:
        self.seconds, self.level = seconds, level / (signals * actions)
        self.width = max(round(seconds * 1e6 / SLOTS), 1)
        self.at = self.clock = 0  # of the last row, in microseconds: by the store's clock, and without pauses
        self.pending: list[TimeSlot] = []
        self.decisions = [0] * actions
        self.observed = [[[0, 0] for _ in range(actions)] for _ in range(signals)]  # m, n by signal and action
        self.answered = self.unanswered = 0  # decisions before the last outcome; expired decisions after it

    def advance(self, at: int) -> None:
        """Advance to the time of the next row."""
        self.clock += min(at - self.at, 2 * self.width)
        self.at = at
        while self.pending and self.pending[0].number + SLOTS < self.clock // self.width:
            self._count(self.pending.pop(0))

    def _count(self, slot: TimeSlot) -> None:
        """Count expired decisions; signals count for the last of them, which can only delay an alarm."""
        for action, count in enumerate(slot.decisions):
            self.decisions[action] += count
        for by_action, observed in zip(self.observed, slot.observed, strict=True):
            for action, observations in enumerate(observed):
                if observations:
                    by_action[action] = [by_action[action][0] + observations, self.decisions[action]]
        if slot.first >= self.answered:
            self.unanswered += sum(slot.decisions)

    def record_decision(self, decision_index: int, action: int) -> None:
        """Record a decision."""
        number = self.clock // self.width
        if not self.pending or self.pending[-1].number < number:
            actions = len(self.decisions)
            self.pending.append(TimeSlot(number, decision_index, [0] * actions, [[0] * actions for _ in self.observed]))
        self.pending[-1].decisions[action] += 1

    def record_signal(self, decision_index: int, action: int, signal: int) -> None:
        """Record a signal with a value other than its default; ignored if it is late."""
        slot = next((slot for slot in reversed(self.pending) if slot.first <= decision_index), None)
        if slot is not None:
            slot.observed[signal][action] += 1

    def record_outcome(self, decisions: int) -> None:
        """Record an outcome of any kind, after this many decisions."""
        self.answered, self.unanswered = decisions, 0

    def is_tick_due(self, now: int) -> bool:
        """Return whether time has passed without a row while decisions are pending."""
        return bool(self.pending) and now - self.at >= self.width

    def find_cause(self, signals: Sequence[str], actions: Sequence[str]) -> ReasonDetails | None:
        """Return the cause if all outcomes stopped, or one signal of an action beyond chance."""
        if self.unanswered >= MIN_UNANSWERED:
            return ReasonDetails.of(TripReason.FEEDBACK_STOPPED, decisions=self.unanswered, seconds=self.seconds)
        for signal, by_action in enumerate(self.observed):
            for action, (count, before) in enumerate(by_action):
                total = self.decisions[action]
                if not count or before == total:
                    continue
                if count * math.log(before / total) <= math.log(6.0 * self.level / (math.pi * count) ** 2):
                    return ReasonDetails.of(
                        TripReason.SIGNAL_STOPPED, signal=signals[signal], action=actions[action],
                        decisions=total - before, seconds=self.seconds, every=before / count,
                    )  # fmt: skip
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        names = ("seconds", "at", "clock", "decisions", "observed", "answered", "unanswered")
        return {name: getattr(self, name) for name in names} | {"pending": msgspec.to_builtins(self.pending)}

    def restore(self, content: dict[str, Any]) -> None:
        """Restore the state that `to_dict` returned."""
        self.at, self.clock, self.decisions, self.observed = (
            content[k] for k in ("at", "clock", "decisions", "observed")
        )
        self.answered, self.unanswered = content["answered"], content["unanswered"]
        self.pending = msgspec.convert(content["pending"], list[TimeSlot])


def get_default_value(signal: Reward | Limit) -> float:
    """Return the value of a signal that counts if nothing is reported."""
    window = signal.outcome_window
    return signal.low if window is None or window.drops else float(window.missing)
