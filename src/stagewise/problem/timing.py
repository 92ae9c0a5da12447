"""What is declared in time: outcome windows, durations, timestamps, and how far a mean may move."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from stagewise.problem.checks import (
    check_bool,
    check_mapping,
    check_number,
    check_outcome,
    check_positive,
    copy_value,
    is_listing,
)
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


JUMPS = "jumps"
DAY = UNITS["d"]
LONGEST = 3.0 * DAY  # step of the grid, so that changes are found soon where means hardly move
STEPS = 48  # of the grid of epochs, in the time in which a mean may move by its limit
EXPECTED = "'0.005/30d' (a slope), ('0.01', '30d') (a budget in any window of that length) or 'jumps'"


class Drift(NamedTuple):
    """A declared modulus: within a time a the mean moves by at most ω(a).

    Attributes:
        amount: By how much the mean moves, in the units of the outcomes; 0: it is constant between jumps.
        seconds: In how long.
        is_budget: Whether the amount may be moved at once, anywhere in a window of that length.
    """

    amount: float
    seconds: float
    is_budget: bool = False

    @property
    def slope(self) -> float:
        """ρ, per second."""
        return self.amount / self.seconds

    @property
    def budget(self) -> float:
        """B, which the mean may move by at once."""
        return self.amount if self.is_budget else 0.0

    def scaled(self, length: float) -> "Drift":
        """Return the drift of outcomes that are divided by the length of their range."""
        return self._replace(amount=self.amount / length)

    def compute_step(self, ceiling: float) -> float:
        """Return the step of the grid of epochs, in seconds; `ceiling` is the limit, above the lowest outcome."""
        return DAY if self.amount == 0.0 else min(max(ceiling, 1e-6) / self.slope / STEPS, LONGEST)

    def compute_least_bound(self, rate: float, per_second: float, lag: float, confidence: float) -> float:
        """Return about the least upper bound that can ever be had of a mean, in the units of the drift.

            p + ρ w + B + (3/2)(2 p ℓ ρ/r)^{1/3}        (docs/theory/drift.md, Feasibility)

        `per_second` is r, the plays per second; `lag` is w, the age at which outcomes are learned; `confidence` is ℓ.
        """
        slowest = float((2.0 * max(rate, 1e-6) * confidence * self.slope / per_second) ** (1.0 / 3.0))
        return rate + self.budget + self.slope * lag + 1.5 * slowest

    def to_settings(self, column: int, ceiling: float, noise: float = 0.0) -> list[float]:
        """Return the numbers that `models.epochs` reads; `column` holds the time; no noise: bounded outcomes."""
        step = self.compute_step(ceiling)
        window = self.seconds / step if self.is_budget else 0.0
        return [float(column), step, self.slope * step, self.budget, window, noise]

    def __str__(self) -> str:
        if self.amount == 0.0:
            return "means jump, and the jumps are found"
        days = f"{self.seconds / DAY:g} day" + "s" * (self.seconds != DAY)
        return f"the mean moves by at most {self.amount:g} " + (f"in any {days}" if self.is_budget else f"per {days}")


def can_drift(model: str | None, has_modulus: bool, has_noise: bool = False) -> bool:
    """Return whether the drift of a model is bounded: of rates any, of others a slope or a budget."""
    return (has_modulus or not has_noise) if model in (None, "rates") else model == "linear" and has_modulus


def normalise_drift(value: Any) -> Any:
    """Return a declared drift as it is kept: lists as tuples."""
    return tuple(value) if is_listing(value) else value


def parse_drift(value: Any, what: str) -> Drift | None:
    """Return a declared drift; None: means are constant.

    >>> parse_drift("0.005/30d", "the limit")
    Drift(amount=0.005, seconds=2592000.0, is_budget=False)
    >>> str(parse_drift(("0.01", "30d"), "the limit"))
    'the mean moves by at most 0.01 in any 30 days'
    """
    if value is None:
        return None
    subject = f"the drift of {what}"
    if isinstance(value, str):
        if value.strip() == JUMPS:
            return Drift(0.0, DAY)
        amount, slash, length = value.partition("/")
        if not slash:
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, subject, value, EXPECTED)
        return build_drift(amount, length, subject, value, is_budget=False)
    if isinstance(value, Sequence) and len(value) == 2:
        return build_drift(value[0], value[1], subject, value, is_budget=True)
    raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, subject, value, EXPECTED)


def parse_stored_drift(value: Any, what: str) -> Drift | None:
    """Return a declared drift, or the three numbers of one, as files hold it."""
    if not (is_listing(value) and len(value) == 3):
        return parse_drift(value, what)
    amount, seconds = (check_number(number, f"the drift of {what}") for number in value[:2])
    is_budget = check_bool(bool(value[2]) if value[2] in (0, 1) else value[2], f"the drift of {what}")
    if not (amount >= 0.0 and seconds > 0.0):
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the drift of {what}", value, "positive")
    return Drift(float(amount), float(seconds), is_budget)


def build_drift(amount: Any, length: Any, subject: str, value: Any, is_budget: bool) -> Drift | None:
    """Return a drift from its two parts; None: an amount of 0."""
    if isinstance(amount, str):
        if re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)(e-?\d+)?\s*", amount) is None:
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, subject, value, EXPECTED)
        amount = float(amount)
    number = check_number(amount, subject)
    if not number >= 0.0:
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, subject, value, "not negative")
    seconds = parse_seconds(length)
    return Drift(float(number), seconds, is_budget) if number > 0.0 else None
