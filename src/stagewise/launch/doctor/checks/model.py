"""Whether signals have the form that the problem gives them: linear in the numbers, or one rate for each action.

Linear. Let g be a column that no linear mean has in it: products of numbers, or membership in a decile of what the
other half foretells. Made orthogonal to the constant and the numbers, action by action, Σ g y has no part of any linear
mean in it, whatever its parameter; what is left is noise in [−1, 1], which Bennett's inequality bounds. No error of any
fit enters.

Rates. Within an action (and a segment) outcomes are then exchangeable, whoever the users are (`exchange.py`).
"""

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.deciles import GROUPS, grouped
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.exchange import shift, tail
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.doctor.fits import Fits

WORTH = 0.05  # of the mean, that a misfit moves users by: below it is noted, and contradicts nothing
LEVEL = 0.05  # chance that a proposal chooses anything as shown that is not there, of all that is tried
MOST_PRODUCTS = 12  # numbers whose products with one another are looked at; of more only squares


class Misfit(NamedTuple):
    """Where a linear mean fails."""

    chance: float
    part: float  # of the mean, that users are moved by
    where: str


def check(chart: Chart, alpha: float) -> Finding:
    """Find signals that do not have the form that they are declared to have."""
    problem, found = chart.log.problem, []
    if not problem.context:
        return Finding("model", "ok", "there are no numbers about users that a mean could depend on")
    for signal, name in enumerate(chart.names):
        share = alpha / len(chart.names)
        linear = problem.choices[name].model == "linear"
        found += bent(chart, signal, name, share) if linear else uneven(chart, signal, name, share)
    return gravest("model", found, "every signal has the form that it is declared to have, as far as can be seen")


def bent(chart: Chart, signal: int, name: str, alpha: float) -> list[Finding]:
    """Return whether a signal that is declared linear is not."""
    fits = Fits(chart, signal)
    outcomes = fits.outcomes[fits.rows]
    if not outcomes.size:
        return []
    mean = float(outcomes.mean())
    worth = max(min(mean, 1.0 - mean), 1e-12)
    tried = [*products(fits, worth), *in_deciles(fits, worth)]
    if not tried:
        return []
    worst = min(tried, key=lambda one: one.chance)
    if worst.chance * len(tried) > alpha:
        return []
    words = f"{name!r} is not linear in the numbers about users: {worst.where}, by {worst.part:.0%} of its mean"
    remedy = "add a number that carries it, such as a square or a product, or cut the range; a kernel needs no form"
    return [Finding("model", "contradicts" if worst.part >= WORTH else "note", words, remedy)]


def products(fits: Fits, worth: float) -> list[Misfit]:
    """Return what squares and products of numbers add, action by action and in all actions together."""
    names, found = list(fits.chart.log.problem.context), []
    pairs = list(combinations_with_replacement(range(len(names)), 2))
    pairs = pairs if len(names) <= MOST_PRODUCTS else [(i, i) for i in range(len(names))]
    called = [f"{names[i]!r} squared" if i == j else f"{names[i]!r} times {names[j]!r}" for i, j in pairs]
    everyone, rows, whole = np.ones(fits.chart.log.rows, dtype=bool), 0, Scores.none(len(pairs))
    for action, name in enumerate(fits.chart.log.problem.actions):
        places = fits.of(action, everyone)
        if places.size:
            numbers = fits.scaled[places]
            told = scores(fits, places, np.column_stack([numbers[:, i] * numbers[:, j] for i, j in pairs]))
            found += misfits(told, places.size, worth, [f"of {name!r}, {of} moves it too" for of in called])
            whole, rows = whole.with_more(told), rows + places.size
    return found + (misfits(whole, rows, worth, [f"{of} moves it too" for of in called]) if rows else [])


def in_deciles(fits: Fits, worth: float) -> list[Misfit]:
    """Return how far what is seen in one half lies from every linear mean, in deciles that the other half foretells."""
    half, log = fits.chart.half, fits.chart.log
    foretold = fits.predicted(half, ~half)
    rows = np.flatnonzero(np.isfinite(foretold))
    if rows.size < 10 * GROUPS:
        return []
    member = np.zeros((log.rows, GROUPS))
    member[rows, grouped(foretold[rows])] = 1.0
    whole = Scores.none(GROUPS)
    for action in range(len(log.problem.actions)):
        places = rows[log.actions[rows] == action]
        if places.size:
            whole = whole.with_more(scores(fits, places, member[places]))
    return misfits(whole, rows.size, worth, [f"the users of decile {k} are off" for k in range(1, GROUPS + 1)])


def misfits(told: "Scores", rows: int, worth: float, where: list[str]) -> list[Misfit]:
    """Return how likely every sum is by chance, and which part of the mean it moves users by."""
    chances = tail(told.sums, told.spread, told.most)
    parts = np.abs(told.sums) / np.maximum(np.sqrt(told.squares * rows), 1e-12) / worth
    return [Misfit(*one) for one in zip(chances.tolist(), parts.tolist(), where, strict=True)]


