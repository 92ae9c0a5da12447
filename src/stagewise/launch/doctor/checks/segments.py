"""Columns of text by which rates differ: segments that a limit should hold in by itself."""

from typing import Any

from stagewise.kernels.compile import Ints
from stagewise.launch.doctor.chart import Chart, numbered, threshold_of
from stagewise.launch.doctor.checks.model import LEVEL
from stagewise.launch.doctor.events import events
from stagewise.launch.doctor.exchange import parted
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.log import TIMES, texts_of

MOST = 1_000  # groups of a column that may be segments: more are names of users


def check(chart: Chart, alpha: float) -> Finding:
    """Find columns that the problem does not name, and in whose groups a rate is another than in all."""
    columns, problem, found = columns_of_text(chart), chart.log.problem, []
    rates = [place for place, name in enumerate(chart.names) if place and problem.choices[name].model == "rates"]
    for column, (groups, names) in columns.items():
        for signal in rates:
            rows = chart.seen(signal)
            told = parted(events(chart, signal)[rows], groups[rows], chart.cells(signal)[rows], len(names))
            tried = len(columns) * len(rates)
            if told.chance * tried <= max(0.5 * alpha, 0.5 * LEVEL):  # at which a proposal divides users
                broken = over(chart, signal, groups, names, 0.5 * alpha / tried)
                luck = told.chance * tried if told.chance * tried > 0.5 * alpha else 0.0
                found.append(finding(chart.names[signal], column, names[told.group], told.difference, broken, luck))
    return gravest("segments", found, "no column of text divides users whose rates differ")


def finding(signal: str, column: str, name: str, apart: float, broken: str, luck: float) -> Finding:
    """Return what there is to say of one column and signal; `luck`: how often chance looks so, where that matters."""
    words = f"{signal!r} differs by {column!r}: in {name!r} it is {'+' if apart > 0 else ''}{said(apart)} from all"
    remedy = f"by = {column!r} keeps its rates, and its limit, for each"
    if broken:
        return Finding("segments", "contradicts", f"{words}, and {broken}", remedy)
    words += f"; rates that do not differ look so in at most 1 of {said(1.0 / luck)} logs by chance" if luck else ""
    return Finding("segments", "note", words, remedy)


def over(chart: Chart, signal: int, groups: Ints, names: list[str], chance: float) -> str:
    """Return where an action that keeps a limit on average surely breaks it, in words; nothing, where none does."""
    problem = chart.log.problem
    value, below = threshold_of(problem.limits[chart.names[signal]])
    for action, name in enumerate(problem.actions):
        doing = chart.log.actions == action
        _, mean, _ = chart.rate(signal, doing, 0.5)
        if not ((mean >= value) if below else (mean <= value)):
            continue
        for place, group in enumerate(names):
            here = doing & (groups == place) if len(names) <= 100 else doing & False
            _, _, ends = chart.rate(signal, here, chance / (len(names) * len(problem.actions)))
            if (ends.high < value) if below else (ends.low > value):
                least = said(ends.high if below else ends.low)
                return f"{name!r} keeps {said(value)} on average and breaks it for {group!r}, surely {least}"
    return ""


def columns_of_text(chart: Chart) -> dict[str, tuple[Ints, list[str]]]:
    """Return the columns of text that the problem does not name, as numbers and the names of their groups."""
    taken = {chart.called.get(name, name) for name in (*chart.names, *chart.log.problem.expected, "action")}
    told = {}
    for name, array in chart.log.arrays.items():
        if isinstance(name, str) and name not in taken and name not in TIMES and array.dtype.kind == "O":
            groups = as_groups(array)
            if groups is not None:
                told[name] = groups
    return told


def as_groups(array: Any) -> tuple[Ints, list[str]] | None:
    """Return a column of texts as numbers with names; None where it holds something else, or a name for every row."""
    entries = array.tolist()
    kinds = {type(entry) for entry in entries}
    if str not in kinds or any(kind not in (str, bool, int, float, type(None)) for kind in kinds):
        return None
    distinct = set(entries)
    if not 2 <= len(distinct) <= min(MOST, len(entries) // 2):
        return None
    return numbered(texts_of(entries))
