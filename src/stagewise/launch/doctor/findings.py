"""Findings of the doctor: a check, a verdict, a code and its data, and for each code its sentence and its remedy."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self

import numpy as np

from stagewise.launch.notes import MessageFormatter, Phrase, build_codes, choose, format_number, read_lines
from stagewise.problem.formatting import LONGEST, fit_line, format_count, join_names, safe_repr, suggest_name
from stagewise.records.reason import describe_excess, describe_fall

TIME_SCALES = {1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}


class CheckName(StrEnum):
    """The checks of `check_log`, in the order of its report; `ignore_checks` takes these names."""

    ACTIONS = "actions"  # every logged action is in the problem
    RANGES = "ranges"  # every number is in its declared range
    UNITS = "units"  # declared and logged values have the same units
    DUPLICATES = "duplicates"  # no row is in the log twice
    PROPENSITIES = "propensities"  # logged probabilities agree with the actions taken
    MISSING_VALUES = "missing_values"  # values are not missing for a reason that biases what is learned
    OUTCOME_GAPS = "outcome_gaps"  # no period lacks outcomes
    SAMPLE_SIZE = "sample_size"  # every action has enough rows to certify its limits
    SAFE_ACTION = "safe_action"  # the safe action keeps every limit
    DECLARED_SAFE = "declared_safe"  # the declared means of the safe action agree with the log
    LOOSE_LIMITS = "loose_limits"  # every limit can bind
    LEAKAGE = "leakage"  # no number or segment was recorded after the decision
    MODEL_FORM = "model_form"  # every signal has its declared form, linear or one rate per action
    MISMATCH = "mismatch"  # it does not matter who gets an action
    NORM_BOUND = "norm_bound"  # no linear parameter is longer than `norm_bound`
    SEGMENTS = "segments"  # no group of users has other rates than all
    FEATURES = "features"  # every number about users has an effect
    DRIFT = "drift"  # no mean changed over the log


class FindingVerdict(StrEnum):
    """The verdict of a check."""

    OK = "ok"  # nothing was found
    NOTE = "note"  # something worth knowing was found
    CONTRADICTS = "contradicts"  # the log and the problem cannot both be right


class MissingPattern(StrEnum):
    """What missing outcomes go with (`MISSING_NOT_AT_RANDOM`)."""

    ACTION = "action"
    RATE = "rate"
    NUMBER = "number"
    SEGMENT = "segment"
    TIME = "time"
    OUTCOME = "outcome"


class FindingMessage(NamedTuple):
    """The check and usual verdict of a code, and its templates: fields name details or phrases."""

    check: CheckName
    verdict: FindingVerdict
    text: str
    remedy: str


# By check, a line for each code: its usual verdict, the code, and what was found; after "->" what to do about it.
# Indented lines continue the one above. {x:number} is a short number, and {x:names} a list of names.
TABLE = """
actions
ok actions_known: every row has one of the actions {actions:names}
contradicts action_missing: {count:,} of {rows:,} rows have no action
    -> leave them out only if the outcome is not the cause
contradicts action_unknown: {count:,} of {rows:,} rows have an action that is not in the problem, {name_count:,} of them
    {the_unknown} -> declare every action of the log, or rename these

ranges
ok ranges_kept: every number is in its declared range, and every level of a category is declared
contradicts out_of_range: {count:,} of {rows:,} values of {name!r} are outside [{low:number}, {high:number}], such as
    {example:number}{or_percent} -> {range_remedy}
contradicts level_unknown: {count:,} of {rows:,} rows have a {name!r} that is not a level, {level_count:,} of them
    {the_level} -> declare these levels, or other = true; otherwise such rows are refused
note number_clipped: {count:,} of {rows:,} values of {name!r} are at an end of [{low:number}, {high:number}], beyond
    which values are clipped -> declare a wider range if these users differ
note level_rare: the level {level!r} of {name!r} has {count:,} of {rows:,} rows, and each level makes bounds wider
    -> leave it out, so that it counts as 'other' (other = true)
note range_from_log: the range of {name!r} is what these rows contain, rounded outward
    -> declare a low and a high that no outcome can be outside of; the guarantee relies on them

