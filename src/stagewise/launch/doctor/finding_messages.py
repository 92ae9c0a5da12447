"""The codes of the doctor's findings, and the one sentence and remedy of each."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from string import Formatter
from typing import Any, NamedTuple

from stagewise.problem.formatting import format_count, join_names, safe_repr, suggest_name

Details = Mapping[str, Any]
TIME_SCALES = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}


class FindingCode(StrEnum):
    """What a check found, as a code that never changes."""

    ACTIONS_KNOWN = "actions_known"
    ACTION_MISSING = "action_missing"
    ACTION_UNKNOWN = "action_unknown"
    RANGES_KEPT = "ranges_kept"
    OUT_OF_RANGE = "out_of_range"
    RANGE_FROM_LOG = "range_from_log"
    UNITS_AGREE = "units_agree"
    BINARY_DECLARED_AS_PERCENT = "binary_declared_as_percent"
    FRACTIONS_DECLARED_AS_PERCENT = "fractions_declared_as_percent"
    COLUMNS_MAY_BE_SWAPPED = "columns_may_be_swapped"
    RANGE_HARDLY_USED = "range_hardly_used"
    TIMES_NOT_SECONDS = "times_not_seconds"
    NO_DUPLICATES = "no_duplicates"
    DUPLICATE_IDS = "duplicate_ids"
    COPIED_ROWS = "copied_rows"
    POSSIBLE_COPIES = "possible_copies"
    REPEATED_ROWS = "repeated_rows"
    POSSIBLE_REPEATS = "possible_repeats"
    PROPENSITIES_NOT_LOGGED = "propensities_not_logged"
    PROPENSITIES_AGREE = "propensities_agree"
    PROPENSITY_OUT_OF_RANGE = "propensity_out_of_range"
    PROBABILITIES_DO_NOT_SUM = "probabilities_do_not_sum"
    PROPENSITY_NOT_OF_ACTION = "propensity_not_of_action"
    ACTION_COUNT_IMPLAUSIBLE = "action_count_implausible"
    NOTHING_MISSING = "nothing_missing"
    NUMBER_MISSING = "number_missing"
    OUTCOME_ALL_MISSING = "outcome_all_missing"
    ONLY_EVENTS_REPORTED = "only_events_reported"
    ALL_WINDOWS_OPEN = "all_windows_open"
    SOME_WINDOWS_OPEN = "some_windows_open"
    MISSING_COUNTS_AS_DEFAULT = "missing_counts_as_default"
    MISSING_NOT_AT_RANDOM = "missing_not_at_random"
    OUTCOME_MISSING = "outcome_missing"
    TIMES_NOT_LOGGED = "times_not_logged"
    NO_GAPS = "no_gaps"
    OUTCOMES_LOST = "outcomes_lost"
    OUTCOMES_MAY_BE_LOST = "outcomes_may_be_lost"
    ENOUGH_ROWS = "enough_rows"
    TOO_FEW_ROWS = "too_few_rows"
    SAFE_ACTION_NOT_OVER_LIMIT = "safe_action_not_over_limit"
    SAFE_ACTION_OVER_LIMIT = "safe_action_over_limit"
    SAFE_MEANS_AGREE = "safe_means_agree"
    SAFE_MEAN_CONTRADICTED = "safe_mean_contradicted"
    LIMITS_CAN_BIND = "limits_can_bind"
    LIMIT_NEVER_BINDS = "limit_never_binds"
    NO_LEAKAGE = "no_leakage"
    PREDICTS_TOO_WELL = "predicts_too_well"
    PREDICTS_WELL = "predicts_well"
    DEPENDS_ON_ACTION = "depends_on_action"
    NO_NUMBERS = "no_numbers"
    FORM_AGREES = "form_agrees"
    NOT_LINEAR = "not_linear"
    SLIGHTLY_NOT_LINEAR = "slightly_not_linear"
    RATE_DEPENDS_ON_NUMBER = "rate_depends_on_number"
    RATE_SLIGHTLY_DEPENDS_ON_NUMBER = "rate_slightly_depends_on_number"
    RATE_MAY_DEPEND_ON_NUMBER = "rate_may_depend_on_number"
    PARAMETERS_WITHIN_BOUND = "parameters_within_bound"
    PARAMETER_TOO_LONG = "parameter_too_long"
    SEGMENTS_ALIKE = "segments_alike"
    SEGMENT_OVER_LIMIT = "segment_over_limit"
    SEGMENTS_DIFFER = "segments_differ"
    LIMIT_ON_AVERAGE_ONLY = "limit_on_average_only"
    NO_LINEAR_SIGNAL = "no_linear_signal"
    FEATURES_MATTER = "features_matter"
    FEATURES_CONSTANT = "features_constant"
    FEATURES_WITHOUT_EFFECT = "features_without_effect"
    NO_DRIFT = "no_drift"
    MEAN_DRIFTED = "mean_drifted"
    MEAN_DRIFTED_SLIGHTLY = "mean_drifted_slightly"
    MEAN_DRIFTED_BY_ROW = "mean_drifted_by_row"


class MissingPattern(StrEnum):
    """What missing outcomes go with (`MISSING_NOT_AT_RANDOM`)."""

    ACTION = "action"
    RATE = "rate"
    NUMBER = "number"
    SEGMENT = "segment"
    TIME = "time"
    OUTCOME = "outcome"


class FindingMessage(NamedTuple):
    """The check and usual verdict of a code, and its texts: templates, or functions of the details."""

    check: str
    verdict: str
    text: str | Callable[[Details], str]
    remedy: str | Callable[[Details], str] = ""


def format_number(value: float) -> str:
    """Return a number for a sentence.

    >>> format_number(0.0213456), format_number(1234567.0), format_number(50.0)
    ('0.0213', '1,234,567', '50')
    """
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


class FindingFormatter(Formatter):
    """Formats templates; `{x:number}` is a short number and `{x:names}` a list of names."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one field as text."""
        if format_spec == "number":
            return format_number(value)
        return join_names(value) if format_spec == "names" else format(value, format_spec)

    def make_text(self, template: str | Callable[[Details], str], details: Details) -> str:
        """Return the text of a template, or of a function of the details."""
        return self.vformat(template, (), details) if isinstance(template, str) else template(details)


