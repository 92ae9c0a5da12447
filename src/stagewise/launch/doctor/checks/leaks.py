"""Whether a number about users was recorded after the decision: it then knows the outcome, or the action.

Two signs. It foretells an outcome within actions better than `SURE`, which is a rule and no test: an honest number that
is as good would be taken for a leak too; below, what is better than any mean that is linear in it and stays between the
outcome's ends could be (and than `PLAUSIBLE`) is noted. Or, where the log says how likely every action was, it differs
between actions more than those chances allow: what is known before a decision cannot depend on how the decision falls.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.events import events, two_valued
from stagewise.launch.doctor.exchange import Flags, drawn_tail
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.doctor.odds import odds

SURE = 0.9  # whatever foretells a coin's fall better than so is taken for a look at it
COPY = 0.99  # the same for outcomes that are not coins: these may well be foretold by what came before
PLAUSIBLE = 0.75  # nothing is said below
MARGIN = 0.03  # for the distribution of a number, which is known from rows only


def check(chart: Chart, alpha: float) -> Finding:
    """Find numbers and segments that know what they cannot have known."""
    log = chart.log
    tests = 2 * max((len(log.problem.context) + len(log.segments)) * len(chart.names), 1)
    found, marks = [], [(events(chart, k), chart.seen(k), two_valued(chart, k)) for k in range(len(chart.names))]
    for place, name in enumerate(log.problem.context):
        points = Points.of(log.numbers[:, place], log.actions)
        for wanted, (marked, rows, coin) in zip(chart.names, marks, strict=True):
            foretold, bar = area(points, marked, rows, coin, alpha / tests)
            usual = bar if foretold > bar or not coin or foretold <= PLAUSIBLE else likely(points, marked, rows)
            if foretold > min(bar, usual):
                found.append(told(name, wanted, foretold, bar, usual))
    for name, (groups, _) in chart.divided.items():
        for signal, wanted in enumerate(chart.names):
            foretold, bar = of_groups(chart, groups, signal, alpha / tests)
            if foretold > bar:
                found.append(told(name, wanted, foretold, bar, bar))
    found += unbalanced(chart, 0.5 * alpha)
    return gravest("leaks", found, "no number about users knows what came of the decision")


def told(name: str, wanted: str, foretold: float, bar: float, usual: float) -> Finding:
    """Return the finding on one column."""
    words = f"{name!r} foretells {wanted!r} within actions with an area under the curve of {said(foretold)} or more"
    if foretold > bar:
        words += f", and above {said(bar)} it is taken for known after the decision"
        return Finding(
            "leaks", "contradicts", words, "look when it is recorded, and leave it out if that is afterwards"
        )
    words += f", where {said(usual)} is as good as a linear mean would be"
    return Finding("leaks", "note", words, "look when it is recorded: what is known before may well be as good")


class Points(NamedTuple):
    """The values of a column, action by action: rows, the values that differ, and which of them each row has."""

    pieces: list[tuple[Ints, Floats, Ints]]

    @classmethod
    def of(cls, column: Floats, actions: Ints) -> "Points":
        """Return the values of a column, sorted within each action."""
        pieces = []
        for action in np.unique(actions[actions >= 0]).tolist():
            rows = np.flatnonzero((actions == action) & np.isfinite(column))
            values, places = np.unique(column[rows], return_inverse=True)
            pieces.append((rows, values, places.reshape(-1)))
        return cls(pieces)


def area(points: Points, marked: Flags, known: Flags, coin: bool, chance: float) -> tuple[float, float]:
    """Return how well a column at least tells marked rows from others, within actions, and how well it surely may not.

    The area is a mean of min(n₁, n₀) independent terms in [0, 1] (Hoeffding 1963, section 5), so that the bound of
    Chernoff holds: M kl(estimate, truth) ≤ log 1/chance, with M their number over all actions.
    """
    bar = SURE if coin else COPY
    pieces = counted(points, marked, known)
    weight = sum(fewer for fewer, *_ in pieces)
    if not weight:
        return 0.5, bar
    seen = sum(fewer * under_curve(ones, counts - ones) for fewer, _, counts, ones in pieces) / weight
    return chernoff_low(max(seen, 1.0 - seen), weight, math.log(2.0 / chance)), bar


def of_groups(chart: Chart, groups: Ints, signal: int, chance: float) -> tuple[float, float]:
    """Return the same for the groups of a column, whose rates are known from one half of the rows, on the other."""
    marked, rows, half = events(chart, signal), chart.seen(signal), chart.half
    points = Points.of(rates_elsewhere(groups, marked, rows, half), chart.log.actions)
    return area(points, marked, rows & ~half, two_valued(chart, signal), chance)


def leak(chart: Chart, measured: Callable[[int], tuple[float, float]]) -> str:
    """Return why a column is taken to be recorded after the decision, of what it foretells of every signal, and may.

    Nothing is said where it is not.
    """
    for signal, name in enumerate(chart.names):
        foretold, bar = measured(signal)
        if foretold > bar:
            return f"it foretells {name!r} with an area under the curve of {said(foretold)} or more: known afterwards?"
    return ""


def likely(points: Points, marked: Flags, known: Flags) -> float:
    """Return how well a column may tell marked rows from others, were their mean linear in it."""
    pieces = counted(points, marked, known)
    most = sum(
        fewer * likely_area(values, counts, float(ones.sum() / counts.sum())) for fewer, values, counts, ones in pieces
    )
    return max(PLAUSIBLE, most / sum(fewer for fewer, *_ in pieces) + MARGIN)


def counted(points: Points, marked: Flags, known: Flags) -> list[tuple[float, Floats, Floats, Floats]]:
    """Return, for actions with both, how many are marked or are not, the fewer; values, and rows and marked of each."""
    pieces = []
    for rows, values, places in points.pieces:
        some = known[rows]
        counts = np.bincount(places[some], minlength=values.size).astype(np.float64)
        ones = np.bincount(places[some], marked[rows[some]], minlength=values.size).astype(np.float64)
        fewer = min(float(ones.sum()), float((counts - ones).sum()))
        if fewer > 0.0:
            pieces.append((fewer, values, counts, ones))
    return pieces


def under_curve(ones: Floats, zeros: Floats) -> float:
    """Return how often a value among the ones is above one among the zeros, ties by half.

    >>> under_curve(np.array([0.0, 1.0]), np.array([1.0, 0.0])), under_curve(np.array([1.0]), np.array([1.0]))
    (1.0, 0.5)
    """
    return float(ones @ (np.cumsum(zeros) - 0.5 * zeros) / (ones.sum() * zeros.sum()))


def likely_area(values: Floats, counts: Floats, mean: float) -> float:
    """Return the largest area that a chance linear in a column, in [0, 1] wherever the column is, can have."""
    centre, best = float(counts @ values / counts.sum()), 0.5
    down, up = max(centre - values[0], 1e-12), max(values[-1] - centre, 1e-12)
    for slope in (min(mean / down, (1.0 - mean) / up), -min(mean / up, (1.0 - mean) / down)):
        ones = counts * np.clip(mean + slope * (values - centre), 0.0, 1.0)
        if 0.0 < ones.sum() < counts.sum():
            reached = under_curve(ones, counts - ones)
            best = max(best, reached, 1.0 - reached)
    return best


def chernoff_low(mean: float, count: float, confidence: float) -> float:
    """Return the least p with count · kl(mean, p) ≤ confidence.

    >>> round(chernoff_low(1.0, 100.0, 10.0), 4), chernoff_low(0.5, 1.0, 10.0) < 0.01
    (0.9048, True)
    """
    low, high = 0.0, mean
    for _ in range(60):
        p = 0.5 * (low + high)
        apart = mean * math.log(mean / p) if p > 0.0 and mean > 0.0 else (math.inf if mean > 0.0 else 0.0)
        apart += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - p)) if mean < 1.0 else 0.0
        low, high = (low, p) if count * apart <= confidence else (p, high)
    return high


def rates_elsewhere(groups: Ints, marked: Flags, rows: Flags, half: Flags) -> Floats:
    """Return for every row how often its group is marked in one half of the rows."""
    some = rows & half
    size = int(groups.max(initial=-1)) + 1
    count = np.bincount(groups[some], minlength=size)
    overall = float(marked[some].mean()) if some.any() else 0.5
    return np.asarray(((np.bincount(groups[some], marked[some], minlength=size) + overall) / (count + 1.0))[groups])


def unbalanced(chart: Chart, alpha: float) -> list[Finding]:
    """Return the numbers that differ between actions more than the logged chances of the actions allow."""
    chances = odds(chart)
    if chances is None or not chart.ranked:
        return []
    rows = chart.known & np.isfinite(chances).all(axis=1)
    problem, found = chart.log.problem, []
    did = chart.log.actions[rows, None] == np.arange(len(problem.actions))
    for name, ranked in zip(problem.context, chart.ranked, strict=True):
        apart = ranked[rows] - 0.5
        sums = apart @ (did - chances[rows])
        spread = apart**2 @ (chances[rows] * (1.0 - chances[rows]))
        chance = drawn_tail(sums, spread, 0.5, int(rows.sum())) * len(problem.context) * len(problem.actions)
        worst = int(np.argmin(chance))
        if chance[worst] <= alpha:
            action, higher = problem.actions[worst], "higher" if sums[worst] > 0.0 else "lower"
            words = f"{name!r} is {higher} where {action!r} was done than the logged chances of that allow"
            remedy = "it was recorded after the decision, or these are not the chances that were drawn with"
            found.append(Finding("leaks", "contradicts", words, remedy))
    return found
