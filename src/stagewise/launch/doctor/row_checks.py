"""Checks of the rows of a log: actions, ranges, units, duplicates, propensities, missing values, lost outcomes.

A check yields what it finds, and at last that nothing is wrong; the most severe finding is reported.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.decision_log import TIME_COLUMNS, Log, holds_times
from stagewise.launch.doctor.findings import TIME_SCALES, Finding, FindingCode, FindingVerdict, MissingPattern
from stagewise.launch.doctor.log_profile import Cost, LogProfile, Signal
from stagewise.launch.statistics import (
    compute_excess_p_values,
    freedman_bound,
    kl_divergence,
    log_empty_probability,
    measure_group_shifts,
    measure_shift,
)
from stagewise.problem.columns import Hashes, convert_to_bits, extend_hashes

MIN_PERCENT_RANGE = 50.0  # a range at least so long is not one of fractions
MIN_ROWS = 100  # rows that show which values occur
MIN_USED_SHARE = 0.05  # share of its declared range that a column should use
SWAPPED_SHARE = 0.25  # share of the other's range that it would use if swapped
END_SHARE = 0.1  # share of values at one end of the range
MAX_SECONDS = 1e11  # since 1970: the year 5138
# Names of columns that identify a row; a session or a user has several rows.
ID_PATTERN = re.compile(r"(decision|request|event|row|message|impression|log)?_?(id|uuid|key)", re.IGNORECASE)
MIN_DISAGREEMENT = 0.2  # share of an action's disagreement that remains among similar users
REPEAT_SECONDS = 60.0  # a retry follows within this time
MAX_GROUP_SIZE = 4  # rows that agree in all but the outcomes; larger groups mean that the columns identify no user
MIN_LEVEL_ROWS = 100  # of a level of a category
MAX_CLIPPED_SHARE = 0.05
SUM_TOLERANCE = 1e-3  # logged probabilities may be rounded
DAY, WEEK = 86_400.0, 7
MIN_HOURLY_ODDS = 0.2  # of the odds elsewhere, which any hour or weekday has at least
MIN_PERIOD_ODDS = 0.5  # the same for a part of the log
PARTS = 100  # of the log, at whose ends a period begins and ends
THURSDAY = 3  # the weekday of 1 January 1970, counted from Monday
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def check_actions(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find rows whose action is missing or not in the problem."""
    log, actions = profile.log, list(profile.log.problem.action_names)
    count = int((~profile.known).sum())
    counts = Counter(text for text in profile.action_texts[~profile.known].tolist() if text is not None)
    if counts:
        name, name_count = counts.most_common(1)[0]
        details = {"count": count, "rows": log.rows, "name": name, "name_count": name_count, "actions": actions}
        yield Finding.of(FindingCode.ACTION_UNKNOWN, **details)
    elif count:
        yield Finding.of(FindingCode.ACTION_MISSING, count=count, rows=log.rows)
    yield Finding.of(FindingCode.ACTIONS_KNOWN, rows=log.rows, actions=actions)


