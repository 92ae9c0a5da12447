"""When windows close. Time is told by calls, and never runs backwards here.

A clock may be set back. What was closed stays closed, and nothing closes until the clock is past its latest moment
again; a decision that is made meanwhile is dated when it is. So a window may close late, never early, and never twice.
A clock that is set forward closes windows early by as much: nobody can tell that from time that passes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stagewise.policies.agent.outcomes import ABSENT, values_of
from stagewise.policies.learning import Learning
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.problem.window import Window, windows_of


class Span(NamedTuple):
    """The window of one signal."""

    signal: int
    seconds: float
    value: float  # what a missing one counts as, signed as it is learned; NaN: the row is dropped


class Deadlines:
    """The dates of decisions whose windows are not all closed, and what came too late."""

    def __init__(self, windows: Mapping[str, Window], spans: Sequence[Span]) -> None:
        self.windows, self.spans = dict(windows), tuple(spans)
        self.latest = -math.inf
        self.dates: dict[int, float] = {}  # by round
        self.undated: list[int] = []  # decided while the clock stood before its latest moment
        self.closed = {span.signal: 0 for span in spans}  # the windows of all rounds before it are closed
        self.late = {span.signal: 0 for span in spans}

    def copied(self) -> "Deadlines":
        """Return an independent copy."""
        other = Deadlines(self.windows, self.spans)
        other.latest, other.dates, other.undated = self.latest, dict(self.dates), list(self.undated)
        other.closed, other.late = dict(self.closed), dict(self.late)
        return other

    def date(self, round_: int, now: float) -> None:
        """Note when a decision was made; `now` is what the clock says, and was passed to `closing` before."""
        if now < self.latest:
            self.undated.append(round_)
        else:
            self.dates[round_] = now

    def closing(self, now: float, end: int) -> Iterator[tuple[int, Span]]:
        """Let time pass; yield the rounds below `end` whose windows close, and which, the oldest first."""
        if now >= self.latest:
            self.latest = now
            self.dates.update(dict.fromkeys(self.undated, now))
            self.undated.clear()
        first = min(self.closed.values(), default=end)
        for span in self.spans:
            while self.closed[span.signal] < end and self.closes(self.closed[span.signal], span) <= self.latest:
                self.closed[span.signal] += 1
                yield self.closed[span.signal] - 1, span
        for round_ in range(first, min(self.closed.values(), default=first)):
            self.dates.pop(round_, None)

    def closes(self, round_: int, span: Span) -> float:
        """Return when a window closes; never, as long as the decision has no date."""
        return self.dates.get(round_, math.inf) + span.seconds

    def is_late(self, round_: int, signal: int) -> bool:
        """Say whether the window of a round's signal is closed."""
        return round_ < self.closed.get(signal, 0)

    def refuse(self, late: Sequence[int], round_: int, names: Sequence[str]) -> None:
        """Count what came after its window, and say so."""
        for signal in late:
            self.late[signal] += 1
        window = self.windows[names[late[0]]]
        counts = "the row was left out" if window.drops else f"what was missing counts as {window.missing:g}"
        raise InvalidOutcome(
            f"the {names[late[0]]!r} of round {round_} came after its window of {window.told} had closed; {counts} "
            "since, and learning it now would depend on what it is, so it is only counted as late"
        )


def spans_of(policy: Learning, windows: Mapping[str, Window]) -> list[Span]:
    """Return the windows by signal, with what a missing one counts as where the policy can learn that."""
    names, spans = policy.signal_names, []
    for name, window in windows.items():
        value = math.nan
        if not window.drops:
            try:
                value = values_of(policy, names, ABSENT, ABSENT, {name: window.missing})[0][names.index(name)]
            except InvalidOutcome as error:
                raise InvalidProblem(f"the window of {name!r} has a missing value that is refused: {error}") from None
        spans.append(Span(names.index(name), window.seconds, value))
    return spans


def deadlines_for(policy: Learning | None, windows: Any) -> Deadlines | None:
    """Return the windows of a policy's signals; without any, nothing has a date."""
    if windows is None:
        return None
    if policy is None:
        raise InvalidProblem("this policy has only start, decide and learn; windows are for policies of stagewise")
    told = windows_of(windows, policy.signal_names)
    return Deadlines(told, spans_of(policy, told)) if told else None
