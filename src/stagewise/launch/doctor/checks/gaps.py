"""Check `outcome_gaps`: no period lacks outcomes, that is, has no event where many are expected.

A join in another time zone loses the outcomes of some hours of every day; an export that ran too early has zeros for
the last days. Rates may differ by hour and day, so equal rates are not assumed. The odds of an event in a period are
assumed to be at least a fraction ω of their mean in all other rows, by action (and segment). The probability that none
of m events is among the L rows of the period is at most

    C(N, m) / Σⱼ C(L, j) ωʲ C(N, m − j)

with N other rows (Fisher's noncentral hypergeometric distribution). It is largest if the odds of the others are equal,
since e_m/e_{m−1} of elementary symmetric polynomials is Schur-concave, so it holds for all other odds too.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.doctor.binary_outcomes import find_events, get_event_threshold
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import Flags, log_factorial

DAY, WEEK = 86_400.0, 7
MIN_HOURLY_ODDS = 0.2  # of the odds elsewhere, which any hour or weekday has at least
MIN_PERIOD_ODDS = 0.5  # the same for a part of the log
PARTS = 100  # of the log, at whose ends a period begins and ends
THURSDAY = 3  # the weekday of 1 January 1970, counted from Monday
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Period(NamedTuple):
    """A period without an event."""

    rows: Flags  # (n,)
    name: str
    min_odds: float  # relative to the other rows
    tests: int  # how many periods could have been chosen
    share: float  # of alpha


class GapSignal(NamedTuple):
    """One signal, or all limits together: which rows are known, which have an event, cells of one rate, threshold."""

    names: tuple[str, ...]
    rows: Flags
    marked: Flags
    cells: Ints
    threshold: float  # an event is an outcome above it


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find hours, weekdays and parts of the log without a single event, including its end."""
    if profile.log.at is None or np.isnan(profile.log.at).all():
        return Finding.of(FindingCode.TIMES_NOT_LOGGED)
    findings, signals = [], collect_signals(profile)
    for signal in signals:
        rows, marked, cells = signal.rows, signal.marked, signal.cells
        for period in find_empty_periods(profile.log.at, rows & np.isfinite(profile.log.at), marked):
            inside = period.rows & rows
            log_level = math.log(period.share * alpha / (len(signals) * period.tests))
            with_min_odds, with_equal_odds = (
                log_probability(inside, rows, marked, cells, odds) for odds in (period.min_odds, 1.0)
            )
            if with_equal_odds <= log_level:
                certain = with_min_odds <= log_level
                findings.append(
                    Finding.of(
                        FindingCode.OUTCOMES_LOST if certain else FindingCode.OUTCOMES_MAY_BE_LOST,
                        signals=list(signal.names),
                        threshold=signal.threshold,
                        period=period.name,
                        rows=int(inside.sum()),
                        expected=count_expected_events(inside, rows, marked, cells),
                    )
                )
    return select_most_severe(findings, Finding.of(FindingCode.NO_GAPS))


def collect_signals(profile: LogProfile) -> list[GapSignal]:
    """Return every signal, and all limits together if there are several."""
    signals = [
        GapSignal(
            (name,),
            profile.observed(signal),
            find_events(profile, signal),
            profile.cells(signal),
            get_event_threshold(profile, signal),
        )
        for signal, name in enumerate(profile.names)
    ]
    costs = signals[1:]
    if len(costs) > 1:
        rows = np.logical_and.reduce([cost.rows for cost in costs])
        marked = rows & np.logical_or.reduce([cost.marked for cost in costs])
        names = tuple(name for cost in costs for name in cost.names)
        actions = np.maximum(profile.log.actions, 0)
        signals.append(GapSignal(names, rows, marked, actions, max(cost.threshold for cost in costs)))
    return signals