def describe_segment(details: Details) -> str:
    """Return the segment of a finding, if it has one."""
    return f" in {details['column']} {details['segment']!r}" if details.get("segment") is not None else ""


def describe_side(at_least: bool) -> str:
    """Return the side of a limit in words."""
    return "least" if at_least else "most"


def describe_unknown_action(details: Details) -> str:
    """Return the message of `ACTION_UNKNOWN`."""
    hint = suggest_name(details["name"], details["actions"]) or f"; its actions are {join_names(details['actions'])}"
    return (
        f"{details['count']:,} of {details['rows']:,} rows have an action that is not in the problem, "
        f"{details['name_count']:,} of them {safe_repr(details['name'])}{hint}"
    )


def describe_out_of_range(details: Details) -> str:
    """Return the message of `OUT_OF_RANGE`."""
    low, high = format_number(details["low"]), format_number(details["high"])
    return (
        f"{details['count']:,} of {details['rows']:,} values of {details['name']!r} are outside [{low}, {high}], "
        f"such as {format_number(details['example'])}{'; they may be percentages' if details['percent'] else ''}"
    )


def remedy_out_of_range(details: Details) -> str:
    """Return the remedy of `OUT_OF_RANGE`."""
    if details["percent"]:
        return "divide by 100"
    if details["swapped_with"] is not None:
        return (
            f"check whether {details['name']!r} and {details['swapped_with']!r} are swapped: each is in the other's "
            "range"
        )
    if details["is_outcome"]:
        return "declare a low and a high that contain every single outcome; the guarantee relies on them"
    return "declare a context range that contains every user"


def describe_percent(details: Details) -> str:
    """Return the message of `BINARY_DECLARED_AS_PERCENT`."""
    text = f"every {details['name']!r} in the log is 0 or 1, but it is declared up to {format_number(details['high'])}"
    limit = details["limit"]
    if limit is not None and limit >= 1.0:
        text += f" with a limit of {format_number(limit)}, which no rate can exceed"
    return text


