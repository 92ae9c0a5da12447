"""The form of each limit, chosen from one part of a log: one rate for each action, by segment, or linear."""

from dataclasses import dataclass

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.model import LEVEL, chosen_at, unevenness
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.exchange import parted
from stagewise.launch.doctor.finding import said
from stagewise.launch.doctor.proposing.alike import Bar, alike
from stagewise.launch.doctor.proposing.divisions import Divisions


@dataclass(frozen=True)
class Form:
    """How a limit's mean is modelled, why, and among how many ways that was chosen."""

    why: str
    by: str | None = None
    linear: bool = False
    ways: int = 1
    averaged: tuple[str, ...] = ()
    """The columns of text that the limit holds on average over, although no one has shown that it does not matter."""


def form_of(chart: Chart, signal: int, divisions: Divisions, bar: Bar, chance: float) -> Form:
    """Return the form of a limit: linear where a number is shown to move it, else by segment, else one rate an action.

    Users are divided by a column whose rates are shown to differ, and also by one of few values unless its rates are
    shown to be alike: what few rows cannot show may be there all the same, and the limit would then hold on average
    only. Of several such columns the one that looks least alike is taken, as a limit has one division.
    """
    limits = len(chart.names) - 1
    ways = 1 + len(divisions.columns) + bool(chart.log.problem.context)
    same = {column: alike(chart, signal, *told, bar, chance) for column, told in divisions.columns.items()}
    apart = [column for column in divisions.columns if not same[column]]
    open_ones = (*apart, *divisions.unfit)
    numbers = "no number is shown to move it" if chart.log.problem.context else "there is no number that could move it"
    moved = unevenness(chart, signal)
    if moved is not None and moved.chance <= chosen_at(chart):
        return Form(moved.words, linear=True, ways=ways, averaged=open_ones)
    tried = {column: differing(chart, signal, divisions, column, limits) for column in apart}
    order = sorted(apart, key=lambda column: tried[column][0])
    best = next((name for name in order if tried[name][0] <= 0.5 * LEVEL or name in divisions.few), None)
    others = tuple(column for column in open_ones if column != best)
    if best is not None and tried[best][0] <= 0.5 * LEVEL:
        odds, words = tried[best]
        why = f"rates differ by {best!r}: {words} (chance {said(odds)}, of all tried)"
    elif best is not None:
        why = (
            f"rates of an action are not shown to be alike (within {said(bar.margin)}) in all groups of {best!r}, so "
            "that the limit is to hold in each"
        )
    else:
        why = f"one rate for each action: {numbers}"
        why += "".join(f"; {column!r}: {words}" for column, words in same.items() if words)
    return Form(why, by=best, ways=ways, averaged=others)


def differing(chart: Chart, signal: int, divisions: Divisions, column: str, limits: int) -> tuple[float, str]:
    """Return by what chance a column's groups would lie as far apart as they do, all that was tried counted."""
    (groups, names), rows = divisions.columns[column], chart.seen(signal)
    told = parted(events(chart, signal)[rows], groups[rows], chart.cells(signal)[rows], len(names))
    words = f"in {names[told.group]!r} it is {told.difference:+.2g} from what it is elsewhere"
    return told.chance * len(divisions.columns) * limits, words
