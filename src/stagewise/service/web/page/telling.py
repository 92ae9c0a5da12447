"""Numbers and times as people read them."""

import math
from datetime import UTC, datetime
from typing import Any

NOTHING = "–"
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def count(value: Any) -> str:
    """Return a whole number.

    >>> count(1234567), count(None)
    ('1,234,567', '–')
    """
    return NOTHING if value is None else f"{int(value):,}"


def percent(value: Any) -> str:
    """Return a share.

    >>> percent(0.0213), percent(0.3), percent(0.00042), percent(0), percent(1.0), percent(None)
    ('2.13 %', '30 %', '0.042 %', '0 %', '100 %', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{trimmed(100.0 * value)} %"


def trimmed(value: float) -> str:
    """Return a number with three digits, and no zeros that say nothing."""
    if value == 0.0 or abs(value) < 5e-7:
        return "0"
    places = min(max(2 - math.floor(math.log10(abs(value))), 0), 6)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Return a value of a signal: a share where it lies in [0, 1], else a plain number.

    >>> amount(0.02), amount(4.25, 1.0, 5.0), amount(None)
    ('2 %', '4.25', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    return percent(value) if (least, most) == (0.0, 1.0) else trimmed(float(value))


def gained(value: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Return a difference, with its sign.

    >>> gained(0.021), gained(-3.0, 0.0, 10.0)
    ('+2.1 points', '−3')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    if (least, most) == (0.0, 1.0):
        return f"{sign}{trimmed(100.0 * abs(value))} points"
    return f"{sign}{trimmed(abs(float(value)))}"


def gained_ends(low: Any, high: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Return from where to where a difference lies.

    >>> gained_ends(-0.01, 0.021)
    '−1 to +2.1 points'
    """
    first = gained(low, least, most).removesuffix(" points")
    return f"{first} to {gained(high, least, most)}"


def lasting(seconds: Any) -> str:
    """Return a length of time.

    >>> lasting(0.3), lasting(42.0), lasting(90.0), lasting(7200.0), lasting(200000.0)
    ('0.3 s', '42 s', '1.5 min', '2 h', '2.3 d')
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    for size, unit in UNITS:
        if seconds >= size:
            short = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{short if seconds < 10 * size else round(seconds / size)} {unit}"
    return f"{seconds:.1f} s"


def moment(at: Any) -> str:
    """Return a moment for machines; the page shows it in the reader's own time.

    >>> moment(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at: Any) -> str:
    """Return a moment for people without a script."""
    return datetime.fromtimestamp(float(at), UTC).strftime("%d %b %H:%M:%S UTC")
