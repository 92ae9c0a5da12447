"""Decisions in their order, and what is known of each: outcomes are counted as the learner learns them.

A signal of a decision is settled when it was told, when its window has closed (it then counts as `missing`, or not at
all), or when the decision was not carried out. It is counted when all earlier decisions are settled in it too: whoever
counted what comes first would see clicks before he sees that there were none.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from stagewise.policies.problem import Problem
from stagewise.service.records import SHOWN

ROOM = 1024
NEVER = np.iinfo(np.int64).max


class Settled(NamedTuple):
    """A signal of a decision that counts from now on."""

    signal: str
    at: int
    """When the decision was made."""
    what: int
    """What the line was told of the decision."""
    value: float


class Line:
    """The decisions that wait for something, oldest first."""

    def __init__(self) -> None:
        self.signals: tuple[str, ...] = ()
        self.windows = np.empty(0, dtype=np.int64)  # in microseconds
        self.longest = NEVER  # of the windows that there are: then a deferred decision is given up
        self.missing = np.empty(0)  # NaN: such a row is left out
        self.next: dict[str, int] = {}  # by signal, the first place that does not count yet
        self.held: dict[str, int] = {}  # and how many after it are known
        self.late: dict[str, int] = {}
        self.first, self.end, self.now = 0, 0, 0
        self.at = np.empty(ROOM, dtype=np.int64)
        self.what = np.empty(ROOM, dtype=np.int64)
        self.shown = np.empty(ROOM, dtype=np.bool_)
        self.deferred = np.empty(ROOM, dtype=np.bool_)  # not known to be carried out, so it does not count
        self.values = np.empty((ROOM, 0))

    def declare(self, problem: Problem) -> None:
        """Follow the signals of a problem; those that are new are counted from the next decision on."""
        before, old = self.signals, self.values
        self.signals, windows = tuple(problem.signals), problem.windows
        ends = [windows.get(name) for name in self.signals]
        self.windows = np.array([NEVER if one is None else round(1e6 * one.seconds) for one in ends], dtype=np.int64)
        self.longest = max((int(one) for one in self.windows if one < NEVER), default=NEVER)
        told = [np.nan if one is None or one.drops else float(one.missing) for one in ends]
        self.missing = np.array(told, dtype=np.float64)
        self.values = np.full((len(self.at), len(self.signals)), np.nan)
        for j, name in enumerate(self.signals):
            if name in before:
                self.values[:, j] = old[:, before.index(name)]
        self.next = {name: self.next.get(name, self.end) for name in self.signals}
        self.held = {name: self.held.get(name, 0) for name in self.signals}
        self.late = {name: self.late.get(name, 0) for name in self.signals}

    def decided(self, at: int, what: int, *, deferred: bool = False) -> None:
        """Add a decision."""
        row = self.end - self.first
        if row == len(self.at):
            self._make_room()
            row = self.end - self.first
        self.at[row], self.what[row], self.shown[row], self.values[row] = at, what, True, np.nan
        self.deferred[row] = deferred
        self.end += 1

    def told(self, place: int, values: Mapping[str, float]) -> list[tuple[str, float]]:
        """Note what is known of a decision; return which signals are new, and after how many seconds they came."""
        row, new = place - self.first, []
        if not 0 <= place < self.end:
            return []
        if row >= 0 and SHOWN in values:
            self.shown[row], self.deferred[row] = values[SHOWN] != 0.0, False
        for j, name in enumerate(self.signals):
            if name not in values:
                continue
            if place < self.next[name] or self.windows[j] <= self.now - self.at[row]:
                self.late[name] += 1
            elif np.isnan(self.values[row, j]):
                self.values[row, j] = values[name]
                self.held[name] += 1
                new.append((name, float(self.now - self.at[row]) / 1e6))
        return new

    def passed(self, now: int) -> Iterator[Settled]:
        """Let time pass, and yield what counts from now on."""
        self.now = max(self.now, now)
        for j, name in enumerate(self.signals):
            window, place = int(self.windows[j]), self.next[name]
            while place < self.end:
                row = place - self.first
                value, shown, deferred = float(self.values[row, j]), bool(self.shown[row]), bool(self.deferred[row])
                length = min(window, self.longest) if deferred and window == NEVER else window
                known, closed = value == value, length <= self.now - int(self.at[row])
                if shown and (deferred or not known) and not closed:
                    break
                place += 1
                self.held[name] -= known
                if not known:
                    value = float(self.missing[j])
                if shown and not deferred and value == value:
                    yield Settled(name, int(self.at[row]), int(self.what[row]), value)
            self.next[name] = place

    def waiting(self) -> dict[str, int]:
        """Return for how many decisions each signal is not known, and may still come."""
        return {name: self.end - self.next[name] - self.held[name] for name in self.signals}

    def oldest(self, name: str) -> int | None:
        """Return when the oldest decision was made that a signal is waited for; None: none is."""
        place = self.next[name]
        return int(self.at[place - self.first]) if place < self.end else None

    def _make_room(self) -> None:
        """Let go of what all signals have counted; where that is less than half of it, make the room larger."""
        gone = min(self.next.values(), default=self.end) - self.first
        kept = slice(gone, self.end - self.first)
        size = len(self.at) if gone >= len(self.at) // 2 else 2 * len(self.at)
        for name in ("at", "what", "shown", "deferred", "values"):
            old = getattr(self, name)
            new = np.empty((size, *old.shape[1:]), dtype=old.dtype)
            new[: kept.stop - kept.start] = old[kept]
            setattr(self, name, new)
        self.first += gone
