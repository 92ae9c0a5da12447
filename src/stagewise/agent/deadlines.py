"""Deadlines: when the windows of signals close. Time comes from calls, and never runs backwards.

If a clock is set back, closed windows stay closed, and nothing closes until the clock passes its latest time again; a
decision that is made meanwhile is dated then. So a window may close late, but never early and never twice. A clock that
is set forward closes windows early by as much.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stagewise.agent.outcome_values import ABSENT, parse_values
from stagewise.policies.base_policy import BasePolicy
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.window import OutcomeWindow, check_windows


class SignalWindow(NamedTuple):
    """The window of one signal."""

    signal: int
    seconds: float
    value: float  # what a missing one counts as, signed as it is learned; NaN: the row is dropped


class Deadlines:
    """The dates of decisions with open windows, and the number of late outcomes."""

    def __init__(self, windows: Mapping[str, OutcomeWindow], signal_windows: Sequence[SignalWindow]) -> None:
        self.windows, self.signal_windows = dict(windows), tuple(signal_windows)
        self.latest = -math.inf
        self.dates: dict[int, float] = {}  # by round
        self.undated: list[int] = []  # decided while the clock stood before its latest moment
        self.closed = {span.signal: 0 for span in signal_windows}  # the windows of all rounds before it are closed
        self.late = {span.signal: 0 for span in signal_windows}

    def clone(self) -> "Deadlines":
        """Return an independent copy."""
        other = Deadlines(self.windows, self.signal_windows)
        other.latest, other.dates, other.undated = self.latest, dict(self.dates), list(self.undated)
        other.closed, other.late = dict(self.closed), dict(self.late)
        return other

    def date(self, round_: int, now: float) -> None:
        """Store when a decision was made; `close_windows` was called with `now` before."""
        if now < self.latest:
            self.undated.append(round_)
        else:
            self.dates[round_] = now

    def close_windows(self, now: float, end: int) -> Iterator[tuple[int, SignalWindow]]:
        """Advance the time; yield the rounds below `end` whose windows close, the oldest first."""
        if now >= self.latest:
            self.latest = now
            self.dates.update(dict.fromkeys(self.undated, now))
            self.undated.clear()
        first = min(self.closed.values(), default=end)
        for span in self.signal_windows:
            while self.closed[span.signal] < end and self.closes(self.closed[span.signal], span) <= self.latest:
                self.closed[span.signal] += 1
                yield self.closed[span.signal] - 1, span
        for round_ in range(first, min(self.closed.values(), default=first)):
            self.dates.pop(round_, None)

    def closes(self, round_: int, span: SignalWindow) -> float:
        """Return when a window closes; infinite until the decision has a date."""
        return self.dates.get(round_, math.inf) + span.seconds

    def is_late(self, round_: int, signal: int) -> bool:
        """Return whether the window of a round's signal is closed."""
        return round_ < self.closed.get(signal, 0)

    def reject_late(self, late: Sequence[int], round_: int, names: Sequence[str]) -> None:
        """Count late signals, and raise."""
        for signal in late:
            self.late[signal] += 1
        window = self.windows[names[late[0]]]
        counts = "the row was left out" if window.drops else f"what was missing counts as {window.missing:g}"
        raise InvalidOutcome(
            ErrorCode.OUTCOME_TOO_LATE,
            "the {names!r} of round {round} arrived after its window of {length_text} closed; "
            "{counts} since, and it is counted as late, not learned",
            names=names[late[0]],
            round=round_,
            length_text=window.duration_text,
            counts=counts,
        )


def build_signal_windows(policy: BasePolicy, windows: Mapping[str, OutcomeWindow]) -> list[SignalWindow]:
    """Return the windows by signal, with the value of a missing one."""
    names, spans = policy.signal_names, []
    for name, window in windows.items():
        value = math.nan
        if not window.drops:
            try:
                value = parse_values(policy, names, ABSENT, ABSENT, {name: window.missing})[0][names.index(name)]
            except InvalidOutcome as error:
                raise InvalidProblem(
                    ErrorCode.OUTCOME_OUT_OF_RANGE,
                    "the window of {name!r} has an invalid missing value: {error}",
                    name=name,
                    error=error,
                ) from None
        spans.append(SignalWindow(names.index(name), window.seconds, value))
    return spans


def build_deadlines(policy: BasePolicy | None, windows: Any) -> Deadlines | None:
    """Return the deadlines of a policy's signals; None without windows."""
    if windows is None:
        return None
    if policy is None:
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED, "this policy has only start, decide and learn; windows need a policy of stagewise"
        )
    checked = check_windows(windows, policy.signal_names)
    return Deadlines(checked, build_signal_windows(policy, checked)) if checked else None
