"""Whether means moved while the log was written: what was true then may not be true now."""

import numpy as np

from stagewise.kernels.compile import Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.deciles import grouped
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.exchange import shift
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.doctor.fits import Fits

WORTH = 0.1  # of the mean, that it moved by from one half to the other: below it is noted


def check(chart: Chart, alpha: float) -> Finding:
    """Find signals whose mean moved, in all actions together or in one: early against late, or middle against ends."""
    problem, found = chart.log.problem, []
    tests = 3 * len(chart.names) * (len(problem.actions) + 1)
    shapes = {"trend": chart.when, "step": (chart.when > 0.5) * 1.0, "ends": np.abs(chart.when - 0.5)}
    for signal, name in enumerate(chart.names):
        rows, marked, strata = chart.seen(signal), events(chart, signal), alike(chart, signal)
        tried: dict[tuple[int, str], float] = {}
        for action in range(-1, len(problem.actions)):
            some = rows & (chart.log.actions == action) if action >= 0 else rows
            if some.any():
                for shape, when in shapes.items():
                    tried[action, shape] = shift(when[some], marked[some], strata[some]).chance
        if tried:
            (action, shape), chance = min(tried.items(), key=lambda one: one[1])
            if chance * tests <= alpha:
                found.append(finding(chart, signal, name, action, shape == "ends"))
    timed = chart.log.at is not None
    fine = "the beginning and the end" if timed else "the first row and the last (the log tells no time)"
    return gravest("drift", found, f"no mean moved between {fine}")


def alike(chart: Chart, signal: int) -> Ints:
    """Return strata (n,) whose rows have like means: cells of one rate, or an action's deciles of the linear fit."""
    if chart.log.problem.choices[chart.names[signal]].model == "rates":
        return chart.cells(signal)
    everyone = np.ones(chart.log.rows, dtype=bool)
    means = Fits(chart, signal).predicted(everyone, everyone)
    groups = np.zeros(chart.log.rows, dtype=np.int64)
    rows = np.isfinite(means)
    groups[rows] = 1 + grouped(means[rows]) if rows.any() else 0
    return np.asarray(np.maximum(chart.log.actions, 0) * 11 + groups)


def finding(chart: Chart, signal: int, name: str, action: int, ends: bool) -> Finding:
    """Return what there is to say of a mean that moved; without times only the order of rows is known, and noted."""
    some = chart.log.actions == action if action >= 0 else chart.known
    late = np.abs(chart.when - 0.5) > 0.25 if ends else chart.when > 0.5
    _, before, _ = chart.rate(signal, some & ~late, 0.5)
    _, after, _ = chart.rate(signal, some & late, 0.5)
    of = f" of {chart.log.problem.actions[action]!r}" if action >= 0 else ""
    low = chart.ends(signal)[0]
    part = abs(after - before) / max(min(abs(after - low), abs(before - low)), 1e-12)
    halves = ("the middle half of the log", "at its ends") if ends else ("the first half of the log", "in the second")
    words = f"{name!r}{of} averaged {said(before)} in {halves[0]} and {said(after)} {halves[1]}"
    if chart.log.at is None:
        return Finding("drift", "note", f"{words}, by the order of its rows", "name the column of times, such as 'at'")
    remedy = "learn from the recent part only, and keep the agent's watch on"
    return Finding("drift", "contradicts" if part >= WORTH else "note", words, remedy)
