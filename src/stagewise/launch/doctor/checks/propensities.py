"""Whether the chances that a log tells of its actions agree with what was done."""

import numpy as np

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.exchange import tail
from stagewise.launch.doctor.finding import Finding, said

SLACK = 1e-3  # chances that were rounded for the log add up to 1 within it


def check(chart: Chart, alpha: float) -> Finding:
    """Find chances that are none, that do not add up, or with which actions would have come more or less often."""
    log, problem = chart.log, chart.log.problem
    if log.probabilities is None and log.propensities is None:
        return Finding("propensities", "ok", "the log tells no propensities, which learning does not need")
    wrong = impossible(chart)
    if wrong is not None:
        return wrong
    did = (log.actions[chart.known, None] == np.arange(len(problem.actions))).astype(float)
    if log.probabilities is not None:
        chances = log.probabilities[chart.known]
        sums, spread, most = (did - chances).sum(axis=0), (chances * (1.0 - chances)).sum(axis=0), 1.0
        expected = chances.sum(axis=0)
    else:  # E[1{did a}/p] = 1 wherever a could be done
        assert log.propensities is not None
        weights = did / log.propensities[chart.known, None]
        sums, most = weights.sum(axis=0) - len(did), float(weights.max(initial=1.0))
        spread, expected = np.maximum((weights**2).sum(axis=0), len(did) * 1.0), np.full(did.shape[1], np.nan)
        sums = np.where((sums < 0.0) & (did.sum(axis=0) == 0.0), 0.0, sums)  # never done: it may not have been on offer
    chance = tail(sums, spread, most) * len(problem.actions)
    worst = int(np.argmin(chance))
    if chance[worst] > alpha:
        return Finding("propensities", "ok", "the chances that are logged agree with how often each action was done")
    times = f"{int(did[:, worst].sum()):,} times"
    should = f", where its chances add up to {said(float(expected[worst]))}" if np.isfinite(expected[worst]) else (
        f", and its rows, each over its propensity, stand for {said(float(sums[worst] + len(did)))} of {len(did):,}"
    )  # fmt: skip
    return Finding(
        "propensities",
        "contradicts",
        f"{problem.actions[worst]!r} was done {times}{should}",
        "log the chance that the decision was drawn with, for the action that was carried out",
    )


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