def remedy_times(details: Details) -> str:
    """Return the remedy of `TIMES_NOT_SECONDS`."""
    factor = details["factor"]
    return (
        "write seconds since 1970"
        if factor is None
        else f"they look like {TIME_SCALES[factor]}: divide by {factor:,.0f}"
    )


def describe_no_duplicates(details: Details) -> str:
    """Return the message of `NO_DUPLICATES`."""
    if details["id_column"] is None:
        return "no two rows agree in every column"
    return f"every row has its own {details['id_column']!r}, and no two agree in all other columns"


def describe_copies(details: Details) -> str:
    """Return the message of `COPIED_ROWS` and `POSSIBLE_COPIES`."""
    verb = "is a copy" if details["count"] == 1 else "are copies"
    return f"{format_count(details['count'], 'row')} of {details['rows']:,} {verb} of another row in every column"


def describe_repeats(details: Details) -> str:
    """Return the message of `REPEATED_ROWS` and `POSSIBLE_REPEATS`."""
    verb = "follows" if details["count"] == 1 else "follow"
    return (
        f"{format_count(details['count'], 'row')} of {details['rows']:,} {verb} another row within "
        f"{details['seconds']:.0f} seconds that agrees in everything but times and outcomes"
    )


def describe_action_count(details: Details) -> str:
    """Return the message of `ACTION_COUNT_IMPLAUSIBLE`."""
    action, count = repr(details["action"]), f"{details['count']:,}"
    if details["expected"] is not None:
        return f"{action} was taken {count} times, but its probabilities sum to {format_number(details['expected'])}"
    return (
        f"{action} was taken {count} times, but its rows, weighted by 1/propensity, stand for "
        f"{format_number(details['weight'])} of {details['rows']:,}"
    )


def describe_missing(details: Details) -> str:
    """Return how many outcomes are missing, and how many rows are left out because their windows were open."""
    count, rows = details["count"], details["rows"]
    text = f"{details['name']!r} is missing in {count:,} of {rows:,} rows ({count / rows:.1%})"
    if details.get("open_rows"):
        text += (
            f"; {details['open_rows']:,} rows are left out, because their window of {details['window']} was open at "
            "the end of the log"
        )
    return text


def describe_default(details: Details) -> str:
    """Return the message of `MISSING_COUNTS_AS_DEFAULT`."""
    note = "" if details["has_times"] else ", as if every window had closed, because the log has no times"
    return f"{describe_missing(details)}; {details['filled']:,} count as {details['default']:g}{note}"


def describe_pattern(details: Details) -> str:
    """Return the message of `MISSING_NOT_AT_RANDOM`."""
    more, name = details["more"], details["by"]
    pattern = {
        MissingPattern.ACTION: f"the action: {details['share'] or 0.0:.1%} of the rows of {name!r}",
        MissingPattern.RATE: f"its own rate: {'more' if more else 'less'} is missing for actions with a higher rate",
        MissingPattern.NUMBER: f"{name!r}, which is {'higher' if more else 'lower'} there",
        MissingPattern.SEGMENT: f"{details['column']}, most in {name!r}",
        MissingPattern.TIME: f"time: more is missing {'late' if more else 'early'}",
        MissingPattern.OUTCOME: f"{name!r}, which is {'more' if more else 'less'} frequent there",
    }[MissingPattern(details["pattern"])]
    return f"{describe_missing(details)}; whether it is missing depends on {pattern}"


def remedy_pattern(details: Details) -> str:
    """Return the remedy of `MISSING_NOT_AT_RANDOM`."""
    if details["pattern"] == MissingPattern.TIME and details["more"]:
        return "end the log earlier if windows were still open at its end; otherwise find out why outcomes are missing"
    return "find out why: if the outcome itself is the cause, the other rows say nothing about its mean"


def describe_gap(details: Details) -> str:
    """Return the message of `OUTCOMES_LOST` and `OUTCOMES_MAY_BE_LOST`."""
    signals = " or ".join(map(repr, details["signals"]))
    return (
        f"no {signals} is above {format_number(details['threshold'])} {details['period']}, in {details['rows']:,} "
        f"rows, where {format_number(details['expected'])} would be expected"
    )