class Scores(NamedTuple):
    """Of columns g that are orthogonal to all linear means: Σ g y, its variance at most, Σ g² and max |g|."""

    sums: Floats
    spread: Floats
    squares: Floats
    most: Floats

    @classmethod
    def none(cls, columns: int) -> "Scores":
        """Return the scores of no rows."""
        return cls(*np.zeros((4, columns)))

    def with_more(self, other: "Scores") -> "Scores":
        """Return the scores of these rows and others."""
        sums, spread, squares = (mine + theirs for mine, theirs in zip(self[:3], other[:3], strict=True))
        return Scores(sums, spread, squares, np.maximum(self.most, other.most))


def scores(fits: Fits, places: Ints, added: Floats) -> Scores:
    """Return the scores of some rows of one action, columns made orthogonal to the constant and the numbers."""
    design, outcomes = fits.design[places], fits.outcomes[places]
    gram = design.T @ design
    left = added - design @ np.linalg.lstsq(gram, design.T @ added, rcond=None)[0]
    squared = left**2
    linear = squared.sum(axis=0) <= 1e-9 * np.maximum((added**2).sum(axis=0), 1e-300)
    left[:, linear], squared[:, linear] = 0.0, 0.0
    means = design @ np.linalg.lstsq(gram, design.T @ outcomes, rcond=None)[0]
    noise = np.clip(means, 0.0, 1.0) * (1.0 - np.clip(means, 0.0, 1.0))
    spread = np.maximum(noise @ squared, (outcomes - means) ** 2 @ squared)
    return Scores(outcomes @ left, spread, squared.sum(axis=0), np.sqrt(squared.max(axis=0)))


class Uneven(NamedTuple):
    """How a rate depends on a number about users: by chance so often, of all that was tried; in words."""

    chance: float
    part: float  # of the mean, that users are moved by
    number: str
    what: str
    how: str

    @property
    def words(self) -> str:
        """What is shown."""
        return f"{self.what} depends on {self.number!r}: {self.how}"


def uneven(chart: Chart, signal: int, name: str, alpha: float) -> list[Finding]:
    """Return whether a signal that is declared to be one rate for each action depends on a number about users.

    Where it is not shown at alpha, but a proposal would make the limit linear, that is noted.
    """
    told = unevenness(chart, signal)
    if told is None:
        return []
    declared = "where one rate for each action is declared, whoever gets it"
    remedy = (
        f"model = 'linear' for it, or by = a group of {told.number!r}; as it is, its limit holds only while each "
        "action goes to users as it did in this log"
    )
    if told.chance <= alpha:
        sure = told.part >= WORTH
        return [Finding("model", "contradicts" if sure else "note", f"{told.words}, {declared}", remedy)]
    if not signal:
        return []
    where = ""
    if told.chance > chosen_at(chart):
        told = unevenness(chart.proposed_from, signal)
        where = "in the half that a proposal is chosen from, "
    if told is None or told.chance > chosen_at(chart):
        return []
    words = f"{where}{told.what} seems to depend on {told.number!r}: {told.how}, {declared}"
    by_chance = f"one rate looks so in at most 1 of {said(1.0 / told.chance)} logs by chance"
    return [Finding("model", "note", f"{words}; {by_chance}", remedy)]


def chosen_at(chart: Chart) -> float:
    """Return the chance at which a proposal takes a limit to depend on a number, all that is tried for it counted."""
    return 0.5 * LEVEL / max(len(chart.names) - 1, 1)


def unevenness(chart: Chart, signal: int) -> Uneven | None:
    """Return how a signal depends on the number about users that moves it most surely; None: there are no rows."""
    name, rows, marked, cells = chart.names[signal], chart.seen(signal), events(chart, signal), chart.cells(signal)
    numbers, actions = list(chart.log.problem.context), chart.log.actions
    tried: dict[tuple[int, int], float] = {}  # which number; where: −2 at both ends of it, −1 in all, or an action
    for place, ranked in enumerate(chart.ranked):
        tried[place, -1] = shift(ranked[rows], marked[rows], cells[rows]).chance
        tried[place, -2] = shift(np.abs(ranked[rows] - 0.5), marked[rows], cells[rows]).chance
        for action in range(len(chart.log.problem.actions)):
            some = rows & (actions == action)
            if some.any():
                tried[place, action] = shift(ranked[some], marked[some], cells[some]).chance
    if not tried or not rows.any():
        return None
    (place, where), chance = min(tried.items(), key=lambda one: one[1])
    some = rows & (actions == where) if where >= 0 else rows
    upper = np.abs(chart.ranked[place] - 0.5) > 0.25 if where == -2 else chart.ranked[place] > 0.5
    _, low, _ = chart.rate(signal, some & ~upper, 0.5)
    _, high, _ = chart.rate(signal, some & upper, 0.5)
    part = abs(high - low) / max(min(abs(high - chart.ends(signal)[0]), abs(low - chart.ends(signal)[0])), 1e-12)
    of = f" of {chart.log.problem.actions[where]!r}" if where >= 0 else ""
    halves = ("in the middle", "at the ends") if where == -2 else ("in the lower", "in the upper half")
    how = f"{said(low)} {halves[0]} and {said(high)} {halves[1]} of it"
    return Uneven(min(chance * len(tried), 1.0), part, numbers[place], f"{name!r}{of}", how)
