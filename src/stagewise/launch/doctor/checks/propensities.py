"""Whether the chances that a log tells of its actions agree with what was done."""

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.exchange import LEAST, drawn_tail
from stagewise.launch.doctor.finding import Finding, said
from stagewise.launch.doctor.odds import odds

SLACK = 1e-3  # chances that were rounded for the log add up to 1 within it
BETS = tuple(0.6 / 3.0**k for k in range(8))  # parts of what there is, that bets against the chances put in


def check(chart: Chart, alpha: float) -> Finding:
    """Find chances that are none, that do not add up, or with which actions would have come more or less often.

    Of what was done alone, an action can have come too often only: where it was not done it may not have been on offer.
    """
    log, problem = chart.log, chart.log.problem
    if log.probabilities is None and log.propensities is None:
        return Finding("propensities", "ok", "the log tells no propensities, which learning does not need")
    wrong = impossible(chart)
    if wrong is not None:
        return wrong
    chances = odds(chart)
    did = (log.actions[chart.known, None] == np.arange(len(problem.actions))).astype(float)
    if chances is not None:
        chances = chances[chart.known]
        expected, spread = chances.sum(axis=0), (chances * (1.0 - chances)).sum(axis=0)
        chance = drawn_tail((did - chances).sum(axis=0), spread, 1.0, len(did))
    else:
        assert log.propensities is not None
        weights = did / log.propensities[chart.known, None]
        expected, chance = np.full(did.shape[1], np.nan), too_many(weights)
    worst = int(np.argmin(chance))
    if chance[worst] * len(problem.actions) > alpha:
        return Finding("propensities", "ok", "the chances that are logged agree with how often each action was done")
    times = f"{int(did[:, worst].sum()):,} times"
    should = f", where its chances add up to {said(float(expected[worst]))}" if np.isfinite(expected[worst]) else (
        f", and its rows, each over its propensity, stand for {said(float(weights[:, worst].sum()))} of {len(did):,}"
    )  # fmt: skip
    return Finding(
        "propensities",
        "contradicts",
        f"{problem.actions[worst]!r} was done {times}{should}",
        "log the chance that the decision was drawn with, for the action that was carried out",
    )


def too_many(weights: Floats) -> Floats:
    """Return how likely it is that an action came as often as this, of weights 1{done}/p (n, K) row by row.

    E[1{done}/p] ≤ 1 given what came before, whoever chose p, and how small p can be is not known. Bets against that,
    ∏ (1 + λ (1{done}/p − 1)) with 0 < λ < 1, are then worth 1 at most on average, and 1/c with a chance of c at most
    (Ville); their mean over several λ is such a bet too.

    >>> too_many(np.tile([[2.0, 0.0], [0.0, 2.0]], (100, 1))).tolist()
    [1.0, 1.0]
    >>> bool(too_many(np.tile([[4.0], [0.0]], (100, 1)))[0] < 1e-6)  # half of the time, where p says a quarter
    True
    """
    worth = np.array([np.log1p(bet * (weights - 1.0)).sum(axis=0) for bet in BETS])
    return np.asarray(np.clip(np.exp(np.log(len(BETS)) - np.logaddexp.reduce(worth, axis=0)), LEAST, 1.0))


def impossible(chart: Chart) -> Finding | None:
    """Return what is wrong with chances that can be none."""
    log, remedy = chart.log, "log the chance that the decision was drawn with"
    if log.propensities is not None:
        bad = ~((log.propensities > 0.0) & (log.propensities <= 1.0 + 1e-9))
        if bad.any():
            value = float(log.propensities[bad][0])
            words = f"{int(bad.sum()):,} of {log.rows:,} propensities lie outside (0, 1], such as {said(value)}"
            percent = "; 25 percent are 0.25" if 1.0 < value <= 100.0 else ""
            return Finding("propensities", "contradicts", words, f"{remedy}{percent}")
    if log.probabilities is not None:
        odd = ~(np.abs(log.probabilities.sum(axis=1) - 1.0) <= SLACK) | ~(log.probabilities >= 0.0).all(axis=1)
        if odd.any():
            words = f"the chances of all actions do not add up to 1 in {int(odd.sum()):,} of {log.rows:,} rows"
            return Finding("propensities", "contradicts", words, remedy)
    if log.probabilities is not None and log.propensities is not None:
        own = log.probabilities[np.arange(log.rows), np.maximum(log.actions, 0)]
        other = chart.known & ~(np.abs(own - log.propensities) <= SLACK)
        if other.any():
            words = f"the propensity is not the logged chance of what was done in {int(other.sum()):,} rows"
            return Finding("propensities", "contradicts", words, remedy)
    return None