def describe_few_rows(details: Details) -> str:
    """Return the message of `TOO_FEW_ROWS`."""
    more = f", and {details['other_cells']} more have too few" if details["other_cells"] else ""
    return (
        f"{details['action']!r}{describe_segment(details)} has {details['count']:,} outcomes of {details['name']!r}"
        f"{more}; too few rows to certify this limit, even with no events: it takes {details['needed']:,}"
    )


def describe_safe_over_limit(details: Details) -> str:
    """Return the message of `SAFE_ACTION_OVER_LIMIT`."""
    where = " on average over all segments" if details["all_segments"] else describe_segment(details)
    side = describe_side(not details["at_least"])
    return (
        f"{details['name']!r} of the safe action {details['action']!r}{where} averages "
        f"{format_number(details['mean'])} and is certainly at {side} {format_number(details['bound'])}, but its limit "
        f"is {format_number(details['limit'])}"
    )


def describe_safe_mean(details: Details) -> str:
    """Return the message of `SAFE_MEAN_CONTRADICTED`."""
    return (
        f"{details['name']!r} of {details['action']!r}{describe_segment(details)} is declared to be at "
        f"{describe_side(details['at_least'])} {format_number(details['declared'])}, but averages "
        f"{format_number(details['mean'])}, certainly {format_number(details['low'])} to "
        f"{format_number(details['high'])}"
    )


def describe_loose_limit(details: Details) -> str:
    """Return the message of `LIMIT_NEVER_BINDS`."""
    return (
        f"{details['name']!r} of every action is certainly at {describe_side(details['at_least'])} "
        f"{format_number(details['bound'])}, and its limit is {format_number(details['limit'])}, so it can never bind"
    )


def describe_misfit(details: Details) -> str:
    """Return the message of `NOT_LINEAR` and `SLIGHTLY_NOT_LINEAR`."""
    action = "" if details["action"] is None else f" of {details['action']!r}"
    if details["decile"] is not None:
        cause = f"predictions for decile {details['decile']} of users are off"
    else:
        first, second = details["numbers"]
        term = f"{first!r} squared" if first == second else f"{first!r} times {second!r}"
        cause = f"{term} has an effect"
    return (
        f"{details['name']!r}{action} is not linear in the numbers about users: {cause}, by {details['effect']:.0%} of "
        "its mean"
    )


def describe_dependence(details: Details) -> str:
    """Return how a rate depends on a number."""
    action = "" if details["action"] is None else f" of {details['action']!r}"
    halves = ("in the middle", "at the ends") if details["at_ends"] else ("in the lower half", "in the upper half")
    return (
        f"{details['name']!r}{action} depends on {details['number']!r}: {format_number(details['low'])} {halves[0]} "
        f"and {format_number(details['high'])} {halves[1]}"
    )


def describe_rate_dependence(details: Details) -> str:
    """Return the message of `RATE_DEPENDS_ON_NUMBER` and `RATE_SLIGHTLY_DEPENDS_ON_NUMBER`."""
    return f"{describe_dependence(details)}, but one rate per action is declared"


def describe_possible_dependence(details: Details) -> str:
    """Return the message of `RATE_MAY_DEPEND_ON_NUMBER`."""
    where = "in the half that a proposal is chosen from, " if details["in_selection"] else ""
    return (
        f"{where}perhaps {describe_dependence(details)}, but one rate per action is declared; chance alone does this "
        f"in at most 1 of {format_number(1.0 / details['p_value'])} logs"
    )


RATE_REMEDY = (
    "declare model = 'linear', or by = a group of {number!r}; otherwise the limit holds only while each action goes to "
    "the same users as in this log"
)


def describe_segment_difference(details: Details) -> str:
    """Return how a rate differs by a column."""
    difference = details["difference"]
    sign = "+" if difference > 0 else ""
    return (
        f"{details['name']!r} differs by {details['column']!r}: in {details['segment']!r} it is "
        f"{sign}{format_number(difference)} from all"
    )