def find_empty_periods(at: Floats, rows: Flags, marked: Flags) -> Iterator[Period]:
    """Yield the periods without an event: the end of the log, parts of it, hours of the day, weekdays."""
    if not (rows & marked).any():
        return
    last = float(at[rows & marked].max())
    end, begin = float(at[rows].max()), float(at[rows].min())
    yield Period(at > last, f"in the last {format_duration(end - last)} of the log", MIN_PERIOD_ODDS, 1, 0.4)
    edges = np.quantile(at[rows], np.linspace(0.0, 1.0, PARTS + 1))
    part = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, PARTS - 1)
    for first, count in find_empty_runs(part[rows & marked], PARTS, circular=False):
        ends = edges[first] - begin, edges[first + count] - begin
        name = f"between {format_duration(ends[0])} and {format_duration(ends[1])} after the log's first row"
        yield Period((part >= first) & (part < first + count), name, MIN_PERIOD_ODDS, PARTS * (PARTS + 1) // 2, 0.2)
    with np.errstate(invalid="ignore"):
        hour = np.nan_to_num(at % DAY // 3600.0).astype(np.int64) % 24
        day = np.nan_to_num((at // DAY + THURSDAY) % WEEK).astype(np.int64)
    for first, count in find_empty_runs(hour[rows & marked], 24):
        name = f"from {first:02d}:00 to {(first + count) % 24:02d}:00 UTC"
        yield Period((hour - first) % 24 < count, name, MIN_HOURLY_ODDS, 24 * 23, 0.2)
    for first, count in find_empty_runs(day[rows & marked], WEEK):
        until = f" to {WEEKDAYS[(first + count - 1) % WEEK]}" if count > 1 else ""
        yield Period((day - first) % WEEK < count, f"on {WEEKDAYS[first]}{until} (UTC)", MIN_HOURLY_ODDS, WEEK * 6, 0.2)


def find_empty_runs(bins: Ints, count: int, *, circular: bool = True) -> list[tuple[int, int]]:
    """Return the runs of empty bins, as first bin and length.

    >>> find_empty_runs(np.array([3, 4, 7]), 10), find_empty_runs(np.array([3, 4, 7]), 10, circular=False)
    ([(5, 2), (8, 5)], [(0, 3), (5, 2), (8, 2)])
    """
    full = np.unique(bins)
    if circular:
        lengths = (np.roll(full, -1) - full - 1) % count
        return [((int(bin_) + 1) % count, int(length)) for bin_, length in zip(full, lengths, strict=True) if length]
    ends = np.concatenate([[-1], full, [count]])
    return [(low + 1, high - low - 1) for low, high in pairwise(ends.tolist()) if high - low > 1]


def log_probability(inside: Flags, rows: Flags, marked: Flags, cells: Ints, min_odds: float) -> float:
    """Return a bound on the log probability that no event is inside, with odds relative to the other rows.

    >>> rows, cells = np.ones(10, dtype=bool), np.zeros(10, dtype=np.int64)
    >>> round(math.exp(log_probability(np.arange(10) > 6, rows, np.arange(10) < 2, cells, 1.0)), 9)  # 7/10 6/9
    0.466666667
    """
    size = int(cells[rows].max(initial=-1)) + 1
    within = np.bincount(cells[inside], minlength=size)
    outside = np.bincount(cells[rows & ~inside], minlength=size)
    hits = np.bincount(cells[rows & marked], minlength=size)
    total = 0.0
    for length, others, events in zip(within.tolist(), outside.tolist(), hits.tolist(), strict=True):
        if length and events:
            j = np.arange(min(length, events) + 1)
            ways = log_choose(length, j) + j * math.log(min_odds) + log_choose(others, events - j)
            total += float(log_choose(others, np.array(events)) - np.logaddexp.reduce(ways))
    return total


def log_choose(count: int, chosen: Ints) -> Floats:
    """Return log C(count, chosen)."""
    return np.asarray(log_factorial(float(count)) - log_factorial(chosen) - log_factorial(count - chosen))


def count_expected_events(inside: Flags, rows: Flags, marked: Flags, cells: Ints) -> float:
    """Return how many events would be inside at the rates of the other rows."""
    size = int(cells[rows].max(initial=-1)) + 1
    others = np.bincount(cells[rows & ~inside], minlength=size)
    hits = np.bincount(cells[rows & marked], minlength=size)
    return float(np.bincount(cells[inside], minlength=size) @ (hits / np.maximum(others, 1)))


def format_duration(seconds: float) -> str:
    """Return a duration in words.

    >>> format_duration(7200.0), format_duration(200_000.0)
    ('2 hours', '2.31 days')
    """
    return f"{seconds / 3600.0:.2g} hours" if seconds < DAY else f"{seconds / DAY:.3g} days"
