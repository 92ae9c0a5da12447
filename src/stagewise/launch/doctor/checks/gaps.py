"""Whether outcomes are lost for a while: not a single event where many are expected.

A join in another time zone loses the outcomes of some hours of every day; an export that ran too early has none of the
last days, and says 0. Rates may well differ by the hour and by the day, so it is not tested that they are alike. The
odds of an event in a stretch are taken to be at least a part ω of their mean in all other rows, action by action (and
segment by segment). Of m events, none lies among the L rows of the stretch with a probability of at most

    C(N, m) / Σⱼ C(L, j) ωʲ C(N, m − j)

with N other rows (Fisher's noncentral hypergeometric distribution). It is largest where the odds of the others are
alike, since e_m/e_{m−1} of elementary symmetric polynomials is Schur-concave: so it holds however they differ.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.events import bar_of, events
from stagewise.launch.doctor.exchange import Flags, log_factorial
from stagewise.launch.doctor.finding import Finding, gravest, said

DAY, WEEK = 86_400.0, 7
SELDOM = 0.2  # of the odds elsewhere, that an honest hour or weekday has at least
LESS = 0.5  # the same for a stretch of the log
PARTS = 100  # of the log, that a stretch begins and ends with
THURSDAY = 3  # which 1 January 1970 was, of Monday to Sunday
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Stretch(NamedTuple):
    """Rows (n,) that have no event, in words; how seldom they may have one, and among how many stretches they are."""

    rows: Flags
    where: str
    least: float
    tests: int
    share: float  # of alpha


def check(chart: Chart, alpha: float) -> Finding:
    """Find hours, weekdays and times without a single event, and above all the end of the log."""
    if chart.log.at is None or np.isnan(chart.log.at).all():
        return Finding("gaps", "ok", "the log tells no times, so that no stretch of it can lack outcomes")
    found, signals = [], marked_rows(chart)
    for name, (rows, marked, cells, bar) in signals.items():
        for stretch in empty_stretches(chart.log.at, rows & np.isfinite(chart.log.at), marked):
            here = stretch.rows & rows
            share = stretch.share * alpha / (len(signals) * stretch.tests)
            surely, perhaps = (log_chance(here, rows, marked, cells, part) for part in (stretch.least, 1.0))
            if perhaps <= math.log(share):
                sure = surely <= math.log(share)
                found.append(finding(name, stretch, here, expected(here, rows, marked, cells), bar, sure))
    return gravest("gaps", found, "no hour, weekday or time of the log lacks outcomes")


def marked_rows(chart: Chart) -> dict[str, tuple[Flags, Flags, Ints, float]]:
    """Return of every signal, and of all limits together: rows that are known, that have an event, cells, and the bar.

    An event is an outcome above the bar.
    """
    told = {}
    for signal, name in enumerate(chart.names):
        told[repr(name)] = chart.seen(signal), events(chart, signal), chart.cells(signal), bar_of(chart, signal)
    costs = list(told)[1:]
    if len(costs) > 1:
        rows = np.logical_and.reduce([told[name][0] for name in costs])
        marked = rows & np.logical_or.reduce([told[name][1] for name in costs])
        told[" or ".join(costs)] = rows, marked, np.maximum(chart.log.actions, 0), max(told[name][3] for name in costs)
    return told


def empty_stretches(at: Floats, rows: Flags, marked: Flags) -> Iterator[Stretch]:
    """Yield the stretches of rows without an event: the end of the log, parts of it, hours of the day, weekdays."""
    if not (rows & marked).any():
        return
    last = float(at[rows & marked].max())
    end, begin = float(at[rows].max()), float(at[rows].min())
    yield Stretch(at > last, f"in the last {span(end - last)} of the log", LESS, 1, 0.4)
    edges = np.quantile(at[rows], np.linspace(0.0, 1.0, PARTS + 1))
    part = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, PARTS - 1)
    for first, count in runs(part[rows & marked], PARTS, circular=False):
        ends = edges[first] - begin, edges[first + count] - begin
        where = f"between {span(ends[0])} and {span(ends[1])} after the log's first row"
        yield Stretch((part >= first) & (part < first + count), where, LESS, PARTS * (PARTS + 1) // 2, 0.2)
    with np.errstate(invalid="ignore"):
        hour = np.nan_to_num(at % DAY // 3600.0).astype(np.int64) % 24
        day = np.nan_to_num((at // DAY + THURSDAY) % WEEK).astype(np.int64)
    for first, count in runs(hour[rows & marked], 24):
        where = f"from {first:02d}:00 to {(first + count) % 24:02d}:00 UTC"
        yield Stretch((hour - first) % 24 < count, where, SELDOM, 24 * 23, 0.2)
    for first, count in runs(day[rows & marked], WEEK):
        until = f" to {WEEKDAYS[(first + count - 1) % WEEK]}" if count > 1 else ""
        yield Stretch((day - first) % WEEK < count, f"on {WEEKDAYS[first]}{until} (UTC)", SELDOM, WEEK * 6, 0.2)


def runs(places: Ints, count: int, *, circular: bool = True) -> list[tuple[int, int]]:
    """Return the longest runs of bins that no place lies in, as first bin and length.

    >>> runs(np.array([3, 4, 7]), 10), runs(np.array([3, 4, 7]), 10, circular=False)
    ([(5, 2), (8, 5)], [(0, 3), (5, 2), (8, 2)])
    """
    full = np.unique(places)
    if circular:
        lengths = (np.roll(full, -1) - full - 1) % count
        return [((int(bin_) + 1) % count, int(length)) for bin_, length in zip(full, lengths, strict=True) if length]
    ends = np.concatenate([[-1], full, [count]])
    return [(low + 1, high - low - 1) for low, high in pairwise(ends.tolist()) if high - low > 1]


def log_chance(here: Flags, rows: Flags, marked: Flags, cells: Ints, least: float) -> float:
    """Return the log of the chance that none of the events lies here, with odds of at least a part of the others'.

    >>> rows, cells = np.ones(10, dtype=bool), np.zeros(10, dtype=np.int64)
    >>> round(math.exp(log_chance(np.arange(10) > 6, rows, np.arange(10) < 2, cells, 1.0)), 9)  # 7/10 6/9
    0.466666667
    """
    size = int(cells[rows].max(initial=-1)) + 1
    inside = np.bincount(cells[here], minlength=size)
    outside = np.bincount(cells[rows & ~here], minlength=size)
    hits = np.bincount(cells[rows & marked], minlength=size)
    total = 0.0
    for length, others, events_ in zip(inside.tolist(), outside.tolist(), hits.tolist(), strict=True):
        if length and events_:
            j = np.arange(min(length, events_) + 1)
            ways = log_choose(length, j) + j * math.log(least) + log_choose(others, events_ - j)
            total += float(log_choose(others, np.array(events_)) - np.logaddexp.reduce(ways))
    return total


def log_choose(count: int, some: Ints) -> Floats:
    """Return log C(count, some)."""
    return np.asarray(log_factorial(float(count)) - log_factorial(some) - log_factorial(count - some))


def expected(here: Flags, rows: Flags, marked: Flags, cells: Ints) -> float:
    """Return how many events would lie here at the rates of the other rows."""
    size = int(cells[rows].max(initial=-1)) + 1
    others = np.bincount(cells[rows & ~here], minlength=size)
    hits = np.bincount(cells[rows & marked], minlength=size)
    return float(np.bincount(cells[here], minlength=size) @ (hits / np.maximum(others, 1)))


def finding(name: str, stretch: Stretch, here: Flags, should: float, bar: float, sure: bool) -> Finding:
    """Return what there is to say of a stretch without an event."""
    words = (
        f"no {name} is above {said(bar)} {stretch.where}, in {int(here.sum()):,} rows, where {said(should)} would be"
    )
    remedy = (
        "look at how outcomes are joined to decisions: those that were lost, or not in yet, look like none; leave "
        "these rows out, or their outcomes empty"
    )
    if sure:
        return Finding("gaps", "contradicts", words, remedy)
    return Finding("gaps", "note", f"{words} at the rate of the others, which may be rarer there", remedy)


def span(seconds: float) -> str:
    """Return a time in words.

    >>> span(7200.0), span(200_000.0)
    ('2 hours', '2.31 days')
    """
    return f"{seconds / 3600.0:.2g} hours" if seconds < DAY else f"{seconds / DAY:.3g} days"