units
ok units_agree: limits, ranges, times and values agree in their units
contradicts binary_declared_as_percent: every {name!r} in the log is 0 or 1, but it is declared up to
    {high:number}{beyond_rates} -> declare fractions: high = 1, and two percent are 0.02
contradicts fractions_declared_as_percent: {used_range}
    -> the values look like fractions and the range like percentages
note columns_may_be_swapped: {used_range}; it would fill that of {other!r}, many of whose values are at an end of its
    own range -> check whether the columns {name!r} and {other!r} are swapped
note range_hardly_used: {used_range}
    -> declare a narrower range if no user is outside it: the policy then learns faster
contradicts times_not_seconds: {count:,} of {rows:,} times are like {example:number}, which as seconds since 1970 is
    after the year 5000, so windows, hours and days are wrong -> {time_remedy}

duplicates
ok no_duplicates: {rows_differ}
contradicts duplicate_ids: {count:,} of {rows:,} rows have the {name!r} of another row -> {keep_one}
contradicts copied_rows: {copies} -> {keep_one}
note possible_copies: {copies}, as is likely if columns have few values
contradicts repeated_rows: {repeats}, and {same:,} agree in the outcomes too -> {keep_one}
note possible_repeats: {repeats}: the same user again, or the same row

propensities
ok propensities_not_logged: the log has no propensities; learning does not need them
ok propensities_agree: the logged probabilities agree with how often each action was taken
contradicts propensity_out_of_range: {count:,} of {rows:,} propensities are outside (0, 1], such as {example:number}
    -> log the probability that the decision was drawn with{as_fraction}
contradicts probabilities_do_not_sum: the probabilities of all actions do not sum to 1 in {count:,} of {rows:,} rows
    -> log the probability that the decision was drawn with
contradicts propensity_not_of_action: the propensity is not the logged probability of the action taken in {count:,} rows
    -> log the probability that the decision was drawn with
contradicts action_count_implausible: {action!r} was taken {count:,} times, but its {expected_count}
    -> log the probability that the decision was drawn with, for the action that was carried out

missing_values
ok nothing_missing: every row has every outcome and every number
note number_missing: {missing} -> fill in a default, such as the middle of its range, here and in every call
contradicts outcome_all_missing: {missing}, which is all of them -> {nothing_known}check the column's name
contradicts only_events_reported: {missing}, and is {value:g} in all others: only events were reported
    -> fill in {low:g} where nothing was reported in time
contradicts all_windows_open: {missing}, and every row's window of {window} is still open, so nothing is known of its
    mean yet -> log for longer than the window
note some_windows_open: {missing}
note missing_counts_as_default: {missing}; {filled:,} count as {default:g}{without_times}
contradicts missing_not_at_random: {missing}; whether it is missing depends on {missing_with} -> {missing_remedy}
note outcome_missing: {missing}; this depends on no known action, number, time or other outcome
    -> leave the rows out only if the outcome itself is not the cause

outcome_gaps
ok times_not_logged: the log has no times, so periods without outcomes cannot be found
ok no_gaps: no hour, weekday or part of the log lacks outcomes
contradicts outcomes_lost: {lost_outcomes} -> {gap_remedy}
note outcomes_may_be_lost: {lost_outcomes} at the rate of the other rows; rates may be lower there -> {gap_remedy}

sample_size
ok enough_rows: every action has enough outcomes to certify its limits, in {rows:,} rows
note too_few_rows: {action!r}{in_segment} has {count:,} outcomes of {name!r}{and_others}; too few rows to certify this
    limit, even with no events: it takes {needed:,}
    -> the policy starts from the safe action and explores it slowly; log more of it, or leave it out

safe_action
ok safe_action_not_over_limit: nothing shows that {action!r} is over a limit
contradicts safe_action_over_limit: {name!r} of the safe action {action!r}{in_segments} averages {mean:number} and is
    certainly at {other_side} {bound:number}, but its limit is {limit:number}
    -> check the limit's units, or declare another safe action: no policy can start from this one

declared_safe
ok safe_means_agree: the declared means of the safe action agree with the log
contradicts safe_mean_contradicted: {name!r} of {action!r}{in_segment} is declared to be at {side} {declared:number},
    but averages {mean:number}, certainly {low:number} to {high:number}
    -> declare safe_bound = {bound:number}, or leave it out

