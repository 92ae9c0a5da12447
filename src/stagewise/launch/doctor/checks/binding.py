"""Whether a limit can ever bind."""

import numpy as np

from stagewise.launch.doctor.chart import Chart, threshold_of
from stagewise.launch.doctor.finding import Finding, gravest, said

FAR = 5.0  # times: a limit this far above every action's mean says nothing
MOST_CELLS = 500


def check(chart: Chart, alpha: float) -> Finding:
    """Find limits that every action's mean, in every segment, surely keeps with a fifth of the room."""
    problem, found = chart.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        value, below = threshold_of(limit)
        low, high = chart.ends(signal)
        room = (high - value if below else value - low) / FAR
        cells = chart.cells(signal)
        met = np.unique(cells[chart.seen(signal)])
        everywhere = set(chart.log.actions[chart.seen(signal)].tolist()) == set(range(len(problem.actions)))
        if not everywhere or not 0 < met.size <= MOST_CELLS or problem.choices[name].model != "rates":
            continue
        chance = alpha / (len(problem.limits) * met.size)
        ends = [chart.rate(signal, cells == cell, chance)[2] for cell in met.tolist()]
        most = max(high - end.low for end in ends) if below else max(end.high - low for end in ends)
        if most < room:
            dearest = high - most if below else low + most
            words = (
                f"{name!r} of every action is surely at {'least' if below else 'most'} {said(dearest)}, "
                f"and its limit is {said(value)}, so that it can never bind"
            )
            remedy = "check its units; accept it (accept='binding') where it is only there to watch"
            found.append(Finding("binding", "contradicts", words, remedy))
    return gravest("binding", found, "every limit could bind")
