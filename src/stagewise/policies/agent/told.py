"""Costs as far as they are told, held against limits and against what was declared of the safe action: at once.

What was told is final, so a cost that was told is one whatever else is still waited for; what was not told counts as
nothing. Learning waits until windows close, and for whatever is missing before; these tests do not
(docs/how-to/check-health.md).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import HOME, ROVING
from stagewise.kernels.promise import has
from stagewise.policies.agent.e_process import BLOCK, EProcess, Rows
from stagewise.policies.agent.health import CONTRADICTED, FINE, UNKNOWN, Finding, Health
from stagewise.policies.agent.ledger import MISSING, Ledger
from stagewise.policies.agent.notes import Notes
from stagewise.policies.contradictions import contradicted
from stagewise.policies.learning import Learning
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.checks import whole
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import several
from stagewise.records.reason import Cause, Contradiction

HAS = named(has)
FIRST_ROOM = 1024
SAFE, LIMIT = "safe", "limit"

Values = Sequence[float] | Mapping[int, float]
"""Values by signal, signed as they are learned; NaN: they are left out."""


class ToldCosts:
    """The costs of an agent's decisions in [0, 1], from the first that is waited for, and the tests that they pass."""

    def __init__(self, policy: Any, first: int = 0) -> None:
        told = policy.thresholds
        self.signs = [float(sign) for sign in told.signs]
        self.limits = [unit(value, sign) for value, sign in zip(told.values, self.signs, strict=True)]
        self.declared = [unit(cost, sign) for cost, sign in zip(told.told, self.signs, strict=True)]
        if HAS(policy.layout, ROVING):  # another one in every round
            self.declared = [math.nan] * len(self.signs)
        self.home = int(policy.layout[HOME])
        self.tests = {(LIMIT, j): EProcess(FALSE_ALARMS, first) for j in range(len(self.signs))}
        self.tests |= {(SAFE, j): EProcess(FALSE_ALARMS, first) for j, cost in enumerate(self.declared) if cost == cost}
        self.base, self.end = first - first % BLOCK, first
        self.costs = np.zeros((FIRST_ROOM, len(self.signs)))
        self.safe = np.zeros(FIRST_ROOM, dtype=bool)

    def add(self, round_: int, index: int, ledger: Ledger) -> None:
        """Take in a decision, of which nothing is told yet."""
        if round_ - self.base >= len(self.safe):
            self._make_room(ledger)
        self.safe[round_ - self.base] = index == self.home
        self.end = round_ + 1

    def tell(self, round_: int, values: Values, given: Iterable[int]) -> bool:
        """Take in signals of a decision as they are learned; say whether a test is lost by them."""
        lost = False
        for k in given:
            if k:
                cost = values[k] if self.signs[k - 1] > 0.0 else 1.0 + values[k]
                if cost != 0.0:  # as it counts anyway
                    lost |= self._put(round_, k - 1, cost)
        return lost

    def drop(self, round_: int, signals: Sequence[int]) -> bool:
        """Take in that signals of a decision will not come and do not count; say whether a test is lost by that."""
        return self.tell(round_, dict.fromkeys(signals, math.nan), signals)

    def give_up(self, ledger: Ledger, before: int) -> bool:
        """Take in that whatever is missing before a round is given up; say whether a test is lost by that."""
        signals, lost = range(len(ledger.names)), False
        for round_ in [r for r in ledger.open if r < before]:
            lost |= self.drop(round_, signals)
        for round_, row in [(r, row) for r, row in ledger.rows.items() if r < before]:
            lost |= self.drop(round_, [k for k in signals if row.standing[k] == MISSING])
        return lost

    def _put(self, round_: int, j: int, cost: float) -> bool:
        """Write down a cost; NaN: it does not count."""
        place = round_ - self.base
        if place < 0:
            return False
        self.costs[place, j] = cost
        lost = self._look(LIMIT, j, round_, cost, self.limits[j])
        if self.safe[place] and (SAFE, j) in self.tests:
            lost |= self._look(SAFE, j, round_, cost, self.declared[j])
        return lost

    def _look(self, kind: str, j: int, round_: int, cost: float, limit: float) -> bool:
        test = self.tests[kind, j]
        if test.lost_by is not None or round_ < test.first:
            return False
        test.rise(round_, round_ + 1, math.inf if limit <= 0.0 else limit if cost != cost else cost)
        return test.look(self.rows_of(kind, j), self.end)

    def rows_of(self, kind: str, j: int) -> Rows:
        """Return what reads the rows of a test."""
        limit = self.limits[j] if kind == LIMIT else self.declared[j]

        def rows(start: int, end: int) -> tuple[Floats, Floats]:
            part = slice(start - self.base, end - self.base)
            costs = self.costs[part, j] if kind == LIMIT else np.where(self.safe[part], self.costs[part, j], math.nan)
            return costs, np.full(end - start, limit)

        return rows

    def _make_room(self, ledger: Ledger) -> None:
        """Let go of what is learned, whole blocks of it, and where that is not enough take a larger table."""
        settled = min([*ledger.open, *ledger.rows], default=self.end)
        for (kind, j), test in self.tests.items():
            test.settle(self.rows_of(kind, j), settled, self.end)
        low = max(settled - settled % BLOCK, self.base)
        kept, room = self.end - low, len(self.safe)
        while kept >= room // 2:
            room *= 2
        start = low - self.base
        costs, safe = np.zeros((room, len(self.signs))), np.zeros(room, dtype=bool)
        costs[:kept], safe[:kept] = self.costs[start : start + kept], self.safe[start : start + kept]
        self.costs, self.safe, self.base = costs, safe, low

    def seen(self, kind: str, j: int) -> tuple[int, float]:
        """Return how many decisions count, and the mean of their costs, which is higher once all is told."""
        if (kind, j) not in self.tests:
            return 0, 0.0
        count, total = self.tests[kind, j].seen(self.rows_of(kind, j), self.end)
        return count, total / max(count, 1)

    def refuted(self, policy: Any) -> dict[str, Cause]:
        """Return what is refuted, by the name that a person acknowledges it by."""
        found = {}
        for (kind, j), test in self.tests.items():
            if test.lost_by is not None:
                count, total = test.lost_by
                name, cause = (safe_cost_name, safe_cost_so_far) if kind == SAFE else (limit_name, limit_so_far)
                found[name(policy, j)] = cause(policy, j, count, total / count)
        return found

    def note(self, policy: Any, notes: Notes) -> None:
        """Note what is refuted, where the policy is to be stopped by that."""
        if getattr(policy, "watch", False):
            for name, cause in self.refuted(policy).items():
                notes.doubts.setdefault(name, cause)

    def copied(self) -> "ToldCosts":
        """Return an independent copy."""
        other = ToldCosts.__new__(ToldCosts)
        vars(other).update(vars(self))
        other.costs, other.safe = self.costs.copy(), self.safe.copy()
        other.tests = {key: test.copied() for key, test in self.tests.items()}
        return other

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it: of costs only those that are none."""
        count = self.end - self.base
        told = np.flatnonzero((self.costs[:count] != 0.0).any(axis=1)).tolist()
        return {
            "base": self.base,
            "safe": np.flatnonzero(self.safe[:count]).tolist(),
            "costs": {str(i): [None if c != c else c for c in self.costs[i].tolist()] for i in told},
            "tests": [[kind, j, *test.plain()] for (kind, j), test in self.tests.items()],
        }

    @classmethod
    def of(cls, policy: Any, plain: Any, end: int) -> "ToldCosts":
        """Return what `plain` wrote down of an agent's rounds before `end`, checked."""
        told = cls(policy)
        base = whole(plain["base"], "base", f"from 0 to {end}", 0, end)
        if base % BLOCK:
            raise InvalidProblem(f"base is {base}; it must be a multiple of {BLOCK}")
        count = end - base
        told.base, told.end = base, end
        room = max(FIRST_ROOM, 2 * count)
        told.costs, told.safe = np.zeros((room, len(told.signs))), np.zeros(room, dtype=bool)
        told.safe[[whole(i, "a round", f"from 0 to {count - 1}", 0, count - 1) for i in plain["safe"]]] = True
        for i, costs in plain["costs"].items():
            row = np.array([math.nan if cost is None else float(cost) for cost in costs])
            if row.shape != (len(told.signs),) or (row < 0.0).any() or (row > 1.0).any():
                raise InvalidProblem(
                    f"the costs of a round in it are {costs!r}; they must be in [0, 1], one for a limit"
                )
            told.costs[whole(int(i), "a round", f"from 0 to {count - 1}", 0, count - 1)] = row
        held = {(str(kind), int(j)): numbers for kind, j, *numbers in plain["tests"]}
        for key, test in told.tests.items():
            test.restore(held[key])
            if not base <= test.base * BLOCK <= end or not test.is_sound:
                raise InvalidProblem("a test in it does not fit its rounds")
        return told