loose_limits
ok limits_can_bind: every limit could bind
contradicts limit_never_binds: {name!r} of every action is certainly at {side} {bound:number}, and its limit is
    {limit:number}, so it can never bind
    -> check its units; if the limit is only for monitoring, ignore it (ignore_checks=['loose_limits'])

leakage
ok no_leakage: no number about users predicts outcomes suspiciously well
contradicts predicts_too_well: {predicts}; above {threshold:number} it counts as recorded after the decision
    -> check when it is recorded, and leave it out if that is after the decision
note predicts_well: {predicts}; a linear mean reaches at most {threshold:number}
    -> check when it is recorded; a number known before the decision may well be as good
contradicts depends_on_action: {column!r} is {higher_or_lower} in rows of {action!r} than the logged probabilities of
    that action allow
    -> it was recorded after the decision, or the actions were not drawn with these probabilities

model_form
ok no_numbers: there are no numbers about users that a mean could depend on
ok form_agrees: nothing shows that a signal has another form than declared
contradicts not_linear: {misfit} -> {form_remedy}
note slightly_not_linear: {misfit} -> {form_remedy}
contradicts rate_depends_on_number: {dependence}, but one rate per action is declared -> {rate_remedy}
note rate_slightly_depends_on_number: {dependence}, but one rate per action is declared -> {rate_remedy}
note rate_may_depend_on_number: {in_half}perhaps {dependence}, but one rate per action is declared; {chance}
    -> {rate_remedy}

mismatch
ok halves_alike: nothing shows that it matters who gets an action
note halves_differ: it matters who gets an action: {name!r}{of_action}{in_its_segment} averages {halves}, and its limit
    is kept for an average user -> {split_remedy}
note means_fall: {falls}, and its buckets are pooled -> reverse the score, fit it again, or declare monotone = false
note bounds_exceeded: {exceeded} -> add what is missing to the context, or promise the limit to groups (by=) or to
    buckets of a score (score=)

norm_bound
ok parameters_within_bound: no parameter is certainly longer than norm_bound, {norm_bound:number}
contradicts parameter_too_long: the parameter of {name!r} of {action!r} is certainly longer than {low:number}, but
    norm_bound is {norm_bound:number} -> settings.norm_bound = {high:number}

segments
ok segments_alike: no column of text shows groups of users with other rates
contradicts segment_over_limit: {differs}, and {action!r} keeps {limit:number} on average but breaks it for
    {broken_segment!r}, certainly {bound:number} -> {divide}
note segments_differ: {differs}{by_chance} -> {divide}
note limit_on_average_only: {name!r} keeps its limit on average over {columns:names}, where equal rates are not shown
    -> add a column that combines it with the one that users are divided by, so that the limit holds in each group

features
ok no_linear_signal: no signal is linear in numbers about users
ok features_matter: every one of {names:names} has a visible effect
note features_constant: {names:names} {has} one value in all rows -> leave them out: a constant has no effect
note features_without_effect: no effect of {names:names} on {signals:names} is visible in this log
    -> leave out what does not matter: bounds become narrower

drift
ok no_drift: no mean changed between {begin_and_end}
contradicts mean_drifted: {drift} -> {drift_remedy}
note mean_drifted_slightly: {drift} -> {drift_remedy}
note mean_drifted_by_row: {drift}, by the order of its rows -> name the column of times, such as 'at'
contradicts drift_too_fast: with the declared drift and the traffic of this log no bound of {name!r} can ever be at
    {side} {least:number} (of {action!r}), and its limit is {limit:number}
    -> declare a smaller drift if it is true, raise the limit, or send more: no action could be played alone
ok drift_learnable: with the declared drift and the traffic of this log the bound of {name!r} can come to about
    {least:number} (of {action!r}); its limit is {limit:number}
