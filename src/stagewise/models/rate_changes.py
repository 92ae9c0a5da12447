"""Changes of rates: evidence of every cell, of every action over its cells, and of all, in one error budget.

A cell is an action, in a segment where there are segments. If its mean p stays, outcomes y in [0, 1] that are learned
in order have E[(1 + k)^y] ≤ 1 + kp and E[(1 − c)^y] ≤ 1 − cp, given the past. With n₁ outcomes before a mark that add
up to S₁, and after it Δn that add up to ΔS between two marks, with a stake k that is set at the first of them,

    M = (1 − c)^S₁ · Π (1 + k)^ΔS · min_p (1 − cp)^−n₁ e^(−p Σ kΔn)

is at most a supermartingale that begins at 1, however cells are chosen, and so is a product over cells: each has its
own p, so a change of mix among cells is no evidence. The minimum is 1 while Σ kΔn ≤ c n₁, so stakes end there. By
Ville's inequality weighted sums of such products reach 1/a with probability a at most (docs/theory/watch.md,
Proposition 4). Where means jump, the cells of an action are tested together, and after a change from there on
(docs/theory/drift.md, Pooled detection).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints

RATIOS = 2.0 ** np.arange(-5.0, 2.5, 0.5)  # of later to earlier outcomes, up to which stakes are placed
RISES = np.array([(k, k * r, i) for k in 2.0 ** np.arange(-3, 3) for i, r in enumerate(RATIOS) if k * r <= 0.95])
FALLS = np.array([(c, c * r, i) for c in (0.1, 0.2, 0.4, 0.6, 0.8, 0.95) for i, r in enumerate(RATIOS)])
EACH, ALL, EVERY_ACTION = 0.25, 0.25, 0.5  # shares of the error: single cells, all cells, actions
SHORT = 1.25  # expected growth until the next mark, relative to the growth before
HELD_BACK = 0.1  # of a cell's stake in a product is held back, so that no cell loses all of it
RATE_MARKS = 40, 20  # number of marks kept, and marks per doubling of the data
ENOUGH = 0.7  # times the alarm: evidence is at most about the squared deviation, so smaller deviations are skipped


class CellCounts(NamedTuple):
    """Outcomes of cells: their numbers and their sums, from 0 to 1 each."""

    early: Floats  # (C,) before a mark
    early_totals: Floats
    grown: Floats  # (C,) growth of `early` since the mark before it
    late: Floats  # (J, C) after the mark, at every later mark and now
    late_totals: Floats

    @classmethod
    def at(cls, pulls: list[Floats], totals: list[Floats], mark: int) -> "CellCounts":
        """Return the counts before and after a mark; cells that are new since are omitted."""
        early, size = pulls[mark], pulls[mark].size
        before = pulls[mark - 1] if mark else np.zeros(0)
        late, late_totals = (np.array([one[:size] for one in column[mark + 1 :]]) for column in (pulls, totals))
        grown = early - np.pad(before, (0, size - before.size))
        return cls(early, totals[mark], grown, late - early, late_totals - totals[mark])


class RateShift(NamedTuple):
    """Cells whose means have changed."""

    cells: list[int]
    early: float  # outcomes
    late: float
    before: float  # the mean; of several cells, weighted as the later outcomes are
    after: float


def find_shifts(
    pulls: list[Floats], totals: list[Floats], actions: int, divided: bool, alarms: Sequence[float]
) -> Iterator[RateShift]:
    """Yield the changes since any of the marks; the lists hold the values at each mark and now."""
    for mark in np.flatnonzero(screen_marks(pulls, totals, actions, alarms)).tolist():
        found = find_shift(CellCounts.at(pulls, totals, mark), actions, divided, alarms[mark])
        if found is not None:
            yield found


def find_pooled_shifts(
    pulls: list[Floats], totals: list[Floats], actions: int, alarms: Sequence[float]
) -> Iterator[tuple[int, RateShift]]:
    """Yield the actions whose cells have changed together, and the mark since which they have.

    Numbers of outcomes are counted since an action was last forgotten: at earlier marks they are negative.
    """
    for mark in np.flatnonzero(screen_marks(pulls, totals, actions, alarms)).tolist():
        counts = CellCounts.at(pulls, totals, mark)
        known_cells = np.flatnonzero(counts.early > 0.0)
        part = CellCounts(*(column[..., known_cells] for column in counts))
        found = find_action_shift(part, known_cells, actions, alarms[mark], 1.0)
        if found is not None:
            yield mark, found


def restart_actions(base: dict[str, Any] | None, now: dict[str, Any], key: str, actions: int) -> dict[str, Any]:
    """Return the sums from which actions are compared: those of now, for actions that were forgotten since."""
    forgotten, size = f"forgotten {key}", now[f"pulls {key}"].size
    empty = {name: np.zeros(value.shape) for name, value in now.items()}
    old = empty if base is None else base
    known = np.pad(old[forgotten], (0, size - old[forgotten].size))
    changed = np.unique(np.flatnonzero(known != now[forgotten]) % actions)
    if base is not None and not changed.size:
        return base
    restarted, result = np.isin(np.arange(size) % actions, changed), empty
    for name in (f"pulls {key}", f"totals {key}"):
        result[name] = np.where(restarted, now[name], np.pad(old[name], (0, size - old[name].size)))
    return result | {forgotten: now[forgotten].copy()}


def screen_marks(pulls: list[Floats], totals: list[Floats], actions: int, alarms: Sequence[float]) -> Any:
    """Return for every mark whether a cell, an action or all deviate enough since it to be evidence."""
    size = -(-pulls[-1].size // actions) * actions
    table = np.zeros((2, len(pulls), size))
    for table_index, column in enumerate((pulls, totals)):
        for row, one in enumerate(column):
            table[table_index, row, : one.size] = one
    early, early_totals = table[:, :-1]
    late, late_totals = table[:, -1:] - table[:, :-1]
    deviations, variances = compute_deviations(np.maximum(early, 1.0), early_totals, late, late_totals)
    deviations, variances = (
        np.where(early > 0.0, one, 0.0).reshape(len(pulls) - 1, -1, actions) for one in (deviations, variances)
    )
    levels = [(one, one.sum(1), one.sum((1, 2))[:, None]) for one in (deviations, variances)]
    deviation_levels, variance_levels = (
        np.concatenate([one.reshape(len(alarms), -1) for one in level], axis=1) for level in levels
    )
    return (deviation_levels**2 > ENOUGH * np.array(alarms)[:, None] * variance_levels).any(axis=1)


def find_shift(counts: CellCounts, actions: int, divided: bool, alarm: float) -> RateShift | None:
    """Return the cells whose means have changed, with false alarm probability e^-alarm; cells are ordered by segment.

    The cells of the i-th segment have 1/i(i+1) of the cells' share of the error.
    """
    known_cells = np.flatnonzero(
        counts.early > 0.0
    )  # known at the mark; also those not met since, whose stakes are made
    if not counts.late[-1, known_cells].any():
        return None
    part = CellCounts(*(column[..., known_cells] for column in counts))
    segments = known_cells // actions + 1
    spent = np.log(actions * (segments * (segments + 1.0) if divided else np.ones(known_cells.size)) / EACH)
    deviations, variances = compute_deviations(part.early, part.early_totals, part.late[-1], part.late_totals[-1])
    far = deviations**2 / np.maximum(variances, 1e-300)
    for cell in np.argsort(-far, kind="stable")[: int((far > ENOUGH * alarm).sum())].tolist():
        if compute_log_evidence(part, np.array([cell]), deviations[cell] > 0.0) >= alarm + spent[cell]:
            return build_shift(part, np.array([cell]), known_cells)
    found = find_action_shift(part, known_cells, actions, alarm, EVERY_ACTION)
    return found or find_joint_shift(part, np.arange(known_cells.size), known_cells, alarm, 1.0 / ALL)


def find_action_shift(
    counts: CellCounts, known_cells: Ints, actions: int, alarm: float, share: float
) -> RateShift | None:
    """Return the first action whose cells have changed together; actions have this share of the error."""
    places = known_cells % actions
    for action in np.unique(places).tolist():
        found = find_joint_shift(counts, np.flatnonzero(places == action), known_cells, alarm, actions / share)
        if found is not None:
            return found
    return None


def find_joint_shift(
    counts: CellCounts, cells: Ints, known_cells: Ints, alarm: float, shared: float
) -> RateShift | None:
    """Return these cells if their means have changed together, at 1/`shared` of the error."""
    deviations, variances = compute_deviations(
        counts.early, counts.early_totals, counts.late[-1], counts.late_totals[-1]
    )
    total = float(deviations[cells].sum())
    if total**2 <= ENOUGH * alarm * float(variances[cells].sum()):
        return None
    if compute_log_evidence(counts, cells, total > 0.0) < alarm + math.log(shared):
        return None
    return build_shift(counts, cells, known_cells)


def compute_deviations(early: Floats, early_totals: Floats, late: Floats, late_totals: Floats) -> tuple[Floats, Floats]:
    """Return later totals less their forecasts from earlier means, and their approximate variances."""
    mean = (early_totals + late_totals) / (early + late)
    variances = mean * np.maximum(1.0 - mean, 0.0) * late * (1.0 + late / early)
    return late_totals - late * early_totals / early, variances


def compute_log_evidence(counts: CellCounts, cells: Ints, rises: bool) -> float:
    """Return the log of the wealth of a mixture of all bets on these cells, each factor at its worst mean."""
    early, early_totals, grown, late, late_totals = (column[..., cells] for column in counts)
    if early_totals.sum() + late_totals[-1].sum() > 0.5 * (early.sum() + late[-1].sum()):  # bet on 1 − y instead
        early_totals, late_totals, rises = early - early_totals, late - late_totals, not rises
    bets = RISES if rises else FALLS
    stake, other, ratio = bets[:, 0, None], bets[:, 1, None], bets[:, 2].astype(int)
    sign = 1.0 if rises else -1.0
    log_wealth, used = np.log1p(-sign * other) * early_totals, np.zeros((RATIOS.size, early.size))
    came, came_totals = (np.diff(column, axis=0, prepend=0.0) for column in (late, late_totals))
    for new, new_totals in zip(came, came_totals, strict=True):
        part = np.clip((RATIOS[:, None] * early - used) / np.maximum(SHORT * grown, 1.0), 0.0, 1.0)
        log_wealth += np.log1p(sign * stake * part[ratio]) * new_totals
        used += part * new
        grown = new
    spent = stake * used[ratio]
    with np.errstate(divide="ignore"):
        worst = sign * (1.0 / other - early / spent)  # where the derivative in p is 0
    worst = np.clip(worst, 0.0, 1.0)
    log_wealth -= sign * worst * spent + early * np.log1p(-sign * other * worst)
    if early.size > 1:
        log_wealth = np.logaddexp(math.log(HELD_BACK), math.log1p(-HELD_BACK) + log_wealth)
    return float(np.logaddexp.reduce(log_wealth.sum(axis=1))) - math.log(4.0 * len(bets))


def build_shift(counts: CellCounts, cells: Ints, known_cells: Ints) -> RateShift:
    """Return the change of these cells' means."""
    early, late = counts.early[cells], counts.late[-1, cells]
    before = float((late * counts.early_totals[cells] / early).sum() / late.sum())
    after = float(counts.late_totals[-1, cells].sum() / late.sum())
    return RateShift(known_cells[cells].tolist(), float(early.sum()), float(late.sum()), before, after)