def describe_broken_segment(details: Details) -> str:
    """Return the message of `SEGMENT_OVER_LIMIT`."""
    return (
        f"{describe_segment_difference(details)}, and {details['action']!r} keeps {format_number(details['limit'])} on "
        f"average but breaks it for {details['broken_segment']!r}, certainly {format_number(details['bound'])}"
    )


def describe_differing_segments(details: Details) -> str:
    """Return the message of `SEGMENTS_DIFFER`."""
    p_value = details["p_value"]
    luck = "" if p_value is None else f"; chance alone does this in at most 1 of {format_number(1.0 / p_value)} logs"
    return f"{describe_segment_difference(details)}{luck}"


def describe_constant_features(details: Details) -> str:
    """Return the message of `FEATURES_CONSTANT`."""
    return f"{join_names(details['names'])} {'has' if len(details['names']) == 1 else 'have'} one value in all rows"


def describe_drift(details: Details) -> str:
    """Return the message of the codes on drift."""
    action = "" if details["action"] is None else f" of {details['action']!r}"
    halves = (
        ("the middle half of the log", "at its ends")
        if details["at_ends"]
        else ("the first half of the log", "in the second")
    )
    return (
        f"{details['name']!r}{action} averaged {format_number(details['before'])} in {halves[0]} and "
        f"{format_number(details['after'])} {halves[1]}"
    )


def describe_no_drift(details: Details) -> str:
    """Return the message of `NO_DRIFT`."""
    return "no mean changed between " + (
        "the beginning and the end of the log"
        if details["has_times"]
        else "the first row and the last (the log has no times)"
    )


OK, NOTE, CONTRADICTS = "ok", "note", "contradicts"
COPY_REMEDY = "keep one of each: an outcome that counts twice makes bounds too narrow"
DRAW_REMEDY = "log the probability that the decision was drawn with"
GAP_REMEDY = (
    "check how outcomes are joined to decisions: lost or late outcomes look like zeros; leave these rows out, or their "
    "outcomes empty"
)
FORM_REMEDY = "add a number for it, such as a square or a product, or narrow the range; a kernel needs no form"
USED_RANGE = (
    "{name!r} is in [{least:number}, {most:number}], {used:.1%} of its declared range [{low:number}, {high:number}]"
)
DRIFT_REMEDY = "learn from the recent part only, and keep the agent's drift checks on"

