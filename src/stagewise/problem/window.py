"""How long an outcome is waited for, and what counts when it has not come by then; and moments in time."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from stagewise.problem.checks import kept, mapping_of, number, observed, positive
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.problem.words import nearest, shown

DROP = "drop"
LATEST = 1e11  # seconds since 1970
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}  # in seconds


@dataclass(frozen=True)
class Window:
    """After `length` what has not come counts as `missing`, so that every decision is answered at a fixed age.

    The signal is then "what came within the window, else `missing`": a promise about opt-outs within seven days. With
    `missing="drop"` such a row is left out instead, which is valid only where neither this outcome nor later ones
    decide whether it gets lost.

    >>> Window("7d", missing=0.0).seconds
    604800.0
    """

    length: str | float | timedelta
    """How long: "90s", "15m", "12h", "7d", "2w", a timedelta, or a number of seconds."""
    missing: float | Literal["drop"]
    """What a missing outcome counts as from then on; "drop": the row is not learned."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", kept(self.length))
        object.__setattr__(self, "missing", kept(self.missing))
        _ = self.seconds
        if not self.drops:
            object.__setattr__(self, "missing", observed(self.missing, "missing", InvalidProblem))

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return seconds_of(self.length)

    @property
    def in_words(self) -> str:
        """What happens after it."""
        return f"missing after {self.told} " + ("is left out" if self.drops else f"counts as {self.missing:g}")

    @property
    def told(self) -> str:
        """Its length as a sentence says it, with its unit.

        >>> Window(7, 0.0).told, Window(timedelta(days=2), 0.0).told
        ('7s', '2d')
        """
        if isinstance(self.length, str):
            return self.length.strip()
        unit = next((unit for unit in "dhm" if self.seconds % UNITS[unit] == 0.0), "s")
        return f"{self.seconds / UNITS[unit]:g}{unit}"

    @property
    def drops(self) -> bool:
        """Whether a row without an outcome is left out."""
        return isinstance(self.missing, str) and self.missing == DROP


def seconds_of(length: Any) -> float:
    """Return a length of time in seconds.

    >>> seconds_of("1.5h"), seconds_of(timedelta(days=1)), seconds_of(30)
    (5400.0, 86400.0, 30.0)
    """
    if isinstance(length, timedelta):
        return positive(length.total_seconds(), "the length of a window")
    if isinstance(length, str):
        told = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smhdw])\s*", length)
        if told is None:
            raise InvalidProblem(
                f"the length of a window is {shown(length)}; it must be a number and a unit, such as '90s', '15m', "
                "'12h', '7d' or '2w', or a number of seconds"
            )
        return positive(float(told[1]) * UNITS[told[2]], "the length of a window")
    seconds = number(length, "the length of a window")
    if not seconds > 0.0:
        raise InvalidProblem(f"the length of a window is {seconds:g}; it must be a time greater than 0, in seconds")
    return seconds


def windows_of(value: Any, names: Sequence[str]) -> dict[str, Window]:
    """Return windows by the names of signals that there are."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidProblem(f"windows is {shown(value)}; it must be a mapping from signals to sw.Window")
    windows = mapping_of(value, "windows")
    for name, window in windows.items():
        if name not in names:
            raise InvalidProblem(
                f"windows names {shown(name)}; the signals are {', '.join(names)}{nearest(name, names)}"
            )
        if not isinstance(window, Window):
            raise InvalidProblem(
                f"the window of {name!r} is {shown(window)}; it must be a Window, such as sw.Window('7d', missing=0.0)"
            )
    return windows


def moment(value: Any) -> float:
    """Return a moment in seconds since 1970, from a number as `time.time` gives it or a datetime with a time zone.

    >>> from datetime import timezone
    >>> moment(datetime(1970, 1, 2, tzinfo=timezone.utc))
    86400.0
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidOutcome(f"now is {value.isoformat()}; a datetime needs a time zone, or an hour may come twice")
        return value.timestamp()
    told = number(value, "now", InvalidOutcome)
    if abs(told) > LATEST:
        raise InvalidOutcome(
            f"now is {told:g}; it must be seconds, and that is beyond the year 5000: was it milliseconds?"
        )
    return told


def clock_of(value: Any) -> Callable[[], float]:
    """Return what tells the time."""
    if not callable(value):
        raise InvalidProblem(f"clock is {shown(value)}; it must be a function that returns seconds, such as time.time")
    clock: Callable[[], float] = value
    return clock
