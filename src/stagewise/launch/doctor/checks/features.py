"""Numbers about users that do not matter: each makes all bounds wider."""

import numpy as np
from scipy.special import chdtrc  # type: ignore[import-untyped]

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.finding import Finding
from stagewise.problem.naming import listing

VISIBLE = 0.001  # an effect that chance makes as rarely is taken for one


def check(chart: Chart, alpha: float) -> Finding:
    """Name the numbers whose effect on no linear signal can be seen, in all actions together or in one."""
    problem = chart.log.problem
    linear = [place for place, name in enumerate(chart.names) if problem.choices[name].model == "linear"]
    if not problem.context or not linear:
        return Finding("features", "ok", "no signal is linear in numbers about the user")
    constant = [name for i, name in enumerate(problem.context) if np.unique(chart.log.numbers[:, i]).size < 2]
    if constant:
        words = f"{listing(constant)} {'has' if len(constant) == 1 else 'have'} one value in all rows"
        return Finding("features", "note", words, "leave them out: what does not change tells nothing")
    idle = [name for i, name in enumerate(problem.context) if not any(matters(chart, i, k) for k in linear)]
    if not idle:
        return Finding("features", "ok", f"every one of {listing(problem.context)} shows an effect")
    words = f"no effect of {listing(idle)} on {listing(chart.names[k] for k in linear)} can be seen in this log"
    return Finding("features", "note", words, "leaving out what does not matter makes bounds narrower")


def matters(chart: Chart, feature: int, signal: int) -> bool:
    """Say whether some effect of a number on a signal can be seen, by Σ z² over actions: χ² with as many degrees."""
    rows = chart.seen(signal)
    ranked, marked, actions = chart.ranked[feature][rows], events(chart, signal)[rows], chart.log.actions[rows]
    total, degrees = 0.0, 0
    for action in np.unique(actions).tolist():
        some = actions == action
        hits, count, spread = float(marked[some].sum()), int(some.sum()), float(ranked[some].var())
        variance = spread * hits * (count - hits) / max(count - 1, 1)
        if variance > 0.0:
            total += float((ranked[some] - ranked[some].mean())[marked[some]].sum()) ** 2 / variance
            degrees += 1
    return bool(degrees and chdtrc(degrees, total) <= VISIBLE)
