"""Detects a signal that used to be reported and stopped.

One feed can fail while others continue, and its costs would count as zero. A decision has a signal if the signal is
reported in time with a value other than its default; a feed that reports only zeros counts as stopped. A decision
counts once its time is over. After m signals in n decisions for an action and k more decisions without one,

    (n/(n + k))^m ≤ a

ever holds with probability at most a, whatever the constant rate is (docs/theory/server.md). The run after the m-th
signal has the level 6α/(π²m²), so that all of them together raise a false alarm with probability at most α.

Time is that of the log: at most two slots pass between two rows, each 1/16 of the timeout. So nothing expires while
no server runs.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.signals import Limit, Reward
from stagewise.records.reason import Reason, ReasonDetails

SLOTS = 16
MIN_UNANSWERED = 100  # unanswered decisions before the first alarm


class StoppedSignal(NamedTuple):
    """A signal that stopped for an action."""

    signal: int
    action: int
    decisions: int
    """Decisions for the action since the last one with the signal."""
    every: float
    """Decisions per signal before."""


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

    def find_stopped_signal(self) -> StoppedSignal | None:
        """Return a signal that stopped beyond chance, if there is one."""
        for signal, by_action in enumerate(self.observed):
            for action, (observations, before) in enumerate(by_action):
                total = self.decisions[action]
                if not observations or before == total:
                    continue
                if observations * math.log(before / total) <= math.log(
                    6.0 * self.level / (math.pi * observations) ** 2
                ):
                    return StoppedSignal(signal, action, total - before, before / observations)
        return None

    def find_cause(self, signals: tuple[str, ...], actions: Sequence[str]) -> ReasonDetails | None:
        """Return the cause if all outcomes stopped, or one signal of an action."""
        if self.unanswered >= MIN_UNANSWERED:
            return ReasonDetails.of(Reason.FEEDBACK_STOPPED, decisions=self.unanswered, seconds=self.seconds)
        stopped = self.find_stopped_signal()
        if stopped is None:
            return None
        return ReasonDetails.of(
            Reason.SIGNAL_STOPPED, signal=signals[stopped.signal], action=actions[stopped.action],
            decisions=stopped.decisions, seconds=self.seconds, every=stopped.every,
        )  # fmt: skip

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
    window = signal.waits
    return signal.low if window is None or window.drops else float(window.missing)