MESSAGES: dict[FindingCode, FindingMessage] = {
    FindingCode.ACTIONS_KNOWN: FindingMessage("actions", OK, "every row has one of the actions {actions:names}"),
    FindingCode.ACTION_MISSING: FindingMessage(
        "actions",
        CONTRADICTS,
        "{count:,} of {rows:,} rows have no action",
        "leave them out only if the outcome is not the cause",
    ),
    FindingCode.ACTION_UNKNOWN: FindingMessage(
        "actions", CONTRADICTS, describe_unknown_action, "declare every action of the log, or rename these"
    ),
    FindingCode.RANGES_KEPT: FindingMessage("ranges", OK, "every number is in its declared range"),
    FindingCode.OUT_OF_RANGE: FindingMessage("ranges", CONTRADICTS, describe_out_of_range, remedy_out_of_range),
    FindingCode.RANGE_FROM_LOG: FindingMessage(
        "ranges",
        NOTE,
        "the range of {name!r} is what these rows contain, rounded outward",
        "declare a low and a high that no outcome can be outside of; the guarantee relies on them",
    ),
    FindingCode.UNITS_AGREE: FindingMessage("units", OK, "limits, ranges, times and values agree in their units"),
    FindingCode.BINARY_DECLARED_AS_PERCENT: FindingMessage(
        "units", CONTRADICTS, describe_percent, "declare fractions: high = 1, and two percent are 0.02"
    ),
    FindingCode.FRACTIONS_DECLARED_AS_PERCENT: FindingMessage(
        "units", CONTRADICTS, USED_RANGE, "the values look like fractions and the range like percentages"
    ),
    FindingCode.COLUMNS_MAY_BE_SWAPPED: FindingMessage(
        "units",
        NOTE,
        USED_RANGE + "; it would fill that of {other!r}, many of whose values are at an end of its own range",
        "check whether the columns {name!r} and {other!r} are swapped",
    ),
    FindingCode.RANGE_HARDLY_USED: FindingMessage(
        "units", NOTE, USED_RANGE, "declare a narrower range if no user is outside it: the policy then learns faster"
    ),
    FindingCode.TIMES_NOT_SECONDS: FindingMessage(
        "units",
        CONTRADICTS,
        "{count:,} of {rows:,} times are like {example:number}, which as seconds since 1970 is after the year 5000, so "
        "windows, hours and days are wrong",
        remedy_times,
    ),
    FindingCode.NO_DUPLICATES: FindingMessage("duplicates", OK, describe_no_duplicates),
    FindingCode.DUPLICATE_IDS: FindingMessage(
        "duplicates", CONTRADICTS, "{count:,} of {rows:,} rows have the {name!r} of another row", COPY_REMEDY
    ),
    FindingCode.COPIED_ROWS: FindingMessage("duplicates", CONTRADICTS, describe_copies, COPY_REMEDY),
    FindingCode.POSSIBLE_COPIES: FindingMessage(
        "duplicates", NOTE, lambda details: f"{describe_copies(details)}, as is likely if columns have few values"
    ),
    FindingCode.REPEATED_ROWS: FindingMessage(
        "duplicates",
        CONTRADICTS,
        lambda details: f"{describe_repeats(details)}, and {details['same']:,} agree in the outcomes too",
        COPY_REMEDY,
    ),
    FindingCode.POSSIBLE_REPEATS: FindingMessage(
        "duplicates", NOTE, lambda details: f"{describe_repeats(details)}: the same user again, or the same row"
    ),
    FindingCode.PROPENSITIES_NOT_LOGGED: FindingMessage(
        "propensities", OK, "the log has no propensities; learning does not need them"
    ),
    FindingCode.PROPENSITIES_AGREE: FindingMessage(
        "propensities", OK, "the logged probabilities agree with how often each action was taken"
    ),
    FindingCode.PROPENSITY_OUT_OF_RANGE: FindingMessage(
        "propensities",
        CONTRADICTS,
        "{count:,} of {rows:,} propensities are outside (0, 1], such as {example:number}",
        lambda details: DRAW_REMEDY + ("; 25 percent are 0.25" if 1.0 < details["example"] <= 100.0 else ""),
    ),
    FindingCode.PROBABILITIES_DO_NOT_SUM: FindingMessage(
        "propensities",
        CONTRADICTS,
        "the probabilities of all actions do not sum to 1 in {count:,} of {rows:,} rows",
        DRAW_REMEDY,
    ),
    FindingCode.PROPENSITY_NOT_OF_ACTION: FindingMessage(
        "propensities",
        CONTRADICTS,
        "the propensity is not the logged probability of the action taken in {count:,} rows",
        DRAW_REMEDY,
    ),
    FindingCode.ACTION_COUNT_IMPLAUSIBLE: FindingMessage(
        "propensities",
        CONTRADICTS,
        describe_action_count,
        "log the probability that the decision was drawn with, for the action that was carried out",
    ),
    FindingCode.NOTHING_MISSING: FindingMessage("missing_values", OK, "every row has every outcome and every number"),
    FindingCode.NUMBER_MISSING: FindingMessage(
        "missing_values",
        NOTE,
        describe_missing,
        "fill in a default, such as the middle of its range, here and in every call",
    ),
    FindingCode.OUTCOME_ALL_MISSING: FindingMessage(
        "missing_values",
        CONTRADICTS,
        lambda details: f"{describe_missing(details)}, which is all of them",
        lambda details: (
            "check the column's name"
            if details["has_default"]
            else "nothing can be learned of it; check the column's name"
        ),
    ),
    FindingCode.ONLY_EVENTS_REPORTED: FindingMessage(
        "missing_values",
        CONTRADICTS,
        lambda details: (
            f"{describe_missing(details)}, and is {details['value']:g} in all others: only events were reported"
        ),
        "fill in {low:g} where nothing was reported in time",
    ),
    FindingCode.ALL_WINDOWS_OPEN: FindingMessage(
        "missing_values",
        CONTRADICTS,
        lambda details: (
            f"{describe_missing(details)}, and every row's window of {details['window']} is still open, so nothing is "
            "known of its mean yet"
        ),
        "log for longer than the window",
    ),
    FindingCode.SOME_WINDOWS_OPEN: FindingMessage("missing_values", NOTE, describe_missing),
    FindingCode.MISSING_COUNTS_AS_DEFAULT: FindingMessage("missing_values", NOTE, describe_default),
    FindingCode.MISSING_NOT_AT_RANDOM: FindingMessage("missing_values", CONTRADICTS, describe_pattern, remedy_pattern),
    FindingCode.OUTCOME_MISSING: FindingMessage(
        "missing_values",
        NOTE,
        lambda details: f"{describe_missing(details)}; this depends on no known action, number, time or other outcome",
        "leave the rows out only if the outcome itself is not the cause",
    ),
    FindingCode.TIMES_NOT_LOGGED: FindingMessage(
        "outcome_gaps", OK, "the log has no times, so periods without outcomes cannot be found"
    ),
    FindingCode.NO_GAPS: FindingMessage("outcome_gaps", OK, "no hour, weekday or part of the log lacks outcomes"),
    FindingCode.OUTCOMES_LOST: FindingMessage("outcome_gaps", CONTRADICTS, describe_gap, GAP_REMEDY),
    FindingCode.OUTCOMES_MAY_BE_LOST: FindingMessage(
        "outcome_gaps",
        NOTE,
        lambda details: f"{describe_gap(details)} at the rate of the other rows; rates may be lower there",
        GAP_REMEDY,
    ),
    FindingCode.ENOUGH_ROWS: FindingMessage(
        "sample_size", OK, "every action has enough outcomes to certify its limits, in {rows:,} rows"
    ),
    FindingCode.TOO_FEW_ROWS: FindingMessage(
        "sample_size",
        NOTE,
        describe_few_rows,
        "the policy starts from the safe action and explores it slowly; log more of it, or leave it out",
    ),
    FindingCode.SAFE_ACTION_NOT_OVER_LIMIT: FindingMessage(
        "safe_action", OK, "nothing shows that {action!r} is over a limit"
    ),
    FindingCode.SAFE_ACTION_OVER_LIMIT: FindingMessage(
        "safe_action",
        CONTRADICTS,
        describe_safe_over_limit,
        "check the limit's units, or declare another safe action: no policy can start from this one",
    ),
    FindingCode.SAFE_MEANS_AGREE: FindingMessage(
        "declared_safe", OK, "the declared means of the safe action agree with the log"
    ),
    FindingCode.SAFE_MEAN_CONTRADICTED: FindingMessage(
        "declared_safe", CONTRADICTS, describe_safe_mean, "declare safe = {bound:number}, or leave it out"
    ),
    FindingCode.LIMITS_CAN_BIND: FindingMessage("loose_limits", OK, "every limit could bind"),
    FindingCode.LIMIT_NEVER_BINDS: FindingMessage(
        "loose_limits",
        CONTRADICTS,
        describe_loose_limit,
        "check its units; if the limit is only for monitoring, accept it (accept=['loose_limits'])",
    ),
    FindingCode.NO_LEAKAGE: FindingMessage("leakage", OK, "no number about users predicts outcomes suspiciously well"),
    FindingCode.PREDICTS_TOO_WELL: FindingMessage(
        "leakage",
        CONTRADICTS,
        "{column!r} predicts {name!r} within actions with an area under the curve of {auc:number} or more; above "
        "{threshold:number} it counts as recorded after the decision",
        "check when it is recorded, and leave it out if that is after the decision",
    ),
    FindingCode.PREDICTS_WELL: FindingMessage(
        "leakage",
        NOTE,
        "{column!r} predicts {name!r} within actions with an area under the curve of {auc:number} or more; a linear "
        "mean reaches at most {threshold:number}",
        "check when it is recorded; a number known before the decision may well be as good",
    ),
    FindingCode.DEPENDS_ON_ACTION: FindingMessage(
        "leakage",
        CONTRADICTS,
        lambda details: (
            f"{details['column']!r} is {'higher' if details['higher'] else 'lower'} in rows of {details['action']!r} "
            "than the logged probabilities of that action allow"
        ),
        "it was recorded after the decision, or the actions were not drawn with these probabilities",
    ),
    FindingCode.NO_NUMBERS: FindingMessage(
        "model_form", OK, "there are no numbers about users that a mean could depend on"
    ),
    FindingCode.FORM_AGREES: FindingMessage(
        "model_form", OK, "nothing shows that a signal has another form than declared"
    ),
    FindingCode.NOT_LINEAR: FindingMessage("model_form", CONTRADICTS, describe_misfit, FORM_REMEDY),
    FindingCode.SLIGHTLY_NOT_LINEAR: FindingMessage("model_form", NOTE, describe_misfit, FORM_REMEDY),
    FindingCode.RATE_DEPENDS_ON_NUMBER: FindingMessage(
        "model_form", CONTRADICTS, describe_rate_dependence, RATE_REMEDY
    ),
    FindingCode.RATE_SLIGHTLY_DEPENDS_ON_NUMBER: FindingMessage(
        "model_form", NOTE, describe_rate_dependence, RATE_REMEDY
    ),
    FindingCode.RATE_MAY_DEPEND_ON_NUMBER: FindingMessage(
        "model_form", NOTE, describe_possible_dependence, RATE_REMEDY
    ),
    FindingCode.PARAMETERS_WITHIN_BOUND: FindingMessage(
        "norm_bound", OK, "no parameter is certainly longer than norm_bound, {norm_bound:number}"
    ),
    FindingCode.PARAMETER_TOO_LONG: FindingMessage(
        "norm_bound",
        CONTRADICTS,
        "the parameter of {name!r} of {action!r} is certainly longer than {low:number}, but norm_bound is "
        "{norm_bound:number}",
        "settings.norm_bound = {high:number}",
    ),
    FindingCode.SEGMENTS_ALIKE: FindingMessage(
        "segments", OK, "no column of text shows groups of users with other rates"
    ),
    FindingCode.SEGMENT_OVER_LIMIT: FindingMessage(
        "segments",
        CONTRADICTS,
        describe_broken_segment,
        "by = {column!r} keeps its rates, and its limit, for each group",
    ),
    FindingCode.SEGMENTS_DIFFER: FindingMessage(
        "segments", NOTE, describe_differing_segments, "by = {column!r} keeps its rates, and its limit, for each group"
    ),
    FindingCode.LIMIT_ON_AVERAGE_ONLY: FindingMessage(
        "segments",
        NOTE,
        "{name!r} keeps its limit on average over {columns:names}, where equal rates are not shown",
        "add a column that combines it with the one that users are divided by, so that the limit holds in each group",
    ),
    FindingCode.NO_LINEAR_SIGNAL: FindingMessage("features", OK, "no signal is linear in numbers about users"),
    FindingCode.FEATURES_MATTER: FindingMessage("features", OK, "every one of {names:names} has a visible effect"),
    FindingCode.FEATURES_CONSTANT: FindingMessage(
        "features", NOTE, describe_constant_features, "leave them out: a constant has no effect"
    ),
    FindingCode.FEATURES_WITHOUT_EFFECT: FindingMessage(
        "features",
        NOTE,
        "no effect of {names:names} on {signals:names} is visible in this log",
        "leave out what does not matter: bounds become narrower",
    ),
    FindingCode.NO_DRIFT: FindingMessage("drift", OK, describe_no_drift),
    FindingCode.MEAN_DRIFTED: FindingMessage("drift", CONTRADICTS, describe_drift, DRIFT_REMEDY),
    FindingCode.MEAN_DRIFTED_SLIGHTLY: FindingMessage("drift", NOTE, describe_drift, DRIFT_REMEDY),
    FindingCode.MEAN_DRIFTED_BY_ROW: FindingMessage(
        "drift",
        NOTE,
        lambda details: f"{describe_drift(details)}, by the order of its rows",
        "name the column of times, such as 'at'",
    ),
}
