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

from stagewise.agent.agent_statistics import Statistics
from stagewise.agent.e_process import EProcess
from stagewise.agent.observed_costs import LIMIT, SAFE, CostTests, to_unit_costs
from stagewise.agent.outcome_queue import OutcomeQueue
from stagewise.policies.problem import Problem
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.signals import Limit, Reward
from stagewise.records.reason import ReasonDetails, TripReason

SLOTS = 16
MIN_UNANSWERED = 100  # unanswered decisions before the first alarm


class CircuitBreaker(CostTests):
    """The tests of every limit of a problem, and the stops in the log; any false stop has probability at most δ.

    A limit with drift="jumps" promises nothing between a jump and its detection: its test has the level of the
    assumption tests, so that the action that jumped is found first and held back alone.
    """

    def __init__(self, problem: Problem, queue: OutcomeQueue) -> None:
        self.names, policy = tuple(problem.limits), problem.policy()
        limits, declared = to_unit_costs(policy)
        signs, safe_index = policy.thresholds.signs.tolist(), problem.get_action_index(problem.safe_name)
        super().__init__(queue, signs, limits, declared, safe_index, problem.delta / max(len(limits), 1))
        for j, name in enumerate(self.names):
            if allows_jumps(problem.limits[name]):  # the detector comes first
                self.tests[LIMIT, j] = EProcess(FALSE_ALARMS, queue.end)
        self.logged_stops: set[str | None] = set()  # stops in the log: by limit; None: feedback stopped

    def add_limits(self, decision_index: int, problem: Problem) -> None:
        """Test decisions from this one on against the limits of a new version."""
        self.limit_changes.append((decision_index, to_unit_costs(problem.policy())[0]))

    def resume(self) -> None:
        """Restart the tests that stopped the experiment, after a person resumed it; only later decisions count."""
        for key, test in self.tests.items():
            if key[0] == LIMIT and test.crossed:
                self.begin_anew(key[1])
        self.logged_stops = set()

    def begin_anew_after_changes(self, statistics: Statistics) -> None:
        """Test limits from the next decision on if a change of one action explains what their decisions cost."""
        for name in statistics.changed:
            self.begin_anew(self.names.index(name))
        statistics.changed = set()

    def find_breach(self) -> ReasonDetails | None:
        """Return why the experiment must stop; None if it need not."""
        for j, (name, sign) in enumerate(zip(self.names, self.signs, strict=True)):
            test = self.tests[LIMIT, j]
            if test.rejection is not None:
                count, total = test.rejection
                mean = total / count if sign > 0 else 1.0 - total / count
                return ReasonDetails.of(
                    TripReason.OBSERVED_COST_ABOVE_LIMIT, limit=name, at_most=sign > 0, count=count, mean=mean,
                    level=test.level,
                )  # fmt: skip
        return None

    def find_refuted_costs(self) -> dict[int, tuple[int, float]]:
        """Return the limits whose declared safe cost is refuted, with the number and mean of costs."""
        rejections = {j: test.rejection for (kind, j), test in self.tests.items() if kind == SAFE}
        return {j: (by[0], by[1] / by[0]) for j, by in rejections.items() if by is not None}

    def mark_logged(self, cause: ReasonDetails) -> None:
        """Record that a stop is in the log."""
        self.logged_stops.add(cause.details.get("limit"))

    def is_logged(self, cause: ReasonDetails) -> bool:
        """Return whether the log has a stop of this kind; it is not repeated after a person resumes."""
        return cause.details.get("limit") in self.logged_stops

    def to_dict(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        stops = sorted(self.logged_stops, key=str)
        return {"tests": self.to_list(), "limit_changes": self.limit_changes, "logged_stops": stops}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Restore the state that `to_dict` returned."""
        super().restore(content["tests"])
        self.limit_changes = [(first, limits) for first, limits in content["limit_changes"]]
        self.logged_stops = set(content["logged_stops"])


def allows_jumps(limit: Limit) -> bool:
    """Return whether a limit may be exceeded until a jump is found, after which one action is held back."""
    return limit.modulus is not None and limit.modulus.amount == 0.0 and limit.on_jump != "stop"


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
