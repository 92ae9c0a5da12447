"""Check `units`: declared and logged values have the same units, such as fractions and percentages."""

from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import TIME_SCALES, FindingCode
from stagewise.launch.doctor.log_profile import LogProfile, get_threshold

MIN_PERCENT_RANGE = 50.0  # a range at least so long is not one of fractions
MIN_ROWS = 100  # rows that show which values occur
MIN_USED_SHARE = 0.05  # share of its declared range that a column should use
SWAPPED_SHARE = 0.25  # share of the other's range that it would use if swapped
END_SHARE = 0.1  # share of values at one end of the range
MAX_SECONDS = 1e11  # since 1970: the year 5138


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find binary outcomes declared up to 100, numbers that hardly use their range, and times in other units."""
    log, findings = profile.log, []
    for index, name in enumerate(profile.names):
        low, high = profile.ends(index)
        values = profile.values[:, index][profile.observed(index)]
        if values.size >= MIN_ROWS and high - low >= MIN_PERCENT_RANGE and is_zero_or_one(values):
            limit = log.problem.limits.get(name)
            threshold = None if limit is None else get_threshold(limit)[0]
            findings.append(Finding.of(FindingCode.BINARY_DECLARED_AS_PERCENT, name=name, high=high, limit=threshold))
    for index, (name, (low, high)) in enumerate(log.problem.ranges):
        values = log.numbers[:, index]
        values = values[(values >= low) & (values <= high)]
        if values.size >= MIN_ROWS:
            findings += check_used_range(values, name, low, high, find_swapped_column(profile, index))
    findings += check_times(log.at) if log.at is not None else []
    return select_most_severe(findings, Finding.of(FindingCode.UNITS_AGREE))


def check_times(at: Floats) -> list[Finding]:
    """Return the finding on times that are not seconds since 1970."""
    late = at[np.abs(at) > MAX_SECONDS]  # false for NaN
    if not late.size:
        return []
    factor = next((factor for factor in TIME_SCALES if np.abs(late).max() / factor <= MAX_SECONDS), None)
    return [
        Finding.of(FindingCode.TIMES_NOT_SECONDS, count=late.size, rows=at.size, example=float(late[0]), factor=factor)
    ]


def find_swapped_column(profile: LogProfile, index: int) -> str | None:
    """Return the number that one which hardly uses its range may be swapped with; None: there is none.

    Its values would fill the other's range, and the other's values, many of them at an end, are in its own.
    """
    span = float(profile.observed_ranges[index, 1] - profile.observed_ranges[index, 0])
    for other in profile.find_swappable(index):
        name, (low, high) = profile.log.problem.ranges[other]
        values = profile.log.numbers[:, other]
        if (
            span >= SWAPPED_SHARE * (high - low)
            and not is_zero_or_one(values)
            and max((values == low).mean(), (values == high).mean()) >= END_SHARE
        ):
            return name
    return None


def is_zero_or_one(values: Floats) -> bool:
    """Say whether values are 0 and 1, and both occur."""
    return bool(np.isin(values, (0.0, 1.0)).all() and values.min() < values.max())


def check_used_range(values: Floats, name: str, low: float, high: float, other: str | None) -> list[Finding]:
    """Return the finding on a number that hardly uses its range."""
    least, most = float(values.min()), float(values.max())
    used = (most - least) / (high - low)
    if used >= MIN_USED_SHARE or most == least:
        return []
    details: dict[str, Any] = {"name": name, "least": least, "most": most, "low": low, "high": high, "used": used}
    is_fraction = low >= 0.0 and high >= MIN_PERCENT_RANGE and least >= 0.0 and most <= 1.0
    if is_fraction and not np.isin(values, (0.0, 1.0)).all():
        return [Finding.of(FindingCode.FRACTIONS_DECLARED_AS_PERCENT, **details)]
    if other is not None:
        return [Finding.of(FindingCode.COLUMNS_MAY_BE_SWAPPED, **details, other=other)]
    return [Finding.of(FindingCode.RANGE_HARDLY_USED, **details)]
