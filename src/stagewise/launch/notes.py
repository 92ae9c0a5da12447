"""Notes on how a log was used: each is a sentence with a code and its data."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Self

from stagewise.problem.formatting import format_count

Details = Mapping[str, Any]


class NoteCode(StrEnum):
    """What a note is about, as a code that never changes."""

    ROWS_WITH_OPEN_WINDOWS = "rows_with_open_windows"
    ROWS_WITH_UNKNOWN_ACTION = "rows_with_unknown_action"
    ROWS_INCOMPLETE = "rows_incomplete"
    ROWS_NOT_SHOWN = "rows_not_shown"
    ROWS_WITHOUT_CONTEXT = "rows_without_context"
    OUTCOMES_FILLED = "outcomes_filled"
    OUTCOMES_MISSING = "outcomes_missing"
    OUTCOMES_MISSING_UNEVENLY = "outcomes_missing_unevenly"
    PROPENSITIES_ESTIMATED = "propensities_estimated"
    PROPENSITIES_OF_ACTION_ONLY = "propensities_of_action_only"
    TIMES_TIED = "times_tied"
    ORDER_RANDOM = "order_random"
    ORDER_IRRELEVANT = "order_irrelevant"
    ORDER_UNKNOWN = "order_unknown"
    NO_SUPPORT = "no_support"
    WEIGHTS_CONTRADICT = "weights_contradict"
    WEIGHTS_UNBALANCED = "weights_unbalanced"
    ACTIONS_WITHOUT_ROWS = "actions_without_rows"
    ACTIONS_WITH_FEW_ROWS = "actions_with_few_rows"
    FEATURE_CONSTANT_FOR_ACTION = "feature_constant_for_action"


class Note(str):
    """A note: its sentence, with `code` and `details`.

    >>> note = Note.of(NoteCode.ROWS_INCOMPLETE, count=9)
    >>> str(note), note.code, note.details
    ('9 rows with a missing value are left out', <NoteCode.ROWS_INCOMPLETE: 'rows_incomplete'>, {'count': 9})
    """

    code: NoteCode
    details: dict[str, Any]

    @classmethod
    def of(cls, code: NoteCode, **details: Any) -> Self:
        """Return a note by its code."""
        template = MESSAGES[code]
        note = cls(template.format_map(details) if isinstance(template, str) else template(details))
        note.code, note.details = code, details
        return note

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_note, (str(self.code), self.details)

    def to_dict(self) -> dict[str, Any]:
        """Return the note as JSON values."""
        return {"code": str(self.code), "details": self.details, "message": str(self)}


def _build_note(code: str, details: dict[str, Any]) -> Note:
    return Note.of(NoteCode(code), **details)


def describe_untimed(details: Details) -> str:
    """Return what follows if the log has no times."""
    return "" if details["has_times"] else ", as if every window had closed, because the log has no times"


def describe_order(details: Details) -> str:
    """Return why the order of rows is unknown."""
    count = details["count"]
    return "the log has no times" if count is None else f"the log has no time in {format_count(count, 'row')}"


def describe_support(details: Details) -> str:
    """Return the message of `NO_SUPPORT`."""
    parts = []
    if details["unsupported"]:
        names = ", ".join(f"{name!r} ({share:.1%})" for name, share in details["unsupported"].items())
        parts.append(f"poor overlap: the log could never have taken {names} where the candidate would")
    if details["clipped"]:
        parts.append(f"weights are clipped, which loses {details['clipped']:.2%} of the candidate")
    return f"{details['policy']}: {'; '.join(parts)}; the outcome of that part is unknown, and intervals hold for any"


def describe_contradiction(details: Details) -> str:
    """Return the message of `WEIGHTS_CONTRADICT`."""
    side = f"above {details['low']:.4g}" if details["low"] > 1.0 else f"below {details['high']:.4g}"
    return (
        f"{describe_where(details)}: weights average {details['mean']:.4g}, certainly {side}, but 1 is expected if "
        "rows were drawn with the given probabilities: rows are missing from the log, or these are not its "
        "probabilities; there is no estimate, and no limit is decided"
    )


def describe_where(details: Details) -> str:
    """Return the policy and the signals of a note."""
    return f"{details['policy']} ({'; '.join(details['signals'])})"


MESSAGES: dict[NoteCode, str | Callable[[Details], str]] = {
    NoteCode.ROWS_WITH_OPEN_WINDOWS: (
        "{name}: {count:,} rows are left out, because their window of {window} is still open"
    ),
    NoteCode.ROWS_WITH_UNKNOWN_ACTION: lambda details: (
        f"{format_count(details['count'], 'row')} with an action that is not in the problem are left out"
    ),
    NoteCode.ROWS_INCOMPLETE: lambda details: (
        f"{format_count(details['count'], 'row')} with a missing value are left out"
    ),
    NoteCode.ROWS_NOT_SHOWN: lambda details: (
        f"{format_count(details['count'], 'row')} are left out, because the action was not carried out (shown is false)"
    ),
    NoteCode.ROWS_WITHOUT_CONTEXT: "{count:,} rows without a complete context are left out",
    NoteCode.OUTCOMES_FILLED: lambda details: (
        f"{details['name']}: {details['count']:,} outcomes were not reported and count as {details['default']:g}"
        f"{describe_untimed(details)}"
    ),
    NoteCode.OUTCOMES_MISSING: (
        "{name}: {count:,} rows have no outcome and are left out, as if that did not depend on the outcome"
    ),
    NoteCode.OUTCOMES_MISSING_UNEVENLY: (
        "{name}: {share:.1%} of the outcomes are missing after {action!r} and {overall:.1%} overall, so leaving these "
        "rows out may bias the estimate"
    ),
    NoteCode.PROPENSITIES_ESTIMATED: (
        "the probabilities are estimated from the log itself: intervals take them as true and leave out their error, "
        "and a design that differed between users would invalidate all of this; so no limit is decided"
    ),
    NoteCode.PROPENSITIES_OF_ACTION_ONLY: (
        "the log has only the probability of the action taken: intervals hold for any probabilities of the others, and "
        "dr has the intervals of ips; columns 'probability.ACTION' for all actions make them narrower"
    ),
    NoteCode.TIMES_TIED: "{count:,} rows have the time of another; their order is random, as if decided at once",
    NoteCode.ORDER_RANDOM: lambda details: f"{describe_order(details)}, so rows count in a random order",
    NoteCode.ORDER_IRRELEVANT: lambda details: f"{describe_order(details)}, but intervals hold for every order of rows",
    NoteCode.ORDER_UNKNOWN: lambda details: (
        f"{describe_order(details)}, and its probabilities differ between rows, perhaps because of earlier outcomes. "
        "So limits are decided by ips, whose intervals hold for every order of rows; those of dr hold if the log's "
        "policy was fixed. Add the times of the decisions, or their numbers in order, in a column 'at'"
    ),
    NoteCode.NO_SUPPORT: describe_support,
    NoteCode.WEIGHTS_CONTRADICT: describe_contradiction,
    NoteCode.WEIGHTS_UNBALANCED: lambda details: (
        f"{describe_where(details)}: weights average {details['mean']:.4g}, but 1 is expected if the log can take all "
        "actions of the candidate: poor overlap, the log rarely contains some of them; there is no estimate, and "
        "intervals hold for any outcome of that part"
    ),
    NoteCode.ACTIONS_WITHOUT_ROWS: lambda details: (
        f"the log has no row of {', '.join(map(repr, details['actions']))}; their outcomes can be anything that the "
        "problem allows, and the bands are as wide"
    ),
    NoteCode.ACTIONS_WITH_FEW_ROWS: lambda details: (
        "the log has few rows of "
        f"{', '.join(f'{name!r} ({count})' for name, count in details['counts'].items())}; bands are wide where these "
        "are played"
    ),
    NoteCode.FEATURE_CONSTANT_FOR_ACTION: lambda details: (
        f"all rows of {details['action']!r} have the same {', '.join(map(repr, details['names']))}; its outcomes are "
        "assumed to be the same for other users, which the log cannot show; is that a number about the user?"
    ),
}
