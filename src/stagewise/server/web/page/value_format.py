"""Formatting of numbers and times on the page."""

import math
from datetime import UTC, datetime
from typing import Any

MISSING_TEXT = "–"
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def count(value: Any) -> str:
    """Format an integer.

    >>> count(1234567), count(None)
    ('1,234,567', '–')
    """
    return MISSING_TEXT if value is None else f"{int(value):,}"


def percent(value: Any) -> str:
    """Format a share in percent.

    >>> percent(0.0213), percent(0.3), percent(0.00042), percent(0), percent(1.0), percent(None)
    ('2.13 %', '30 %', '0.042 %', '0 %', '100 %', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING_TEXT
    return f"{format_number(100.0 * value)} %"


def format_number(value: float) -> str:
    """Format a number with three significant digits, without trailing zeros."""
    if value == 0.0 or abs(value) < 5e-7:
        return "0"
    places = min(max(2 - math.floor(math.log10(abs(value))), 0), 6)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Format a value of a signal: in percent if its range is [0, 1], else as a number.

    >>> amount(0.02), amount(4.25, 1.0, 5.0), amount(None)
    ('2 %', '4.25', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING_TEXT
    return percent(value) if (least, most) == (0.0, 1.0) else format_number(float(value))


def format_gain(value: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Format a difference, with its sign.

    >>> format_gain(0.021), format_gain(-3.0, 0.0, 10.0)
    ('+2.1 points', '−3')
    """
    if value is None or not math.isfinite(value):
        return MISSING_TEXT
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    if (least, most) == (0.0, 1.0):
        return f"{sign}{format_number(100.0 * abs(value))} points"
    return f"{sign}{format_number(abs(float(value)))}"


def format_gain_interval(low: Any, high: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Format the interval of a difference.

    >>> format_gain_interval(-0.01, 0.021)
    '−1 to +2.1 points'
    """
    first = format_gain(low, least, most).removesuffix(" points")
    return f"{first} to {format_gain(high, least, most)}"


def duration(seconds: Any) -> str:
    """Format a duration.

    >>> duration(0.3), duration(42.0), duration(90.0), duration(7200.0), duration(200000.0)
    ('0.3 s', '42 s', '1.5 min', '2 h', '2.3 d')
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING_TEXT
    for size, unit in UNITS:
        if seconds >= size:
            short = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{short if seconds < 10 * size else round(seconds / size)} {unit}"
    return f"{seconds:.1f} s"


def moment(at: Any) -> str:
    """Format a time for the `datetime` attribute; a script shows it in the local time zone.

    >>> moment(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at: Any) -> str:
    """Format a time for browsers without scripts."""
    return datetime.fromtimestamp(float(at), UTC).strftime("%d %b %H:%M:%S UTC")