def unit(value: float, sign: float) -> float:
    """Return a limit or a declared cost in [0, 1], of which less is better."""
    return float(value if sign > 0.0 else 1.0 - value)


def costs_of(policy: Learning | None, first: int = 0) -> ToldCosts | None:
    """Return what counts an agent's costs; None: nothing was promised of their range, or there are no limits."""
    held = policy is not None and policy.has_parts and getattr(policy, "bounded", False) and policy.thresholds.names
    return ToldCosts(policy, first) if held else None


def safe_cost_name(policy: Any, j: int) -> str:
    """Return what a person acknowledges of the safe action's declared cost."""
    return f"safe cost of {policy.thresholds.names[j]}"


def limit_name(policy: Any, j: int) -> str:
    """Return what a person acknowledges of a limit."""
    return f"limit of {policy.thresholds.names[j]}"


def signed_mean(policy: Any, j: int, mean: float) -> float:
    """Return a mean of costs in [0, 1] in the user's units."""
    return float(policy.in_units(1 + j, mean if policy.thresholds.signs[j] > 0.0 else mean - 1.0))


def seen_words(policy: Any, j: int, count: float, mean: float) -> str:
    """Return what is told so far, in the user's units; the mean is one of costs in [0, 1]."""
    side = "at least" if policy.thresholds.signs[j] > 0.0 else "at most"
    told = signed_mean(policy, j, mean)
    return f"{side} {told:.3g} over {several(count, 'decision')} by what was told so far"