def check_ranges(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find numbers about users and outcomes outside their declared ranges; an agent would reject each."""
    ranges = profile.log.problem.ranges
    for index, (name, ends) in enumerate(ranges):
        swapped_with = next((ranges[other][0] for other in profile.find_swappable(index)), None)
        yield from check_range(profile.log.numbers[:, index], name, ends, swapped_with, is_outcome=False)
    for signal in profile.signals:
        yield from check_range(profile.log.values[:, signal.index], signal.name, signal.ends, None, is_outcome=True)
    yield from check_levels(profile.log)
    yield from find_clipped(profile.log)
    yield Finding.of(FindingCode.RANGES_KEPT)


def check_levels(log: Log) -> Iterator[Finding]:
    """Find levels of categories that are not declared, and declared ones with few rows."""
    for name, category in log.problem.categories.items():
        texts = log.segments[name].tolist()
        counts, unknown = Counter(texts), Counter(log.segments[name][log.find_unknown_levels(name)].tolist())
        if unknown:
            level, count = unknown.most_common(1)[0]
            details = {"count": unknown.total(), "rows": log.rows, "level": level, "level_count": count}
            yield Finding.of(FindingCode.LEVEL_UNKNOWN, name=name, levels=list(category.labels), **details)
        rare = min(category.levels, key=lambda one: counts[one])
        if counts[rare] < MIN_LEVEL_ROWS <= log.rows:
            details = {"level": rare, "count": counts[rare], "rows": log.rows}
            yield Finding.of(FindingCode.LEVEL_RARE, name=name, **details)


def find_clipped(log: Log) -> Iterator[Finding]:
    """Find numbers with many values at the ends at which values are clipped."""
    for index, (name, column) in enumerate(log.problem.numbers.items()):
        low, high = column.ends
        count = int(np.isin(log.numbers[:, index], (low, high)).sum())
        if column.clip and count > MAX_CLIPPED_SHARE * log.rows:
            details = {"count": count, "rows": log.rows, "low": low, "high": high}
            yield Finding.of(FindingCode.NUMBER_CLIPPED, name=name, **details)


def check_range(
    values: Floats, name: str, ends: tuple[float, float], swapped_with: str | None, is_outcome: bool
) -> Iterator[Finding]:
    low, high = ends
    outside = ~np.isnan(values) & ~((values >= low) & (values <= high))
    if outside.any():
        extremes = values[outside]
        example = float(extremes[np.argmax(np.abs(extremes - 0.5 * (low + high)))])
        percent = high == 1.0 and low == 0.0 and 1.0 < example <= 100.0
        details = {"name": name, "count": int(outside.sum()), "rows": values.size, "low": low, "high": high}
        details |= {"example": example, "percent": percent, "swapped_with": swapped_with, "is_outcome": is_outcome}
        yield Finding.of(FindingCode.OUT_OF_RANGE, **details)


def check_units(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find binary outcomes declared up to 100, numbers that hardly use their range, and times in other units."""
    log = profile.log
    for signal in profile.signals:
        (low, high), values = signal.ends, signal.values[signal.observed]
        if values.size >= MIN_ROWS and high - low >= MIN_PERCENT_RANGE and is_zero_or_one(values):
            limit = signal.threshold if isinstance(signal, Cost) else None
            yield Finding.of(FindingCode.BINARY_DECLARED_AS_PERCENT, name=signal.name, high=high, limit=limit)
    for index in range(len(log.problem.ranges)):
        yield from check_used_range(profile, index)
    late = np.empty(0) if log.at is None else log.at[np.abs(log.at) > MAX_SECONDS]  # false for NaN
    if late.size:
        factor = next((factor for factor in TIME_SCALES if np.abs(late).max() / factor <= MAX_SECONDS), None)
        details = {"count": late.size, "rows": log.rows, "example": float(late[0]), "factor": factor}
        yield Finding.of(FindingCode.TIMES_NOT_SECONDS, **details)
    yield Finding.of(FindingCode.UNITS_AGREE)


def check_used_range(profile: LogProfile, index: int) -> Iterator[Finding]:
    """Find a number about users that hardly uses its range."""
    name, (low, high) = profile.log.problem.ranges[index]
    values = profile.log.numbers[:, index]
    values = values[(values >= low) & (values <= high)]
    if values.size < MIN_ROWS:
        return
    least, most = float(values.min()), float(values.max())
    used = (most - least) / (high - low)
    if used >= MIN_USED_SHARE or most == least:
        return
    details: dict[str, Any] = {"name": name, "least": least, "most": most, "low": low, "high": high, "used": used}
    is_fraction = low >= 0.0 and high >= MIN_PERCENT_RANGE and least >= 0.0 and most <= 1.0
    other = find_swapped_column(profile, index)
    if is_fraction and not np.isin(values, (0.0, 1.0)).all():
        yield Finding.of(FindingCode.FRACTIONS_DECLARED_AS_PERCENT, **details)
    elif other is not None:
        yield Finding.of(FindingCode.COLUMNS_MAY_BE_SWAPPED, **details, other=other)
    else:
        yield Finding.of(FindingCode.RANGE_HARDLY_USED, **details)


def find_swapped_column(profile: LogProfile, index: int) -> str | None:
    """Return the number that one which hardly uses its range may be swapped with; None: there is none.

    Its values would fill the other's range, and the other's values, many of them at an end, are in its own.
    """
    span = float(profile.observed_ranges[index, 1] - profile.observed_ranges[index, 0])
    for other in profile.find_swappable(index):
        name, (low, high) = profile.log.problem.ranges[other]
        values = profile.log.numbers[:, other]
        is_cut_off = max((values == low).mean(), (values == high).mean()) >= END_SHARE
        if span >= SWAPPED_SHARE * (high - low) and not is_zero_or_one(values) and is_cut_off:
            return name
    return None


def is_zero_or_one(values: Floats) -> bool:
    """Say whether values are 0 and 1, and both occur."""
    return bool(np.isin(values, (0.0, 1.0)).all() and values.min() < values.max())


# Duplicates: an outcome that counts twice makes bounds too narrow.


def check_duplicates(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find ids that occur twice, and rows that agree in everything more often than rows of similar users would.

    Two different rows that agree in all but the outcomes agree in the outcomes too with a probability q < 1. If D of J
    such pairs agree, exp(−J kl(D/J, q)) bounds the p-value, with q the mean over pairs. Pairs are formed without
    looking at the outcomes: neighbours, in the order of the log, in small groups that agree in all else. The second
    test is on rows that follow one another within seconds and agree in all but the times, such as retries.
    """
    log, id_column = profile.log, None
    for name, array in log.arrays.items():
        if is_id(name):
            entries = [entry for entry in array.tolist() if entry is not None and entry == entry]
            duplicates = len(entries) - len(set(entries))
            if duplicates:
                yield Finding.of(FindingCode.DUPLICATE_IDS, name=name, count=duplicates, rows=log.rows)
                return
            id_column = name if entries else id_column
    hashes = RowHashes.of(profile)
    copies = log.rows - np.unique(hashes.all_columns).size
    if copies:
        one, other = pair_rows(hashes.but_outcomes)
        certain = is_significant(profile, one, hashes.all_columns[one] == hashes.all_columns[other], 0.5 * alpha)
        code = FindingCode.COPIED_ROWS if certain else FindingCode.POSSIBLE_COPIES
        yield Finding.of(code, count=copies, rows=log.rows)
    one, other = find_repeats(hashes.user, log.at)
    if one.size:
        same = hashes.outcomes[one] == hashes.outcomes[other]
        certain = is_significant(profile, one, same, 0.5 * alpha)
        code = FindingCode.REPEATED_ROWS if certain else FindingCode.POSSIBLE_REPEATS
        details = {"count": int(one.size), "rows": log.rows, "same": int(same.sum()), "seconds": REPEAT_SECONDS}
        yield Finding.of(code, **details)
    yield Finding.of(FindingCode.NO_DUPLICATES, id_column=id_column)


def is_significant(profile: LogProfile, one: Ints, same: Flags, alpha: float) -> bool:
    """Say whether pairs of rows agree in the outcomes more often than rows of similar users would."""
    if not one.size:
        return False
    expected = 1.0 - MIN_DISAGREEMENT * float(compute_disagreement(profile)[one].mean())
    observed = float(same.mean())
    return observed > expected and math.log(1.0 / alpha) <= one.size * kl_divergence(observed, expected)


def find_repeats(user: Hashes, at: Floats | None) -> tuple[Ints, Ints]:
    """Return pairs of rows that agree in all but times and outcomes and follow one another within seconds.

    Pairs are from small groups; no row is in two pairs, and rows of the same time are no pair.
    """
    if at is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order = np.lexsort((at, user))
    _, groups, sizes = np.unique(user, return_inverse=True, return_counts=True)
    few = sizes[groups.reshape(-1)[order]] <= MAX_GROUP_SIZE
    with np.errstate(invalid="ignore"):
        gap = np.diff(at[order])
        near = (user[order][1:] == user[order][:-1]) & (gap > 0.0) & (gap <= REPEAT_SECONDS) & few[1:]
    first = np.flatnonzero(near)
    if first.size:  # of consecutive pairs every second one, since a pair takes two rows
        start = np.maximum.accumulate(np.where(np.concatenate([[True], np.diff(first) > 1]), first, 0))
        first = first[(first - start) % 2 == 0]
    return np.asarray(order[first]), np.asarray(order[first + 1])


def pair_rows(hashes: Hashes) -> tuple[Ints, Ints]:
    """Return pairs of rows with equal hashes, from small groups; no row is in two pairs."""
    _, groups, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    within = np.arange(hashes.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    first = np.flatnonzero((size <= MAX_GROUP_SIZE) & (within % 2 == 0) & (within + 1 < size))
    return np.asarray(order[first]), np.asarray(order[first + 1])


def compute_disagreement(profile: LogProfile) -> Floats:
    """Return for every row (n,) the probability that two rows of its action differ in some outcome."""
    values = np.where(np.isnan(profile.log.values), np.inf, profile.log.values)  # missing values agree
    codes = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    disagreement = np.zeros(profile.log.rows)
    for action in np.unique(profile.log.actions).tolist():
        rows = profile.log.actions == action
        shares = np.bincount(codes[rows]) / rows.sum()
        disagreement[rows] = max(1.0 - float(shares @ shares), 0.0)
    return disagreement


class RowHashes(NamedTuple):
    """Hashes of rows (n,) without ids: of all columns, all but outcomes, all but outcomes and times, and outcomes."""

    all_columns: Hashes
    but_outcomes: Hashes
    user: Hashes
    outcomes: Hashes

    @classmethod
    def of(cls, profile: LogProfile) -> "RowHashes":
        names = list(profile.log.problem.signals)
        signals = {profile.columns.get(name, name) for name in names} | {f"signal.{name}" for name in names}
        times = {*TIME_COLUMNS, profile.columns.get("at", "at")}
        all_columns, but_outcomes, user, outcomes = np.zeros((4, profile.log.rows), dtype=np.uint64)
        for name, array in profile.log.arrays.items():
            if is_id(name) or is_row_number(array):
                continue
            bits = hash_column(array)
            all_columns = extend_hashes(all_columns, bits)
            if name in signals:
                outcomes = extend_hashes(outcomes, bits)
                continue
            but_outcomes = extend_hashes(but_outcomes, bits)
            user = user if name in times or holds_times(array) else extend_hashes(user, bits)
        return cls(all_columns, but_outcomes, user, outcomes)


def is_id(name: Any) -> bool:
    return isinstance(name, str) and ID_PATTERN.fullmatch(name) is not None


def is_row_number(array: npt.NDArray[Any]) -> bool:
    """Say whether a column numbers the rows, in any order."""
    if array.dtype.kind not in "iu" or array.size < 2 or int(array.max()) - int(array.min()) != array.size - 1:
        return False
    return bool(np.unique(array).size == array.size)


def hash_column(array: npt.NDArray[Any]) -> Hashes:
    """Return 64 bits for every row of a column, the same for equal values."""
    if array.dtype.kind in "bfiu":
        return convert_to_bits(array)
    if array.dtype.kind in "mM":
        return np.ascontiguousarray(array).view(np.uint64)
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(str(entry), len(codes)) for entry in array.tolist()], dtype=np.uint64)


def check_propensities(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find invalid probabilities, and actions that were taken more or less often than the probabilities allow.

    With the propensity of the action taken alone, only a too frequent action is found: in other rows it may not have
    been available.
    """
    log, actions = profile.log, profile.log.problem.action_names
    if log.probabilities is None and log.propensities is None:
        yield Finding.of(FindingCode.PROPENSITIES_NOT_LOGGED)
        return
    invalid = find_invalid_probabilities(profile)
    if invalid is not None:
        yield invalid
        return
    probabilities = profile.action_probabilities
    taken = (log.actions[profile.known, None] == np.arange(len(actions))).astype(float)
    expected = weights = None
    if probabilities is not None:
        probabilities = probabilities[profile.known]
        variances = (probabilities * (1.0 - probabilities)).sum(axis=0)
        p_values = freedman_bound((taken - probabilities).sum(axis=0), variances, 1.0, len(taken))
        expected = probabilities.sum(axis=0)
    else:
        assert log.propensities is not None
        weights = taken / log.propensities[profile.known, None]
        p_values = compute_excess_p_values(weights)
    worst = int(np.argmin(p_values))
    if p_values[worst] * len(actions) <= alpha:
        details = {"action": actions[worst], "count": int(taken[:, worst].sum()), "rows": len(taken)}
        details["expected"] = None if expected is None else float(expected[worst])
        details["weight"] = None if weights is None else float(weights[:, worst].sum())
        yield Finding.of(FindingCode.ACTION_COUNT_IMPLAUSIBLE, **details)
    yield Finding.of(FindingCode.PROPENSITIES_AGREE)


def find_invalid_probabilities(profile: LogProfile) -> Finding | None:
    """Return the finding on invalid probabilities, or None."""
    log = profile.log
    if log.propensities is not None:
        outside = ~((log.propensities > 0.0) & (log.propensities <= 1.0 + 1e-9))
        if outside.any():
            details = {"count": int(outside.sum()), "rows": log.rows, "example": float(log.propensities[outside][0])}
            return Finding.of(FindingCode.PROPENSITY_OUT_OF_RANGE, **details)
    if log.probabilities is not None:
        sums = log.probabilities.sum(axis=1)
        invalid = ~(np.abs(sums - 1.0) <= SUM_TOLERANCE) | ~(log.probabilities >= 0.0).all(axis=1)
        if invalid.any():
            return Finding.of(FindingCode.PROBABILITIES_DO_NOT_SUM, count=int(invalid.sum()), rows=log.rows)
    if log.probabilities is not None and log.propensities is not None:
        own = log.probabilities[np.arange(log.rows), profile.cell_actions]
        different = profile.known & ~(np.abs(own - log.propensities) <= SUM_TOLERANCE)
        if different.any():
            return Finding.of(FindingCode.PROPENSITY_NOT_OF_ACTION, count=int(different.sum()))
    return None


# Missing outcomes. Whether an unknown outcome is the cause cannot be observed. Its trace can: outcomes differ by
# action, by user and with one another, and so does what is missing because of them.


def check_missing_values(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find missing outcomes and numbers, and what their absence depends on."""
    log = profile.log
    for signal in profile.signals:
        missing = np.isnan(log.values[:, signal.index])
        if missing.any():
            yield check_missing_outcomes(signal, missing, alpha / len(profile.signals))
    for name, column in zip(log.problem.numbers, log.numbers.T, strict=True):
        count = int(np.isnan(column).sum())
        if count:
            yield Finding.of(FindingCode.NUMBER_MISSING, name=name, count=count, rows=log.rows)
    yield Finding.of(FindingCode.NOTHING_MISSING)


def check_missing_outcomes(signal: Signal, missing: Flags, alpha: float) -> Finding:
    profile, log, low = signal.profile, signal.profile.log, signal.ends[0]
    window, is_open = log.problem.signals[signal.name].outcome_window, profile.open_windows[:, signal.index]
    logged = log.values[:, signal.index]
    values, has_default = np.unique(logged[~missing]), window is not None and not window.drops
    details: dict[str, Any] = {"name": signal.name, "count": int(missing.sum()), "rows": log.rows}
    if not values.size:
        verdict = FindingVerdict.NOTE if has_default else FindingVerdict.CONTRADICTS
        return Finding.of(FindingCode.OUTCOME_ALL_MISSING, verdict, **details, has_default=has_default)
    if values.size == 1 and values[0] > low and not has_default:
        return Finding.of(FindingCode.ONLY_EVENTS_REPORTED, **details, value=float(values[0]), low=low)
    if window is not None and is_open.all():
        return Finding.of(FindingCode.ALL_WINDOWS_OPEN, **details, window=window.duration_text)
    if window is not None and is_open.any():
        details |= {"open_rows": int(is_open.sum()), "window": window.duration_text}
    missing = missing & ~is_open
    if window is not None and has_default and not (logged[~is_open] == window.missing).any():
        details |= {"filled": int(missing.sum()), "default": window.missing, "has_times": log.at is not None}
        return Finding.of(FindingCode.MISSING_COUNTS_AS_DEFAULT, **details)
    pattern = find_pattern(signal, missing, ~is_open, alpha)
    if pattern is not None:
        return Finding.of(FindingCode.MISSING_NOT_AT_RANDOM, **details, **pattern)
    return Finding.of(FindingCode.OUTCOME_MISSING if missing.any() else FindingCode.SOME_WINDOWS_OPEN, **details)


def find_pattern(signal: Signal, missing: Flags, closed: Flags, alpha: float) -> dict[str, Any] | None:
    """Return what missing outcomes depend on most certainly, among rows with closed windows; None: perhaps on nothing.

    `pattern` is a `MissingPattern`; `by` the action, number, segment or outcome; `more` the direction.
    """
    if not closed.all():
        profile = LogProfile(signal.profile.log.take(closed), signal.profile.columns)
        signal, missing = profile.get_signal(signal.index), missing[closed]
    profile, problem, actions = signal.profile, signal.profile.log.problem, signal.profile.cell_actions
    tests = len(problem.action_names) + len(profile.ranks) + 2 + len(profile.signals) - 1
    tests += sum(len(groups.names) for groups in profile.segments.values())
    weights, one_stratum = missing.astype(float), np.zeros(actions.size, np.int64)
    candidates: list[tuple[float, dict[str, Any]]] = []

    def add(p_value: float, pattern: MissingPattern, **fields: Any) -> None:
        empty = {"by": None, "more": None, "share": None, "column": None}
        candidates.append((float(p_value), {**empty, "pattern": str(pattern), **fields}))

    by_action = measure_group_shifts(weights, actions, one_stratum, len(problem.action_names))
    worst = int(np.argmin(by_action.p_value))
    share = float(weights[actions == worst].mean()) if (actions == worst).any() else 0.0
    add(by_action.p_value[worst], MissingPattern.ACTION, by=problem.action_names[worst], share=share)
    rates = np.nan_to_num(signal.compute_cell_rates(~missing))  # what an outcome that is the cause leaves
    by_rate = measure_shift(rates, missing, one_stratum)
    add(by_rate.p_value, MissingPattern.RATE, more=by_rate.difference > 0.0)
    for name, ranks in zip(problem.numbers, profile.ranks, strict=True):
        by_number = measure_shift(ranks, missing, actions)
        add(by_number.p_value, MissingPattern.NUMBER, by=name, more=by_number.difference > 0.0)
    for column, groups in profile.segments.items():
        by_segment = measure_group_shifts(weights, groups.codes, actions, len(groups.names))
        worst = int(np.argmin(by_segment.p_value))
        add(by_segment.p_value.min(), MissingPattern.SEGMENT, by=groups.names[worst], column=column)
    by_time = measure_shift(profile.time_ranks, missing, actions)
    add(by_time.p_value, MissingPattern.TIME, more=by_time.difference > 0.0)
    for other in profile.signals:
        if other.index != signal.index:
            rows = other.observed
            by_outcome = measure_shift(other.events[rows].astype(float), missing[rows], actions[rows])
            add(by_outcome.p_value, MissingPattern.OUTCOME, by=other.name, more=by_outcome.difference > 0.0)
    p_value, pattern = min(candidates, key=lambda one: one[0])
    return pattern if p_value * tests <= alpha else None


# Lost outcomes. A join in another time zone loses the outcomes of some hours of every day; an export that ran too
# early has zeros for the last days. Rates may differ by hour and day, so equal rates are not assumed: the odds of an
# event in a period are assumed to be at least a fraction of their mean in all other rows, by action (and segment).


class Period(NamedTuple):
    """A period without an event."""

    rows: Flags  # (n,)
    name: str
    min_odds: float  # relative to the other rows
    tests: int  # how many periods could have been chosen
    share: float  # of alpha


class GapSignal(NamedTuple):
    """One signal, or all limits together: which rows are known, which have an event, cells of one rate, threshold."""

    names: list[str]
    rows: Flags
    marked: Flags
    cells: Ints
    threshold: float  # an event is an outcome above it


def check_outcome_gaps(profile: LogProfile, alpha: float) -> Iterator[Finding]:
    """Find hours, weekdays and parts of the log without a single event, including its end."""
    at = profile.log.at
    if at is None or np.isnan(at).all():
        yield Finding.of(FindingCode.TIMES_NOT_LOGGED)
        return
    signals = collect_gap_signals(profile)
    for signal in signals:
        rows, cells = signal.rows, signal.cells
        size = int(cells[rows].max(initial=-1)) + 1
        events = np.bincount(cells[rows & signal.marked], minlength=size)
        for period in find_empty_periods(at, rows & np.isfinite(at), signal.marked):
            inside = np.bincount(cells[period.rows & rows], minlength=size)
            others = np.bincount(cells[rows & ~(period.rows & rows)], minlength=size)
            log_level = math.log(period.share * alpha / (len(signals) * period.tests))
            if log_empty_probability(inside, others, events, 1.0) > log_level:
                continue
            certain = log_empty_probability(inside, others, events, period.min_odds) <= log_level
            code = FindingCode.OUTCOMES_LOST if certain else FindingCode.OUTCOMES_MAY_BE_LOST
            details = {"signals": signal.names, "threshold": signal.threshold, "period": period.name}
            expected = float(inside @ (events / np.maximum(others, 1)))
            yield Finding.of(code, **details, rows=int(inside.sum()), expected=expected)
    yield Finding.of(FindingCode.NO_GAPS)


def collect_gap_signals(profile: LogProfile) -> list[GapSignal]:
    """Return every signal, and all limits together if there are several."""
    signals = [
        GapSignal([one.name], one.observed, one.events, one.cells, one.event_threshold) for one in profile.signals
    ]
    costs = signals[-len(profile.costs) :]
    if len(costs) > 1:
        rows = np.logical_and.reduce([cost.rows for cost in costs])
        marked = rows & np.logical_or.reduce([cost.marked for cost in costs])
        names, threshold = [name for cost in costs for name in cost.names], max(cost.threshold for cost in costs)
        signals.append(GapSignal(names, rows, marked, profile.cell_actions, threshold))
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
    """Return the runs of empty bins, as first bin and length."""
    full = np.unique(bins)
    if circular:
        lengths = (np.roll(full, -1) - full - 1) % count
        return [((int(bin_) + 1) % count, int(length)) for bin_, length in zip(full, lengths, strict=True) if length]
    ends = np.concatenate([[-1], full, [count]])
    return [(low + 1, high - low - 1) for low, high in pairwise(ends.tolist()) if high - low > 1]


def format_duration(seconds: float) -> str:
    """Return a duration in words, such as "2 hours" or "2.31 days"."""
    return f"{seconds / 3600.0:.2g} hours" if seconds < DAY else f"{seconds / DAY:.3g} days"
