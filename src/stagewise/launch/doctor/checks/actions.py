"""Whether every row did something that the problem knows."""

from collections import Counter

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.finding import Finding
from stagewise.problem.naming import listing
from stagewise.problem.words import nearest, several, shown


def check(chart: Chart, alpha: float) -> Finding:
    """Find rows whose action the problem does not have."""
    log = chart.log
    strange = ~chart.known
    if not strange.any():
        return Finding("actions", "ok", f"all {log.rows:,} rows did one of {listing(log.problem.actions)}")
    named = Counter(text for text in chart.done[strange].tolist() if text is not None)
    if not named:
        return Finding(
            "actions",
            "contradicts",
            f"{several(int(strange.sum()), 'row')} of {log.rows:,} do not say what was done",
            "leave them out only where that does not depend on what came of it",
        )
    name, count = named.most_common(1)[0]
    other = nearest(name, list(log.problem.actions)) or f"; they are {listing(log.problem.actions)}"
    return Finding(
        "actions",
        "contradicts",
        f"{int(strange.sum()):,} of {log.rows:,} rows did what is no action of the problem, {count:,} of them "
        f"{shown(name)}{other}",
        "name every action that was done, or rename these",
    )
