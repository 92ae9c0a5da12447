"""Whether a number about users was recorded after the decision: it then knows the outcome, or the action.

Two signs. It foretells an outcome better than any mean that is linear in it and stays between the outcome's ends could
(and than `PLAUSIBLE`), within actions; or, where the log says how likely every action was, it differs between actions
more than those chances allow: what is known before a decision cannot depend on how the decision falls.
"""

import math

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.events import events, two_valued
from stagewise.launch.doctor.exchange import Flags, ranks, tail
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.doctor.odds import odds

SURE = 0.9  # whatever foretells a coin's fall better than so is taken for a look at it
COPY = 0.99  # the same for outcomes that are not coins: these may well be foretold by what came before
PLAUSIBLE = 0.75  # no alarm below
MARGIN = 0.03  # for the distribution of a number, which is known from rows only


def check(chart: Chart, alpha: float) -> Finding:
    """Find numbers and segments that know what they cannot have known."""
    log = chart.log
    columns = {name: log.numbers[:, place] for place, name in enumerate(log.problem.context)}
    tests = 2 * max((len(columns) + len(log.segments)) * len(chart.names), 1)
    found = []
    for signal, wanted in enumerate(chart.names):
        rows, marked = chart.seen(signal), events(chart, signal)
        coin = two_valued(chart, signal)
        for name, column in columns.items():
            some = rows & np.isfinite(column)
            foretold, bar = area(column[some], marked[some], log.actions[some], coin, 0.5 * alpha / tests)
            if foretold > bar:
                found.append(told(name, wanted, foretold, bar))
        for name, (groups, _) in chart.divided.items():
            column = rates_elsewhere(groups, marked, rows, chart.half)
            some = rows & ~chart.half
            foretold, _ = area(column[some], marked[some], log.actions[some], False, 0.5 * alpha / tests)
            if foretold > (SURE if coin else COPY):
                found.append(told(name, wanted, foretold, SURE))
    found += unbalanced(chart, 0.5 * alpha)
    return gravest("leaks", found, "no number about users knows what came of the decision")


def told(name: str, wanted: str, foretold: float, bar: float) -> Finding:
    """Return the finding on one column."""
    words = (
        f"{name!r} foretells {wanted!r} within actions with an area under the curve of surely {said(foretold)} or more, "
        f"where at most {said(bar)} is plausible of what is known before the decision"
    )
    return Finding("leaks", "contradicts", words, "look when it is recorded, and leave it out if that is afterwards")


def area(values: Floats, marked: Flags, actions: Ints, coin: bool, chance: float) -> tuple[float, float]:
    """Return at least how well a column tells marked rows from the others, within actions, and how well it plausibly may.

    The area is a mean of min(n₁, n₀) independent terms in [0, 1] (Hoeffding 1963, section 5), so that the bound of
    Chernoff holds: M kl(estimate, truth) ≤ log 1/chance, with M their number over all actions.
    """
    weight, seen, most = 0.0, 0.0, 0.0
    for action in np.unique(actions).tolist():
        some = actions == action
        ones, zeros = int(marked[some].sum()), int((~marked[some]).sum())
        if ones and zeros:
            fewer = min(ones, zeros)
            places = ranks(values[some]) * some.sum() + 0.5
            seen += fewer * (places[marked[some]].sum() - 0.5 * ones * (ones + 1)) / (ones * zeros)
            most += fewer * (likely_area(values[some], ones / (ones + zeros)) if coin else COPY)
            weight += fewer
    if not weight:
        return 0.5, 1.0
    estimate = max(seen / weight, 1.0 - seen / weight)
    bar = min(SURE, max(PLAUSIBLE, most / weight + MARGIN)) if coin else COPY
    return chernoff_low(estimate, weight, math.log(2.0 / chance)), bar


def likely_area(values: Floats, mean: float) -> float:
    """Return the largest area that a chance linear in a column, in [0, 1] wherever the column is, can have."""
    points, counts = np.unique(values, return_counts=True)
    centre, best = float(counts @ points / counts.sum()), 0.5
    for slope in (
        min(mean / max(centre - points[0], 1e-12), (1.0 - mean) / max(points[-1] - centre, 1e-12)),
        -min(mean / max(points[-1] - centre, 1e-12), (1.0 - mean) / max(centre - points[0], 1e-12)),
    ):
        ones = counts * np.clip(mean + slope * (points - centre), 0.0, 1.0)
        zeros = counts - ones
        below = np.cumsum(zeros) - 0.5 * zeros
        total = float(ones.sum() * zeros.sum())
        if total > 0.0:
            reached = float(ones @ below) / total
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
        chance = float(np.min(tail(sums, spread, 0.5))) * len(problem.context) * len(problem.actions)
        if chance <= alpha:
            action = problem.actions[int(np.argmin(tail(sums, spread, 0.5)))]
            words = (
                f"{name!r} is another where {action!r} was done than the logged chances allow (by chance once in "
                f"{said(1.0 / chance)} logs)"
            )
            remedy = "it was recorded after the decision, or these are not the chances that were drawn with"
            found.append(Finding("leaks", "contradicts", words, remedy))
    return found
