"""Whether a signal that used to come has stopped: one feed can die while another goes on, and its costs count as none.

A signal is heard of a decision when it is told within the seconds that it is given, with another value than the one
that counts where nothing is told: a feed that tells zeros is as silent as one that tells nothing. A decision counts
once these seconds are over, heard or not. After m hearings in n decisions for an action and k more without one,

    (n/(n + k))^m ≤ a

ever comes true with probability a at most, whatever the rate is, as long as it stays the same (docs/theory/server.md).
The run after the m-th hearing has a level of its own, 6α/(π²m²): all of them together alarm by chance with probability
α at most.

Time is the log's: between two rows at most two slots pass, each a 16th of the seconds. So nothing grows silent while no
desk runs and nobody could tell anything.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.declared import Limit, Reward
from stagewise.records.reason import Cause, Reason

SLOTS = 16
FEW = 100  # decisions without an outcome of any kind that are no alarm yet


class Silence(NamedTuple):
    """What has stopped."""

    signal: int
    action: int
    decisions: int
    """For the action, since one that it was heard of."""
    every: float
    """How many decisions there were for one of them before."""


class Slot(msgspec.Struct):
    """Decisions that are made and count together."""

    number: int
    first: int
    """The place of the first one."""
    decisions: list[int]
    """By action."""
    heard: list[list[int]]
    """By signal and action."""


class Silences:
    """Decisions by action, those that each signal was heard of, and those that still have time."""

    def __init__(self, signals: int, actions: int, level: float, seconds: float) -> None:
        self.seconds, self.level = seconds, level / (signals * actions)
        self.width = max(round(seconds * 1e6 / SLOTS), 1)
        self.at = self.clock = 0  # of the last row, in microseconds: by the store's clock, and without pauses
        self.waiting: list[Slot] = []
        self.decisions = [0] * actions
        self.heard = [[[0, 0] for _ in range(actions)] for _ in range(signals)]  # m, n
        self.answered = self.unanswered = 0  # decisions before the last outcome of any kind; those after, out of time

    def passed(self, at: int) -> None:
        """Let time pass, up to that of the next row."""
        self.clock += min(at - self.at, 2 * self.width)
        self.at = at
        while self.waiting and self.waiting[0].number + SLOTS < self.clock // self.width:
            self._count(self.waiting.pop(0))

    def _count(self, slot: Slot) -> None:
        """Count decisions whose time is over; what was heard counts as heard of the last one, which alarms later."""
        for action, count in enumerate(slot.decisions):
            self.decisions[action] += count
        for told, heard in zip(self.heard, slot.heard, strict=True):
            for action, times in enumerate(heard):
                if times:
                    told[action] = [told[action][0] + times, self.decisions[action]]
        if slot.first >= self.answered:
            self.unanswered += sum(slot.decisions)

    def decide(self, place: int, action: int) -> None:
        """Take in a decision."""
        number = self.clock // self.width
        if not self.waiting or self.waiting[-1].number < number:
            actions = len(self.decisions)
            self.waiting.append(Slot(number, place, [0] * actions, [[0] * actions for _ in self.heard]))
        self.waiting[-1].decisions[action] += 1

    def hear(self, place: int, action: int, signal: int) -> None:
        """Take in that a signal came of a decision, and was no nothing; too late, it is not heard."""
        slot = next((slot for slot in reversed(self.waiting) if slot.first <= place), None)
        if slot is not None:
            slot.heard[signal][action] += 1

    def answer(self, decisions: int) -> None:
        """Take in that an outcome of any kind came, after so many decisions."""
        self.answered, self.unanswered = decisions, 0

    def rests(self, now: int) -> bool:
        """Say whether time passes of which no row tells, while decisions wait for what they are told."""
        return bool(self.waiting) and now - self.at >= self.width

    def longest(self) -> Silence | None:
        """Return a silence that is beyond chance, if there is one."""
        for signal, by_action in enumerate(self.heard):
            for action, (times, before) in enumerate(by_action):
                total = self.decisions[action]
                if not times or before == total:
                    continue
                if times * math.log(before / total) <= math.log(6.0 * self.level / (math.pi * times) ** 2):
                    return Silence(signal, action, total - before, before / times)
        return None

    def cause(self, signals: tuple[str, ...], actions: Sequence[str]) -> Cause | None:
        """Return what has stopped coming, if something has: outcomes of any kind, or a signal of an action."""
        if self.unanswered >= FEW:
            return Cause.of(Reason.FEEDBACK_STOPPED, decisions=self.unanswered, seconds=self.seconds)
        found = self.longest()
        if found is None:
            return None
        return Cause.of(
            Reason.SIGNAL_STOPPED, signal=signals[found.signal], action=actions[found.action],
            decisions=found.decisions, seconds=self.seconds, every=found.every,
        )  # fmt: skip

    def plain(self) -> dict[str, Any]:
        """Return it for a snapshot."""
        names = ("seconds", "at", "clock", "decisions", "heard", "answered", "unanswered")
        return {name: getattr(self, name) for name in names} | {"waiting": msgspec.to_builtins(self.waiting)}

    def restore(self, plain: dict[str, Any]) -> None:
        """Go on from what `plain` wrote down."""
        self.at, self.clock, self.decisions, self.heard = (plain[k] for k in ("at", "clock", "decisions", "heard"))
        self.answered, self.unanswered = plain["answered"], plain["unanswered"]
        self.waiting = msgspec.convert(plain["waiting"], list[Slot])


def nothing_of(signal: Reward | Limit) -> float:
    """Return the value of a signal that says that nothing happened: what counts where none is told."""
    window = signal.waits
    return signal.low if window is None or window.drops else float(window.missing)
