"""Outcome windows, durations and timestamps."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from stagewise.problem.checks import check_mapping, check_number, check_outcome, check_positive, copy_value
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem

DROP = "drop"
LATEST = 1e11  # seconds since 1970
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}  # in seconds


@dataclass(frozen=True)
class OutcomeWindow:
    """The time to wait for an outcome; after it, a missing outcome counts as `missing`.

    The signal is then "the outcome within the window, else `missing`", such as opt-outs within seven days. With
    `missing="drop"` the row is not learned, which is valid only if the loss of an outcome does not depend on outcomes.

    Raises:
        InvalidProblem: The duration is not a positive duration, or `missing` is not a number.

    Example:
        >>> OutcomeWindow("7d", missing=0.0).seconds
        604800.0
    """

    duration: str | float | timedelta
    """The duration: "90s", "15m", "12h", "7d", "2w", a timedelta, or a number of seconds."""
    missing: float | Literal["drop"]
    """The value of a missing outcome; "drop": the row is not learned."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "duration", copy_value(self.duration))
        object.__setattr__(self, "missing", copy_value(self.missing))
        _ = self.seconds
        if not self.drops:
            object.__setattr__(self, "missing", check_outcome(self.missing, "missing", InvalidProblem))

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return parse_seconds(self.duration)

    @property
    def description(self) -> str:
        """What happens to missing outcomes."""
        return f"missing after {self.duration_text} " + ("is left out" if self.drops else f"counts as {self.missing:g}")

    @property
    def duration_text(self) -> str:
        """Its length with its unit, as text.

        >>> OutcomeWindow(7, 0.0).duration_text, OutcomeWindow(timedelta(days=2), 0.0).duration_text
        ('7s', '2d')
        """
        if isinstance(self.duration, str):
            return self.duration.strip()
        unit = next((unit for unit in "dhm" if self.seconds % UNITS[unit] == 0.0), "s")
        return f"{self.seconds / UNITS[unit]:g}{unit}"

    @property
    def drops(self) -> bool:
        """Whether a row without an outcome is not learned."""
        return isinstance(self.missing, str) and self.missing == DROP


def parse_seconds(length: Any, what: str = "the length of a window") -> float:
    """Return a length of time in seconds.

    >>> parse_seconds("1.5h"), parse_seconds(timedelta(days=1)), parse_seconds(30)
    (5400.0, 86400.0, 30.0)
    """
    if isinstance(length, timedelta):
        return check_positive(length.total_seconds(), what)
    if isinstance(length, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smhdw])\s*", length)
        if match is None:
            rule = "a number and a unit, such as '90s', '15m', '12h', '7d' or '2w', or a number of seconds"
            raise InvalidProblem.must_be(ErrorCode.INVALID_TIME, what, length, rule)
        return check_positive(float(match[1]) * UNITS[match[2]], what)
    return check_positive(length, what)


def check_windows(value: Any, names: Sequence[str]) -> dict[str, OutcomeWindow]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        rule = "a mapping from signals to sw.OutcomeWindow"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "windows", value, rule)
    windows = check_mapping(value, "windows")
    for name, window in windows.items():
        if name not in names:
            raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SIGNAL, "a name in windows", name, names)
        if not isinstance(window, OutcomeWindow):
            rule = "an OutcomeWindow, such as sw.OutcomeWindow('7d', missing=0.0)"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the window of {name!r}", window, rule)
    return windows


def parse_timestamp(value: Any) -> float:
    """Return seconds since 1970 from such a number or from a datetime with a time zone.

    >>> from datetime import timezone
    >>> parse_timestamp(datetime(1970, 1, 2, tzinfo=timezone.utc))
    86400.0
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidOutcome.must_be(ErrorCode.INVALID_TIME, "now", value, "a datetime with a time zone")
        return value.timestamp()
    seconds = check_number(value, "now", InvalidOutcome)
    if abs(seconds) > LATEST:
        rule = "in seconds, not milliseconds; it is after the year 5000"
        raise InvalidOutcome.must_be(ErrorCode.INVALID_TIME, "now", seconds, rule)
    return seconds


def check_clock(value: Any) -> Callable[[], float]:
    if not callable(value):
        rule = "a function that returns seconds, such as time.time"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "clock", value, rule)
    clock: Callable[[], float] = value
    return clock