"""


def parse_table(table: str) -> dict[str, FindingMessage]:
    messages = {}
    for section in table.split("\n\n"):
        check, *lines = read_lines(section)
        for line in lines:
            head, text = line.split(": ", 1)
            verdict, code = head.split()
            sentence, _, remedy = text.partition(" -> ")
            messages[code] = FindingMessage(CheckName(check), FindingVerdict(verdict), sentence, remedy)
    return messages


MESSAGES = parse_table(TABLE)
FindingCode = build_codes("FindingCode", MESSAGES, __name__)
"""What a check found, as a code that never changes."""


def describe_chance(d: Any) -> str:
    return f"chance alone does this in at most 1 of {format_number(1.0 / d.p_value)} logs"


def describe_segment(d: Any) -> str:
    return "" if d.segment is None else f" in {d.column} {d.segment!r}"


def describe_missing(d: Any) -> str:
    """Return how many values are missing, and how many rows are left out because their windows were open."""
    text = f"{d.name!r} is missing in {d.count:,} of {d.rows:,} rows ({d.count / d.rows:.1%})"
    if not getattr(d, "open_rows", 0):
        return text
    window = f"their window of {d.window} was open at the end of the log"
    return f"{text}; {d.open_rows:,} rows are left out, because {window}"


def describe_range_remedy(d: Any) -> str:
    """Return the remedy of `OUT_OF_RANGE`."""
    if d.percent:
        return "divide by 100"
    if d.swapped_with is not None:
        return f"check whether {d.name!r} and {d.swapped_with!r} are swapped: each is in the other's range"
    if d.is_outcome:
        return "declare a low and a high that contain every single outcome; the guarantee relies on them"
    return "declare a context range that contains every user"


def describe_misfit(d: Any) -> str:
    """Return what is not linear."""
    if d.decile is not None:
        return f"predictions for decile {d.decile} of users are off"
    first, second = d.numbers
    return f"{first!r} squared has an effect" if first == second else f"{first!r} times {second!r} has an effect"


HALVED_BY = {"click_score": "the estimated reward", "risk_score": "the risk, estimated from earlier rows,"}
MISSING_PATTERNS: dict[MissingPattern, Callable[[Any], str]] = {
    MissingPattern.ACTION: lambda d: f"the action: {d.share or 0.0:.1%} of the rows of {d.by!r}",
    MissingPattern.RATE: lambda d: f"its own rate: {choose(d.more)} is missing for actions with a higher rate",
    MissingPattern.NUMBER: lambda d: f"{d.by!r}, which is {choose(d.more, 'higher', 'lower')} there",
    MissingPattern.SEGMENT: lambda d: f"{d.column}, most in {d.by!r}",
    MissingPattern.TIME: lambda d: f"time: more is missing {choose(d.more, 'late', 'early')}",
    MissingPattern.OUTCOME: lambda d: f"{d.by!r}, which is {choose(d.more)} frequent there",
}


# Parts of sentences: templates of the details, or functions of them.
PHRASES: dict[str, Phrase] = {
    "and_others": lambda d: f", and {d.other_cells} more have too few" if d.other_cells else "",
    "as_fraction": lambda d: "; 25 percent are 0.25" if 1.0 < d.example <= 100.0 else "",
    "begin_and_end": lambda d: choose(
        d.has_times, "the beginning and the end of the log", "the first row and the last (the log has no times)"
    ),
    "beyond_rates": lambda d: (
        f" with a limit of {format_number(d.limit)}, which no rate can exceed" if (d.limit or 0.0) >= 1.0 else ""
    ),
    "by_chance": lambda d: "" if d.p_value is None else f"; {describe_chance(d)}",
    "cause": describe_misfit,
    "chance": describe_chance,
    "copies": lambda d: (
        f"{format_count(d.count, 'row')} of {d.rows:,} {choose(d.count == 1, 'is a copy', 'are copies')} of another "
        "row in every column"
    ),
    "at_first": lambda d: choose(d.at_ends, "in the middle", "in the lower half"),
    "at_second": lambda d: choose(d.at_ends, "at the ends", "in the upper half"),
    "dependence": "{name!r}{of_action} depends on {number!r}: {low:number} {at_first} and {high:number} {at_second}",
    "differs": "{name!r} differs by {column!r}: in {segment!r} it is {plus}{difference:number} from all",
    "divide": "by = {column!r} keeps its rates, and its limit, for each group",
    "drift": "{name!r}{of_action} averaged {before:number} in the {which_half} half of the log and {after:number} "
    "{in_last}",
    "which_half": lambda d: choose(d.at_ends, "middle", "first"),
    "in_last": lambda d: choose(d.at_ends, "at its ends", "in the second"),
    "drift_remedy": lambda d: (
        choose(d.proposed is None, "", f"declare drift = {d.proposed!r} for this limit, or ")
        + "learn from the recent part only, and keep the agent's drift checks on"
    ),
    "exceeded": lambda d: describe_excess({**vars(d), "limit": d.name}),
    "falls": lambda d: describe_fall({**vars(d), "limit": d.name}),
    "expected_count": lambda d: (
        f"rows, weighted by 1/propensity, stand for {format_number(d.weight)} of {d.rows:,}"
        if d.expected is None
        else f"probabilities sum to {format_number(d.expected)}"
    ),
    "form_remedy": "add a number for it, such as a square or a product, or narrow the range; a kernel needs no form",
    "lost_outcomes": "no {signals_or} is above {threshold:number} {period}, in {rows:,} rows, where {expected:number} "
    "would be expected",
    "gap_remedy": "check how outcomes are joined to decisions: lost or late outcomes look like zeros; leave these rows "
    "out, or their outcomes empty",
    "halves": lambda d: (
        f"{format_number(d.low_mean)} where {d.column!r} is at most {format_number(d.cut)} and "
        f"{format_number(d.high_mean)} above"
        if d.cut is not None
        else f"{format_number(d.low_mean)} where {HALVED_BY.get(d.kind) or repr(d.column)} is below average and "
        f"{format_number(d.high_mean)} above"
    ),
    "has": lambda d: choose(len(d.names) == 1, "has", "have"),
    "higher_or_lower": lambda d: choose(d.higher, "higher", "lower"),
    "in_half": lambda d: choose(d.in_selection, "in the half that a proposal is chosen from, ", ""),
    "in_segment": describe_segment,
    "in_its_segment": lambda d: "" if d.segment is None else f" in {d.by} {d.segment!r}",
    "in_segments": lambda d: " on average over all segments" if d.all_segments else describe_segment(d),
    "keep_one": "keep one of each: an outcome that counts twice makes bounds too narrow",
    "misfit": "{name!r}{of_action} is not {form} in the numbers about users: {cause}, by {effect:.0%} of its mean",
    "missing": describe_missing,
    "missing_remedy": lambda d: choose(
        d.pattern == MissingPattern.TIME and d.more,
        "end the log earlier if windows were still open at its end; otherwise find out why outcomes are missing",
        "find out why: if the outcome itself is the cause, the other rows say nothing about its mean",
    ),
    "missing_with": lambda d: MISSING_PATTERNS[MissingPattern(d.pattern)](d),
    "nothing_known": lambda d: choose(d.has_default, "", "nothing can be learned of it; "),
    "of_action": lambda d: "" if d.action is None else f" of {d.action!r}",
    "or_percent": lambda d: choose(d.percent, "; they may be percentages", ""),
    "other_side": lambda d: choose(d.at_least, "most", "least"),
    "plus": lambda d: choose(d.difference > 0, "+", ""),
    "predicts": "{column!r} predicts {name!r} within actions with an area under the curve of {auc:number} or more",
    "range_remedy": describe_range_remedy,
    "rate_remedy": "declare model = 'linear' or 'logistic', or by = a group of {number!r}; otherwise the limit holds "
    "only while each action goes to the same users as in this log",
    "repeats": lambda d: (
        f"{format_count(d.count, 'row')} of {d.rows:,} {choose(d.count == 1, 'follows', 'follow')} another row within "
        f"{d.seconds:.0f} seconds that agrees in everything but times and outcomes"
    ),
    "rows_differ": lambda d: (
        "no two rows agree in every column"
        if d.id_column is None
        else f"every row has its own {d.id_column!r}, and no two agree in all other columns"
    ),
    "side": lambda d: choose(d.at_least, "least", "most"),
    "signals_or": lambda d: " or ".join(map(repr, d.signals)),
    "split_remedy": lambda d: (
        "divide users by a group (by=) or a score (score=), or use a model of each user"
        if d.cut is None
        else f"divide users by {d.column!r}, at {format_number(d.cut)} (by=), or by a score (score=), or use a model "
        "of each user"
    ),
    "the_level": lambda d: (
        safe_repr(d.level) + (suggest_name(d.level, d.levels) or f"; its levels are {join_names(d.levels)}")
    ),
    "the_unknown": lambda d: (
        safe_repr(d.name) + (suggest_name(d.name, d.actions) or f"; its actions are {join_names(d.actions)}")
    ),
    "time_remedy": lambda d: (
        "write seconds since 1970"
        if d.factor is None
        else f"they look like {TIME_SCALES[d.factor]}: divide by {d.factor:,.0f}"
    ),
    "used_range": "{name!r} is in [{least:number}, {most:number}], {used:.1%} of its declared range [{low:number}, "
    "{high:number}]",
    "without_times": lambda d: choose(d.has_times, "", ", as if every window had closed, because the log has no times"),
}


FORMATTER = MessageFormatter(PHRASES)


SEVERITY = tuple(FindingVerdict)  # from the mildest to the most severe


@dataclass(frozen=True)
class Finding:
    """One result of `check_log`: the verdict of one check, with its data.

    Attributes:
        code: What was found, as a code that never changes.
        check: The check that found it.
        verdict: "ok", "note" or "contradicts".
        details: The data of the finding, such as names, counts and rates.
        others: How many further findings the same check has.
        accepted: Whether a contradiction was accepted, so that it is a note.
        in_holdout: Whether the finding is about the rows that a proposal was not chosen from.

    Example:
        >>> from stagewise.launch.doctor.findings import FindingCode
        >>> finding = Finding.of(FindingCode.ACTION_MISSING, count=12, rows=400)
        >>> finding.check, finding.verdict
        (<CheckName.ACTIONS: 'actions'>, <FindingVerdict.CONTRADICTS: 'contradicts'>)
        >>> print(finding.message)
        12 of 400 rows have no action
    """

    code: str
    check: CheckName
    verdict: FindingVerdict
    details: dict[str, Any] = field(default_factory=dict)
    others: int = 0
    accepted: bool = False
    in_holdout: bool = False

    @classmethod
    def of(cls, code: str, verdict: FindingVerdict | None = None, /, **details: Any) -> Self:
        """Return a finding by its code, with the usual verdict of the code unless another is given."""
        values = {name: value.item() if isinstance(value, np.generic) else value for name, value in details.items()}
        return cls(code, MESSAGES[code].check, MESSAGES[code].verdict if verdict is None else verdict, values)

    @property
    def message(self) -> str:
        """What was found, as a sentence."""
        text = FORMATTER.make_text(MESSAGES[self.code].text, self.details)
        before = "in the holdout rows, " if self.in_holdout else ""
        after = f" (and {self.others} more of its kind)" if self.others else ""
        return f"{before}{text}{after}"

    @property
    def remedy(self) -> str:
        """What to do about it; empty if there is nothing to do."""
        text = FORMATTER.make_text(MESSAGES[self.code].remedy, self.details)
        return f"accepted; otherwise: {text}" if self.accepted else text

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values.

        Returns:
            `check`, `verdict`, `code`, `details` (None for NaN and infinity), `message` and `remedy`.
        """
        details = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in self.details.items()
        }
        head = {"check": str(self.check), "verdict": str(self.verdict), "code": str(self.code)}
        return {**head, "details": details, "message": self.message, "remedy": self.remedy}

    def __str__(self) -> str:
        text = f"{self.message}; {self.remedy}" if self.remedy else self.message
        return f"{self.verdict:11}  {self.check}: {fit_line(text, LONGEST)}"


def select_most_severe(findings: Iterable[Finding]) -> Finding:
    """Return the first of the most severe findings of one check, with the number of others that were found."""
    listed = list(findings)
    found = sum(finding.verdict is not FindingVerdict.OK for finding in listed)
    worst = max(listed, key=lambda finding: SEVERITY.index(finding.verdict))
    return replace(worst, others=max(found - 1, 0))
