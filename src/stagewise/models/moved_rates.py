"""Rates that moved: evidence of every cell, of every action over its cells, and of all, in one error budget.

A cell is an action, in a segment where there are segments. If its mean p stays, outcomes y in [0, 1] that are learned
in order have E[(1 + k)^y] ≤ 1 + kp and E[(1 − c)^y] ≤ 1 − cp, given the past. With n₁ outcomes before a mark that add
up to S₁, and after it Δn that add up to ΔS between two marks, with a stake k that is set at the first of them,

    M = (1 − c)^S₁ · Π (1 + k)^ΔS · min_p (1 − cp)^−n₁ e^(−p Σ kΔn)

is at most a supermartingale that begins at 1, however cells are chosen, and so is a product over cells: each has its
own p, so a change of mix among cells is no evidence. The minimum is 1 while Σ kΔn ≤ c n₁, so stakes end there. By
Ville's inequality weighted sums of such products reach 1/a with probability a at most (docs/theory/watch.md,
Proposition 4).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints

RATIOS = 2.0 ** np.arange(-5.0, 2.5, 0.5)  # of later outcomes to earlier ones, up to which stakes are made
RISES = np.array([(k, k * r, i) for k in 2.0 ** np.arange(-3, 3) for i, r in enumerate(RATIOS) if k * r <= 0.95])
FALLS = np.array([(c, c * r, i) for c in (0.1, 0.2, 0.4, 0.6, 0.8, 0.95) for i, r in enumerate(RATIOS)])
EACH, ALL, EVERY_ACTION = 0.25, 0.25, 0.5  # shares of the error: of cells by themselves, of all together, of actions
SHORT = 1.25  # times what came since the mark before is expected until the next
HELD_BACK = 0.1  # of the stake of a cell in a product, so that no cell takes all of it
RATE_MARKS = 40, 20  # marks that are kept, and how many are set until twice as much was seen
ENOUGH = 0.7  # times the alarm: evidence is about the squared deviation at most, and less is not reckoned out


class Cells(NamedTuple):
    """What was seen of cells: outcomes, and what they add up to, from 0 to 1 each."""

    early: Floats  # (C,) before a mark
    early_totals: Floats
    grown: Floats  # (C,) of `early`, since the mark before it
    late: Floats  # (J, C) after it, as it stood at every later mark and stands now
    late_totals: Floats

    @classmethod
    def at(cls, pulls: list[Floats], totals: list[Floats], place: int) -> "Cells":
        """Return what a mark divides, of all that there was at every mark and is now; cells met later are left out."""
        early, size = pulls[place], pulls[place].size
        before = pulls[place - 1] if place else np.zeros(0)
        late, late_totals = (np.array([one[:size] for one in column[place + 1 :]]) for column in (pulls, totals))
        grown = early - np.pad(before, (0, size - before.size))
        return cls(early, totals[place], grown, late - early, late_totals - totals[place])


class Shift(NamedTuple):
    """Cells whose means are not what they were."""

    cells: list[int]
    early: float  # outcomes
    late: float
    before: float  # the mean, of several cells weighted as the later outcomes are
    after: float


def shifts(
    pulls: list[Floats], totals: list[Floats], actions: int, divided: bool, alarms: Sequence[float]
) -> Iterator[Shift]:
    """Yield what moved since any of the marks; given is what there was at each of them, and is now."""
    for place in np.flatnonzero(worth_a_look(pulls, totals, actions, alarms)).tolist():
        found = shifted(Cells.at(pulls, totals, place), actions, divided, alarms[place])
        if found is not None:
            yield found


def worth_a_look(pulls: list[Floats], totals: list[Floats], actions: int, alarms: Sequence[float]) -> Any:
    """Say of every mark whether a cell, an action or all strayed so far since it that it could be evidence."""
    size = -(-pulls[-1].size // actions) * actions
    held = np.zeros((2, len(pulls), size))
    for which, column in enumerate((pulls, totals)):
        for row, one in enumerate(column):
            held[which, row, : one.size] = one
    early, early_totals = held[:, :-1]
    late, late_totals = held[:, -1:] - held[:, :-1]
    apart, spread = strayed(np.maximum(early, 1.0), early_totals, late, late_totals)
    apart, spread = (np.where(early > 0.0, one, 0.0).reshape(len(pulls) - 1, -1, actions) for one in (apart, spread))
    levels = [(one, one.sum(1), one.sum((1, 2))[:, None]) for one in (apart, spread)]
    away, spreads = (np.concatenate([one.reshape(len(alarms), -1) for one in level], axis=1) for level in levels)
    return (away**2 > ENOUGH * np.array(alarms)[:, None] * spreads).any(axis=1)


def shifted(seen: Cells, actions: int, divided: bool, alarm: float) -> Shift | None:
    """Return the cells whose means moved, but with probability e^-alarm; cells stand segment by segment.

    Those of the i-th segment have 1/i(i+1) of the share of the cells.
    """
    told = np.flatnonzero(seen.early > 0.0)  # known at the mark; also those not met since, whose stakes are made
    if not seen.late[-1, told].any():
        return None
    part = Cells(*(column[..., told] for column in seen))
    places, segments = told % actions, told // actions + 1
    spent = np.log(actions * (segments * (segments + 1.0) if divided else np.ones(told.size)) / EACH)
    apart, spread = strayed(part.early, part.early_totals, part.late[-1], part.late_totals[-1])
    far = apart**2 / np.maximum(spread, 1e-300)
    for cell in np.argsort(-far, kind="stable")[: int((far > ENOUGH * alarm).sum())].tolist():
        if evidence(part, np.array([cell]), apart[cell] > 0.0) >= alarm + spent[cell]:
            return shift_of(part, np.array([cell]), told)
    groups = [(np.flatnonzero(places == action), actions / EVERY_ACTION) for action in np.unique(places).tolist()]
    for cells, shared in [*groups, (np.arange(told.size), 1.0 / ALL)]:
        total = float(apart[cells].sum())
        if total**2 <= ENOUGH * alarm * float(spread[cells].sum()):
            continue
        if evidence(part, cells, total > 0.0) >= alarm + math.log(shared):
            return shift_of(part, cells, told)
    return None


def strayed(early: Floats, early_totals: Floats, late: Floats, late_totals: Floats) -> tuple[Floats, Floats]:
    """Return later totals less what earlier means forecast, and about the variances of that."""
    mean = (early_totals + late_totals) / (early + late)
    spread = mean * np.maximum(1.0 - mean, 0.0) * late * (1.0 + late / early)
    return late_totals - late * early_totals / early, spread


def evidence(seen: Cells, cells: Ints, rises: bool) -> float:
    """Return the log of what a mixture of all bets has made of these cells, each factor at its worst mean."""
    early, early_totals, grown, late, late_totals = (column[..., cells] for column in seen)
    if early_totals.sum() + late_totals[-1].sum() > 0.5 * (early.sum() + late[-1].sum()):  # by what they lack of 1
        early_totals, late_totals, rises = early - early_totals, late - late_totals, not rises
    bets = RISES if rises else FALLS
    stake, other, ratio = bets[:, 0, None], bets[:, 1, None], bets[:, 2].astype(int)
    sign = 1.0 if rises else -1.0
    made, used = np.log1p(-sign * other) * early_totals, np.zeros((RATIOS.size, early.size))
    came, came_totals = (np.diff(column, axis=0, prepend=0.0) for column in (late, late_totals))
    for new, new_totals in zip(came, came_totals, strict=True):
        part = np.clip((RATIOS[:, None] * early - used) / np.maximum(SHORT * grown, 1.0), 0.0, 1.0)
        made += np.log1p(sign * stake * part[ratio]) * new_totals
        used += part * new
        grown = new
    spent = stake * used[ratio]
    with np.errstate(divide="ignore"):
        worst = sign * (1.0 / other - early / spent)  # where the derivative in p is 0
    worst = np.clip(worst, 0.0, 1.0)
    made -= sign * worst * spent + early * np.log1p(-sign * other * worst)
    if early.size > 1:
        made = np.logaddexp(math.log(HELD_BACK), math.log1p(-HELD_BACK) + made)
    return float(np.logaddexp.reduce(made.sum(axis=1))) - math.log(4.0 * len(bets))


def shift_of(seen: Cells, cells: Ints, told: Ints) -> Shift:
    """Return between which means these cells moved."""
    early, late = seen.early[cells], seen.late[-1, cells]
    before = float((late * seen.early_totals[cells] / early).sum() / late.sum())
    after = float(seen.late_totals[-1, cells].sum() / late.sum())
    return Shift(told[cells].tolist(), float(early.sum()), float(late.sum()), before, after)
