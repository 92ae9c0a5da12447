"""Sentences of findings and notes: templates with data, and notes on how a log was used, each with a code."""

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from string import Formatter
from types import SimpleNamespace
from typing import Any, Self

from stagewise.problem.formatting import format_count, join_names

Phrase = str | Callable[[Any], str]


def format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def choose(first: Any, text: str = "more", otherwise: str = "less") -> str:
    return text if first else otherwise


class MessageFormatter(Formatter):
    """Formats templates: a field is a detail, or else a phrase, which is a template or a function of the details.

    {x:number} is a short number, {x:names} a list of names, and {x:rows} a number of rows.
    """

    def __init__(self, phrases: Mapping[str, Phrase]) -> None:
        self.phrases = phrases

    def get_value(self, key: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Return a detail, or the text of a phrase."""
        if key in kwargs:
            return kwargs[key]
        phrase = self.phrases[key]
        return self.make_text(phrase, kwargs) if isinstance(phrase, str) else phrase(SimpleNamespace(**kwargs))

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "rows":
            return format_count(value, "row")
        if format_spec == "number":
            return format_number(value)
        return join_names(value) if format_spec == "names" else format(value, format_spec)

    def make_text(self, template: str, details: Mapping[str, Any]) -> str:
        return self.vformat(template, (), details)


def build_codes(name: str, codes: Iterable[str], module: str) -> Any:
    """Return the enumeration of the codes of a table: `NAME` is "name"."""
    return StrEnum(name, {code.upper(): code for code in codes}, module=module)


def read_lines(table: str) -> list[str]:
    """Return the lines of a table; indented lines continue the one above."""
    return table.strip().replace("\n    ", " ").split("\n")


TABLE = """
rows_with_open_windows: {name}: {count:,} rows are left out, because their window of {window} is still open
rows_with_unknown_action: {count:rows} with an action that is not in the problem are left out
rows_incomplete: {count:rows} with a missing value are left out
rows_not_shown: {count:rows} are left out, because the action was not carried out (shown is false)
rows_without_context: {count:,} rows without a complete context are left out
outcomes_filled: {name}: {count:,} outcomes were not reported and count as {default:g}{without_times}
outcomes_missing: {name}: {count:,} rows have no outcome and are left out, as if that did not depend on the outcome
outcomes_missing_unevenly: {name}: {share:.1%} of the outcomes are missing after {action!r} and {overall:.1%} overall,
    so leaving these rows out may bias the estimate
propensities_estimated: the probabilities are estimated from the log itself: intervals take them as true and leave out
    their error, and a design that differed between users would invalidate all of this; so no limit is decided
propensities_of_action_only: the log has only the probability of the action taken: intervals hold for any probabilities
    of the others, and dr has the intervals of ips; columns 'probability.ACTION' for all actions make them narrower
times_tied: {count:,} rows have the time of another; their order is random, as if decided at once
order_random: {no_times}, so rows count in a random order
order_irrelevant: {no_times}, but intervals hold for every order of rows
order_unknown: {no_times}, and its probabilities differ between rows, perhaps because of earlier outcomes. So limits are
    decided by ips, whose intervals hold for every order of rows; those of dr hold if the log's policy was fixed. Add
    the times of the decisions, or their numbers in order, in a column 'at'
no_support: {policy}: {lost_parts}; the outcome of that part is unknown, and intervals hold for any
weights_contradict: {where}: weights average {mean:.4g}, certainly {side}, but 1 is expected if rows were drawn with the
    given probabilities: rows are missing from the log, or these are not its probabilities; there is no estimate, and no
    limit is decided
weights_unbalanced: {where}: weights average {mean:.4g}, but 1 is expected if the log can take all actions of the
    candidate: poor overlap, the log rarely contains some of them; there is no estimate, and intervals hold for any
    outcome of that part
actions_without_rows: the log has no row of {actions:names}; their outcomes can be anything that the problem allows, and
    the bands are as wide
actions_with_few_rows: the log has few rows of {few_rows}; bands are wide where these are played
feature_constant_for_action: all rows of {action!r} have the same {names:names}; its outcomes are assumed to be the same
    for other users, which the log cannot show; is that a number about the user?
"""
MESSAGES = dict(line.split(": ", 1) for line in read_lines(TABLE))
NoteCode = build_codes("NoteCode", MESSAGES, __name__)
"""What a note is about, as a code that never changes."""


class Note(str):
    """A note: its sentence, with `code` and `details`."""

    code: str
    details: dict[str, Any]

    @classmethod
    def of(cls, code: str, **details: Any) -> Self:
        note = cls(FORMATTER.make_text(MESSAGES[code], details))
        note.code, note.details = NoteCode(code), details
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_note, (str(self.code), self.details)

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON values."""
        return {"code": str(self.code), "details": self.details, "message": str(self)}


def _build_note(code: str, details: dict[str, Any]) -> Note:
    return Note.of(code, **details)


def describe_lost_parts(d: Any) -> str:
    """Return what the log does not support."""
    names = ", ".join(f"{name!r} ({share:.1%})" for name, share in d.unsupported.items())
    never = f"poor overlap: the log could never have taken {names} where the candidate would"
    clipped = f"weights are clipped, which loses {d.clipped:.2%} of the candidate"
    return "; ".join([never] * bool(d.unsupported) + [clipped] * bool(d.clipped))


PHRASES: dict[str, Phrase] = {
    "few_rows": lambda d: ", ".join(f"{name!r} ({count})" for name, count in d.counts.items()),
    "lost_parts": describe_lost_parts,
    "no_times": lambda d: (
        "the log has no times" if d.count is None else f"the log has no time in {format_count(d.count, 'row')}"
    ),
    "side": lambda d: f"above {d.low:.4g}" if d.low > 1.0 else f"below {d.high:.4g}",
    "where": lambda d: f"{d.policy} ({'; '.join(d.signals)})",
    "without_times": lambda d: choose(d.has_times, "", ", as if every window had closed, because the log has no times"),
}
FORMATTER = MessageFormatter(PHRASES)


def round_up(value: float, digits: int = 2) -> float:
    """Return a positive number rounded up to some digits; 0 for any other.

    >>> round_up(0.00512), round_up(0.00512, 1)
    (0.0052, 0.006)
    """
    if not value > 0.0:
        return 0.0
    power = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return float(f"{math.ceil(value / power - 1e-9) * power:.{digits}g}")