def safe_cost_so_far(policy: Any, j: int, count: float, mean: float) -> Cause:
    """Return that what was told refutes a declared cost of the safe action."""
    limits, seen = policy.presented, {"count": count, "mean": signed_mean(policy, j, mean)}
    return contradicted(Contradiction.SAFE_COST_SO_FAR, limits, j, declared=limits.told[j], **seen)


def limit_so_far(policy: Any, j: int, count: float, mean: float) -> Cause:
    """Return that decisions break a limit by what was told."""
    limits, seen = policy.presented, {"count": count, "mean": signed_mean(policy, j, mean)}
    return contradicted(Contradiction.LIMIT_SO_FAR, limits, j, threshold=limits.values[j], **seen)


def with_told(policy: Any, found: Sequence[Finding], seen: Mapping[str, tuple[int, float]]) -> list[Finding]:
    """Return findings of which those about the safe action's costs say what is told so far.

    Args:
        policy: The policy.
        found: What `health_of` found.
        seen: By limit, the decisions for the safe action, and the mean of their costs in [0, 1] as far as it is told.
    """
    by_name = {safe_cost_name(policy, j): j for j in range(len(policy.thresholds.names))}
    return [
        one
        if one.name not in by_name or one.verdict not in (FINE, UNKNOWN)
        else so_far(policy, one, by_name[one.name], seen)
        for one in found
    ]


def so_far(policy: Any, finding: Finding, j: int, seen: Mapping[str, tuple[int, float]]) -> Finding:
    """Return a finding about the safe action's cost that says what is told so far, where something is."""
    limits, (count, mean) = policy.presented, seen.get(policy.thresholds.names[j], (0, 0.0))
    if not count or mean == 0.0 or math.isnan(limits.told[j]):
        return finding
    words = f"it averages {seen_words(policy, j, count, mean)}"
    if finding.verdict == FINE:
        return finding._replace(sentence=f"{finding.sentence}; {words}")
    side = "at most" if limits.signs[j] > 0.0 else "at least"
    beyond = mean > unit(policy.thresholds.told[j], float(limits.signs[j]))
    said = "which may still be chance" if beyond else "which is no contradiction"
    return finding._replace(sentence=f"declared {side} {limits.told[j]:g}, and {words}, {said}")


def health_with(policy: Any, found: Health, told: ToldCosts | None) -> Health:
    """Return the findings of an agent with what was told of its costs."""
    if told is None:
        return found
    names = policy.thresholds.names
    refuted = told.refuted(policy)
    settled = [
        one._replace(verdict=CONTRADICTED, sentence=refuted[one.name].sentence, cause=refuted[one.name])
        if one.name in refuted and one.verdict in (FINE, UNKNOWN)
        else one
        for one in found
    ]
    return Health(with_told(policy, settled, {name: told.seen(SAFE, j) for j, name in enumerate(names)}))
