"""Whether outcomes are missing for a reason: rows without one may be left out only if the outcome did not decide that.

Whether an outcome that is not known decided it cannot be seen. What can be seen is its trace: outcomes differ by
action, by user and with one another, and so does what is missing because of them.
"""

import numpy as np

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.exchange import Flags, shift, shifts
from stagewise.launch.doctor.finding import Finding, gravest
from stagewise.launch.doctor.fits import rates as cell_rates

REMEDY = "find out why: where the outcome decides, what is left says nothing of its mean"


def check(chart: Chart, alpha: float) -> Finding:
    """Find outcomes and numbers that are missing, and what that goes with."""
    log, found = chart.log, []
    for signal, name in enumerate(chart.names):
        gone = np.isnan(log.values[:, signal])
        if gone.any():
            found.append(missing_outcome(chart, signal, name, gone, alpha / len(chart.names)))
    for place, name in enumerate(log.problem.context):
        gone = np.isnan(log.numbers[:, place])
        if gone.any():
            words = f"{name!r} is missing in {int(gone.sum()):,} of {log.rows:,} rows"
            remedy = "fill in what stands for it, such as the middle of its range, here and in every call alike"
            found.append(Finding("missing", "note", words, remedy))
    return gravest("missing", found, "every row has every outcome and every number")


def missing_outcome(chart: Chart, signal: int, name: str, gone: Flags, alpha: float) -> Finding:
    """Return what there is to say of one signal's missing outcomes."""
    log, window = chart.log, chart.log.problem.signals[name].waits
    low, _ = chart.ends(signal)
    late, there = chart.open[:, signal], log.values[~gone, signal]
    share = f"{name!r} is missing in {int(gone.sum()):,} of {log.rows:,} rows ({gone.mean():.1%})"
    if not there.size:
        words, counts = f"{share}, which is all of them", window is not None and not window.drops
        remedy = "check the column's name" if counts else "nothing can be learned of it; check the column's name"
        return Finding("missing", "note" if counts else "contradicts", words, remedy)
    only = np.unique(there)
    if only.size == 1 and only[0] > low and (window is None or window.drops):
        words = f"{share}, and is {only[0]:g} in all others: only what happened was reported"
        return Finding("missing", "contradicts", words, f"fill in {low:g} where nothing was reported in time")
    if window is not None and late.all():
        words = f"{share}, and every row's window of {window.told} is still open: nothing is known of its mean yet"
        return Finding("missing", "contradicts", words, "log for longer than the window")
    if window is not None and late.any():
        share += f"; {int(late.sum()):,} rows are left out, whose window of {window.told} was open when the log was cut"
    gone = gone & ~late
    if window is not None and not window.drops and not (log.values[~late, signal] == window.missing).any():
        words = f"{share}; {int(gone.sum()):,} count as {window.missing:g}, as no answer in time does{log.untimed}"
        return Finding("missing", "note", words)
    trace = trace_of(chart, signal, gone, ~late, alpha)
    if trace:
        return Finding("missing", "contradicts", f"{share}, and that goes with {trace}", REMEDY)
    if not gone.any():
        return Finding("missing", "note", share)
    words = f"{share}; that goes with no action, number, time or other outcome that is known"
    return Finding("missing", "note", words, "rows may be left out only if the outcome itself did not decide that")


def trace_of(chart: Chart, signal: int, gone: Flags, closed: Flags, alpha: float) -> str:
    """Return what missing goes with most surely, in words, of rows whose windows closed; nothing: chance may do it."""
    if not closed.all():
        chart, gone = Chart(chart.log.taken(closed), chart.called), gone[closed]
    log, actions = chart.log, np.maximum(chart.log.actions, 0)
    tests = len(log.problem.actions) + len(chart.ranked) + 2 + len(chart.names) - 1
    tests += sum(len(names) for _, names in chart.divided.values())
    lost, everyone = gone.astype(float), np.zeros(log.rows, np.int64)
    chances: dict[str, float] = {}
    by_action = shifts(lost, actions, everyone, len(log.problem.actions))
    worst = int(np.argmin(by_action.chance))
    part = float(lost[actions == worst].mean()) if (actions == worst).any() else 0.0
    chances[f"the action: {part:.1%} where {log.problem.actions[worst]!r} was done"] = float(by_action.chance[worst])
    rates = np.nan_to_num(cell_rates(chart, signal, ~gone))  # what an outcome that decides would leave
    along_rates = shift(rates, gone, everyone)
    more = "more" if along_rates.difference > 0.0 else "less"
    chances[f"its own rate: {more} is missing of actions that have more of it"] = along_rates.chance
    for name, ranked in zip(log.problem.context, chart.ranked, strict=True):
        moved = shift(ranked, gone, actions)
        chances[f"{name!r}, which is {'higher' if moved.difference > 0.0 else 'lower'} there"] = moved.chance
    for name, (groups, names) in chart.divided.items():
        found = shifts(lost, groups, actions, len(names))
        chances[f"{name}, most in {names[int(np.argmin(found.chance))]!r}"] = float(found.chance.min())
    late = shift(chart.when, gone, actions)
    cut = "late, as where windows were still open when the log was cut; cut it before"
    chances[f"time: more is missing {cut if late.difference > 0.0 else 'early'}"] = late.chance
    for other, name in enumerate(chart.names):
        if other != signal:
            rows = chart.seen(other)
            along = shift(events(chart, other)[rows].astype(float), gone[rows], actions[rows])
            more = "more" if along.difference > 0.0 else "less"
            chances[f"{name!r}, which is {more} frequent there"] = along.chance
    words = min(chances, key=lambda one: chances[one])
    return words if chances[words] * tests <= alpha else ""
