"""Whether costs are above what was promised of them, by all that is told so far: tests of every limit.

An e-process for each limit (`e_process`) stops the desk by itself where decisions cost more than their limit. One more
for each declared cost of the safe action puts that declaration in doubt. Both read the table of `Waits`: what is told
counts at once, and what is not told counts as nothing, whatever learning waits for. Where versions of the problem move
a limit, a decision is held against the one that it was made under: nothing else was promised of it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.agent.e_process import EProcess, Rows
from stagewise.policies.problem import Problem
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.records.reason import Cause, Reason
from stagewise.service.waits import DROPPED, HELD, Waits


class Trips:
    """The tests of every limit of a problem, and which trips stand in the log."""

    def __init__(self, problem: Problem, waits: Waits) -> None:
        self.problem, self.waits, thresholds = problem, waits, problem.policy().thresholds
        self.names, self.signs = tuple(problem.limits), thresholds.signs.tolist()
        self.home = problem.place_of(problem.safe)
        self.promised = promised_by(problem)
        self.declared = [
            cost if sign > 0 else 1.0 - cost for cost, sign in zip(thresholds.told, self.signs, strict=True)
        ]
        self.limits = {name: EProcess(self.level) for name in self.names}
        self.safe = {name: EProcess(FALSE_ALARMS) for name, c in zip(self.names, self.declared, strict=True) if c == c}
        self.moved: list[tuple[int, list[float]]] = []  # from which decision on which limits were promised
        self.standing: set[str | None] = set()  # trips in the log: by limit; None: feedback that stopped

    @property
    def level(self) -> float:
        """The level of each limit: all of them together trip by chance with probability δ at most."""
        return self.problem.delta / max(len(self.names), 1)

    def promise(self, place: int, problem: Problem) -> None:
        """Hold decisions from this one on against the limits of another version."""
        self.moved.append((place, promised_by(problem)))

    def costs(self, place: int) -> list[float] | None:
        """Return what a decision costs as far as it is told, by limit; None: all of it is settled long since."""
        if place < self.waits.base:
            return None
        return [float(self.read(j, place, place + 1)[0]) for j in range(len(self.names))]

    def tell(self, place: int, new: Sequence[str]) -> None:
        """Take in that signals of a decision are told that nothing was told of before."""
        row = place - self.waits.base
        for name in new:
            if name in self.limits and not self.waits.deferred[row]:
                j = self.names.index(name)
                value = float(self.waits.values[row, 1 + j])
                cost = value if self.signs[j] > 0 else 1.0 + value
                if cost != 0.0:  # as it counts anyway
                    self._rise(j, place, place + 1, cost)

    def change(self, place: int, before: Sequence[float] | None) -> None:
        """Take in that a decision is said to be carried out, or not to be; it cost as much `before`."""
        now = self.costs(place)
        for j, (old, new) in enumerate(zip(before or (), now or (), strict=True)):
            if new != old and not (math.isnan(new) and math.isnan(old)):
                self._rise(j, place, place + 1, None if math.isnan(new) else max(new - old, 0.0))

    def close(self, before: Sequence[int]) -> None:
        """Take in that windows closed; before, those of all decisions before these places were."""
        spans = {span.signal: span for span in self.waits.spans}
        longest = next((span for span in self.waits.spans if span.length == self.waits.longest), None)
        for j, sign in enumerate(self.signs):
            own = spans.get(1 + j)
            span = longest if own is None else own
            if span is None:
                continue
            start, end = before[span.signal], self.waits.closed[span.signal]
            counts = 0.0 if own is None else own.value if sign > 0 else 1.0 + own.value
            given_up = self.waits.deferred[start - self.waits.base : end - self.waits.base].any()
            if start < end and (counts != 0.0 or given_up):
                self._rise(j, start, end, None if given_up or math.isnan(counts) else counts)

    def _rise(self, j: int, start: int, end: int, by: float | None) -> None:
        """Look again, where values rose; None: rows do not count any more."""
        for test, rows, (least, most) in self.tests_of(j):
            if test.lost_by is None and end > test.first:
                test.rise(max(start, test.first), end, math.inf if least <= 0.0 else most if by is None else by)
                test.look(rows, self.waits.end)

    def settle(self) -> None:
        """Take in what is learned: it stays as it is."""
        for j in range(len(self.names)):
            for test, rows, _ in self.tests_of(j):
                test.settle(rows, self.waits.heads[1 + j], self.waits.end)

    def tests_of(self, j: int) -> list[tuple[EProcess, Rows, tuple[float, float]]]:
        """Return the tests of a limit, with their rows and the least and the most that one of these is held against."""
        name, held = self.names[j], [self.promised[j], *(limits[j] for _, limits in self.moved)]
        tests = [(self.limits[name], self.rows_of(j, safe=False), (min(held), max(held)))]
        if name in self.safe:
            tests.append((self.safe[name], self.rows_of(j, safe=True), (self.declared[j], self.declared[j])))
        return tests

    def rows_of(self, j: int, safe: bool) -> Rows:
        """Return what reads the rows of a test: all against the limit, or the safe action's against its cost."""

        def rows(start: int, end: int) -> tuple[Floats, Floats]:
            costs = self.read(j, start, end)
            if not safe:
                return costs, self.limits_at(j, start, end)
            played = self.waits.rows[start - self.waits.base : end - self.waits.base, 0]
            return np.where(played == self.home, costs, math.nan), np.full(end - start, self.declared[j])

        return rows

    def read(self, j: int, start: int, end: int) -> Floats:
        """Return the costs of decisions in [0, 1] as far as they are told; NaN: not carried out, or left out."""
        part, waits = slice(start - self.waits.base, end - self.waits.base), self.waits
        standing, values = waits.standing[part, 1 + j], waits.values[part, 1 + j]
        known = (standing == HELD) & (waits.deferred[part] == 0)
        costs: Floats = np.where(known, values if self.signs[j] > 0 else 1.0 + values, 0.0)
        costs[standing == DROPPED] = math.nan
        return costs

    def limits_at(self, j: int, start: int, end: int) -> Floats:
        """Return the limit that held when each of these decisions was made."""
        if not self.moved:
            return np.full(end - start, self.promised[j])
        versions = np.searchsorted([first for first, _ in self.moved], np.arange(start, end), side="right") - 1
        return np.array([limits[j] for _, limits in self.moved])[versions]

    def revive(self) -> None:
        """Begin anew with what tripped: a person let go of the kill switch. Only decisions from now on count."""
        for name, test in self.limits.items():
            if test.crossed:
                self.limits[name] = EProcess(self.level, self.waits.end)
        self.standing = set()

    def tripped(self) -> Cause | None:
        """Return why the desk should stop by itself, if it should."""
        for (name, test), sign in zip(self.limits.items(), self.signs, strict=True):
            if test.lost_by is not None:
                count, total = test.lost_by
                mean = total / count if sign > 0 else 1.0 - total / count
                return Cause.of(
                    Reason.LIMIT_EXCEEDED, limit=name, at_most=sign > 0, count=count, mean=mean, level=test.level
                )
        return None

    def doubted(self) -> dict[int, tuple[int, float]]:
        """Return the limits whose declared cost of the safe action is refuted, with count and mean of its costs."""
        lost = {j: self.safe[name].lost_by for j, name in enumerate(self.names) if name in self.safe}
        return {j: (by[0], by[1] / by[0]) for j, by in lost.items() if by is not None}

    def stand(self, cause: Cause) -> None:
        """Take in that a trip stands in the log."""
        self.standing.add(cause.details.get("limit"))

    def was_tripped(self, cause: Cause) -> bool:
        """Say whether the log holds a trip of this kind: a person who revives the desk after it is not overruled."""
        return cause.details.get("limit") in self.standing

    def plain(self) -> dict[str, Any]:
        """Return it for a snapshot."""
        tests = {"trips": self.limits, "safe": self.safe}
        told = {kind: {name: test.plain() for name, test in held.items()} for kind, held in tests.items()}
        return {**told, "moved": self.moved, "standing": sorted(self.standing, key=str)}

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Go on from what `plain` wrote down."""
        self.moved, self.standing = [(first, limits) for first, limits in plain["moved"]], set(plain["standing"])
        for kind, tests in (("trips", self.limits), ("safe", self.safe)):
            for name, test in tests.items():
                test.restore(plain[kind][name])


def promised_by(problem: Problem) -> list[float]:
    """Return each limit in [0, 1], of costs that less of is better."""
    told = problem.policy().thresholds
    return [float(value if sign > 0 else 1.0 - value) for value, sign in zip(told.values, told.signs, strict=True)]
