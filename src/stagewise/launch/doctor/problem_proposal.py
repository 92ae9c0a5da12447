"""Propose a problem from a log, with a reason for every choice, and as TOML."""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import Log, to_text
from stagewise.launch.doctor.column_roles import OF_ACTION, Roles
from stagewise.launch.doctor.drift_proposal import propose_drift
from stagewise.launch.doctor.findings import Finding, FindingCode, FindingVerdict, select_most_severe
from stagewise.launch.doctor.log_profile import Cost, Groups, LogProfile, Split, get_threshold
from stagewise.launch.doctor.number_checks import (
    describe_leak,
    estimate_auc,
    estimate_group_auc,
    estimate_norms,
    get_selection_level,
    measure_rate_dependence,
    sort_by_action,
)
from stagewise.launch.doctor.rate_checks import (
    SELECTION_LEVEL,
    estimate_safe_rates,
    find_extreme_segment,
    find_text_columns,
)
from stagewise.launch.notes import format_number, round_up
from stagewise.policies.problem import RESERVED_NAMES, Problem
from stagewise.problem.context import LONGEST_SEGMENT
from stagewise.problem.context_columns import OTHER, Category, encode_column
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.formatting import join_names
from stagewise.problem.signals import Limit, Model, Reward

READING_SHARE = 0.2  # share of delta for what is estimated from the rows and relied on, such as the safe action's rates
MAX_MAGNITUDE = 1e90
PADDING = 0.05  # of the observed range, on either side, for users who are not in the log
MAX_SEGMENTS = 100  # if rates are shown to differ
FEW_SEGMENTS = 12  # divide users by so many segments unless rates are shown to be equal
MOST_PROPOSED_LEVELS = 20
ROWS_PER_LEVEL = 100  # of a level of a category
ROWS_PER_CELL = 10  # rows of an action in a group that can teach something, on average
MIN_COVERED_SHARE = 0.9  # of all rows, in groups with enough rows; others get the safe action first
MARGIN_SHARE = 0.1  # of a limit, by which equal rates of one action may differ
MEAN_FACTOR = 2.0  # a proposed limit is the larger of this times the safe action's mean cost ...
BOUND_FACTOR = 1.25  # ... and this times its upper bound
MIN_DISTANCE = 1e-4  # of a range: the least distance of a limit from its ends


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposed problem, its column mapping, and the reason for each value."""

    problem: Problem
    columns: dict[str, str]
    """The column mapping, as `Log.of(..., columns=)` takes it."""
    reasons: dict[str, str]
    roles: Roles
    split: Split
    averaged: dict[str, tuple[str, ...]]
    """By limit, the columns of text that it holds on average over, where equal rates are not shown."""

    def add_notes(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings with notes on what the proposal leaves open, where a check found nothing."""
        ranges = [Finding.of(FindingCode.RANGE_FROM_LOG, name=name) for name in self.observed]
        averages = [
            Finding.of(FindingCode.LIMIT_ON_AVERAGE_ONLY, name=name, columns=list(columns))
            for name, columns in self.averaged.items()
        ]
        notes = {group[0].check: select_most_severe(group) for group in (ranges, averages) if group}
        return tuple(
            notes.get(finding.check, finding) if finding.verdict is FindingVerdict.OK else finding
            for finding in findings
        )

    @property
    def observed(self) -> list[str]:
        """The outcomes whose range is only what the log contains, not 0 to 1."""
        return [name for name, signal in self.problem.signals.items() if (signal.low, signal.high) != (0.0, 1.0)]


def propose_problem(
    arrays: Mapping[Any, npt.NDArray[Any]], roles: Roles, split: Split, delta: float, alpha: float
) -> Proposal:
    """Return the problem that the selection rows suggest."""
    reasons = {f"ignored.{name}": why for name, why in roles.ignored.items()}
    names = {"action": roles.action, **choose_names(roles)}
    draft = draft_problem(roles, names, split, delta, reasons)
    selected = {name: array[split.selection] for name, array in {**arrays, **roles.numbers, **roles.outcomes}.items()}
    profile = build_profile(selected, draft, names)
    leaks = {name: describe_number_leak(profile, index, alpha) for index, name in enumerate(draft.numbers)}
    reasons |= {f"ignored.{name}": why for name, why in leaks.items() if why}
    context: Any = {name: ends for name, ends in draft.ranges if not leaks[name]}
    profile = build_profile(selected, replace(draft, context=context), names)
    divisions = find_divisions(profile, roles.texts, arrays, alpha, reasons)
    problem, averaged = complete_problem(profile, selected, roles, split, delta, divisions, reasons)
    mapping = {name: column for name, column in profile.columns.items() if column != name}
    return Proposal(problem, mapping, reasons, roles, split, averaged)


# A draft: actions, signals and ranges. It defines how the log is read.


def choose_names(roles: Roles) -> dict[str, str]:
    """Return valid names for a problem, with the columns that they stand for."""
    columns = [roles.reward, *roles.limits, *roles.numbers]
    others, names = {*columns, *roles.texts}, dict[str, str]()
    for column in columns:
        name = column
        while name in RESERVED_NAMES or (name != column and name in others):
            name = f"the_{name}"
        names[name] = column
    return names


def draft_problem(roles: Roles, names: dict[str, str], split: Split, delta: float, reasons: dict[str, str]) -> Problem:
    """Return a problem with ranges, before its models are chosen."""
    names_of, context, limits = {column: name for name, column in names.items()}, {}, {}
    for column, values in roles.numbers.items():
        known = values[np.isfinite(values)]  # of all rows: ranges of numbers about users depend on no outcome
        if known.size and known.min() < known.max() and np.abs(known).max() < MAX_MAGNITUDE:
            low, high = context[names_of[column]] = propose_range(known)
            seen = f"{format_number(float(known.min()))} to {format_number(float(known.max()))}"
            why = "fractions, or 0 and 1" if (low, high) == (0.0, 1.0) else f"observed {seen}, rounded outward"
            reasons[f"context.{names_of[column]}"] = why
        else:
            reasons[f"ignored.{column}"] = "it has one value in all rows, or values that no range can contain"
    for column, value in roles.limits.items():
        low, high, reasons[f"range.{names_of[column]}"] = get_outcome_range(roles, column, split)
        limits[names_of[column]] = Limit(
            low + 0.5 * (high - low) if value is None else value, low=low, high=high, model="rates"
        )
    low, high, reasons[f"range.{names_of[roles.reward]}"] = get_outcome_range(roles, roles.reward, split)
    reward = Reward(names_of[roles.reward], low=low, high=high)
    return Problem(
        action_names=roles.actions, safe_name=roles.safe, reward=reward, limits=limits, context=context, delta=delta
    )


def get_outcome_range(roles: Roles, column: str, split: Split) -> tuple[float, float, str]:
    """Return the range of a column's outcomes, and why."""
    values = roles.outcomes[column][split.selection]
    known = values[np.isfinite(values)]
    if not known.size or np.abs(known).max() > MAX_MAGNITUDE:
        template = "the column {column!r} has no outcomes, so no range can be proposed for it"
        raise InvalidOutcome(ErrorCode.LOG_EMPTY, template, column=column)
    low, high = float(known.min()), float(known.max())
    observed = f"{format_number(low)} to {format_number(high)}"
    if low < 0.0 or high > 1.0:
        ends = propose_range(np.array([min(low, 0.0), max(high, 0.0)]) if low == high else known)
        return *ends, f"OBSERVED {observed}, so decide: the guarantee relies on this range"
    if not np.isin(known, (0.0, 1.0)).all():
        return 0.0, 1.0, f"observed {observed}: fractions"
    rate = float(known.mean())
    natural = format_number((rate * (1.0 - rate)) ** 0.5)
    why = f"0 or 1: noise of 1/2 follows from this range; sqrt(p (1 - p)) = {natural} would void the guarantee"
    return 0.0, 1.0, why


def propose_range(known: Floats) -> tuple[float, float]:
    """Return a range for a number about users: [0, 1] for fractions, others with some padding, rounded outward."""
    low, high = float(known.min()), float(known.max())
    if low >= -1.0 and high <= 1.0:
        return (0.0 if low >= 0.0 else -1.0), 1.0
    room = PADDING * (high - low)
    span = high - low + 2.0 * room
    power = 10.0 ** math.floor(math.log10(max(span, 1e-300) / 10.0))
    step = next(power * each for each in (1.0, 2.0, 5.0, 10.0) if span <= 25.0 * power * each)  # ten to 25 steps
    ends = step * math.floor((low - room) / step), step * math.ceil((high + room) / step)
    bottom, top = (float(f"{end:.12g}") + 0.0 for end in ends)  # without rounding noise: three times .1 is .3
    return (0.0 if low >= 0.0 > bottom else bottom), top


def build_profile(arrays: Mapping[Any, Any], problem: Problem, names: Mapping[str, str]) -> LogProfile:
    mapping = {name: names.get(name, name) for name in ("action", *problem.signals, *problem.context_columns)}
    return LogProfile(Log.of(arrays, problem, columns=mapping), mapping)


def describe_number_leak(profile: LogProfile, index: int, alpha: float) -> str:
    """Return why a number counts as recorded after the decision; empty if it does not."""
    by_action = sort_by_action(profile.log.numbers[:, index], profile.log.actions)
    level = alpha / (len(profile.signals) * profile.log.numbers.shape[1])
    return describe_leak(profile, lambda signal: estimate_auc(by_action, signal, signal.observed, level))


# Divisions: columns of text that users may be divided by: known before the decision, for every user, with few values.


class Divisions(NamedTuple):
    """The columns that users may be divided by, and the categories that columns of text may be."""

    columns: dict[str, Groups]
    few: list[str]
    """Columns with few values and enough rows, by which users are divided unless rates are shown to be equal."""
    unfit: list[str]
    """Columns of text that a problem cannot divide users by."""
    categories: dict[str, Category]


def find_divisions(
    profile: LogProfile, texts: list[str], arrays: Mapping[Any, Any], alpha: float, reasons: dict[str, str]
) -> Divisions:
    """Return the columns that users may be divided by; `reasons` gets why others are left out."""
    divisions, found = Divisions({}, [], [], {}), find_text_columns(profile)
    level = alpha / (len(profile.signals) * max(len(found), 1))
    for column in [name for name in found if name in texts]:
        groups, entries = found[column], [to_text(entry) for entry in arrays[column].tolist()]
        if is_determined_by_action(groups.codes, profile.log.actions):
            reasons[f"ignored.{column}"] = OF_ACTION
            continue
        if why := describe_leak(profile, partial(estimate_group_auc, groups=groups.codes, p_value=level)):
            reasons[f"ignored.{column}"] = why
            continue
        is_named = (
            column not in RESERVED_NAMES and column.isprintable() and 0 < len(column.strip()) <= len(column) <= 100
        )
        category = propose_category(entries) if is_named else None
        if category is not None:
            divisions.categories[column] = category
        if None in entries or len(groups.names) > MAX_SEGMENTS or not is_named:
            divisions.unfit.append(column)
            if category is None:
                why = f"it has {len(groups.names):,} groups, missing values or a name that a problem cannot have"
                reasons[f"ignored.{column}"] = f"{why}, and no two values in {ROWS_PER_LEVEL} rows each"
        else:
            divisions.columns[column] = groups
            if len(groups.names) <= FEW_SEGMENTS and has_enough_rows(groups.codes, len(profile.by_action)):
                divisions.few.append(column)
    return divisions


def propose_category(entries: list[str | None]) -> Category | None:
    """Return a category of the most frequent values that have enough rows, the others together; None: too few."""
    counts = Counter(entry for entry in entries if entry is not None and len(entry) <= LONGEST_SEGMENT)
    order = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MOST_PROPOSED_LEVELS]
    levels = [level for level, count in order if count >= ROWS_PER_LEVEL]
    return Category(levels, other=True, missing=OTHER if None in entries else None) if len(levels) > 1 else None


def is_determined_by_action(groups: Ints, actions: Ints) -> bool:
    """Say whether all rows of every action are in one group, so the column describes the action."""
    return len(np.unique(np.column_stack([actions, groups]), axis=0)) == len(np.unique(actions))


def has_enough_rows(groups: Ints, actions: int) -> bool:
    sizes = np.bincount(groups)
    return bool(sizes[sizes >= ROWS_PER_CELL * actions].sum() >= MIN_COVERED_SHARE * groups.size)


# The models of the limits, the safe action's rates, and the rest of delta.


def complete_problem(
    profile: LogProfile,
    selected: Mapping[Any, Any],
    roles: Roles,
    split: Split,
    delta: float,
    divisions: Divisions,
    reasons: dict[str, str],
) -> tuple[Problem, dict[str, tuple[str, ...]]]:
    """Return the problem with models, safe rates, limits and the remaining delta, and the averaged columns by limit.

    If there are columns of text, half of the reading share of delta is for the statement that rates are equal; whether
    there are any does not depend on outcomes.
    """
    draft, columns = profile.log.problem, divisions.columns
    share = READING_SHARE * delta / len(draft.limits) / (2 if columns else 1)
    given = {cost.name: roles.limits[profile.columns[cost.name]] for cost in profile.costs}
    level = share / max(len(columns), 1)
    models = {cost.name: choose_limit_model(cost, divisions, given[cost.name], level) for cost in profile.costs}
    modelled = {
        name: replace(limit, by=models[name].by, model=models[name].model) for name, limit in draft.limits.items()
    }
    used = {column for limit in modelled.values() for column in limit.segment_columns}
    categories = {name: one for name, one in divisions.categories.items() if name not in used}
    for name in categories:
        reasons[f"context.{name}"] = f"the most frequent values with {ROWS_PER_LEVEL} rows or more"
    draft = replace(draft, context={**draft.context_columns, **categories})
    divided = build_profile(selected, replace(draft, limits=modelled), profile.columns)
    limits = {}
    for cost in divided.costs:
        reasons[f"model.{cost.name}"] = models[cost.name].why
        limit = set_safe_rate(cost, given[cost.name], share, reasons)
        limits[cost.name] = declare_drift(replace(cost, limit=limit), split, reasons) if "at" in selected else limit
    averaged = {name: model.averaged for name, model in models.items() if model.averaged}
    reasons |= {f"average.{name}": f"it holds on average over {join_names(over)}" for name, over in averaged.items()}
    reasons["delta"] = describe_delta(delta, limits, columns)
    ways = math.prod(model.ways for model in models.values()) if split.fraction == 1.0 else 1
    if ways > 1:
        choices = f"{ways:,}, the number of model choices made on rows that are also learned"
        reasons["delta"] += f", and the rest divided by {choices}"
    remaining = float(f"{(1.0 - READING_SHARE) * delta / ways:.3g}")
    norm_bound, why = estimate_norm_bound(divided, share)
    reasons |= {"norm_bound": why} if why else {}
    settings = {"norm_bound": norm_bound} if why else {}
    return replace(draft, limits=limits, delta=remaining, settings=settings), averaged


class LimitModel(NamedTuple):
    """The model of a limit, why it was chosen, and among how many."""

    why: str
    by: str | None
    linear: bool
    ways: int
    averaged: tuple[str, ...]
    """The columns of text that the limit holds on average over, where equal rates are not shown."""

    @property
    def model(self) -> Model | None:
        """The model as a limit declares it; a segment says it too."""
        return "linear" if self.linear else "rates" if self.by is None else None


def choose_limit_model(cost: Cost, divisions: Divisions, given: float | None, p_value: float) -> LimitModel:
    """Return the model of a limit: linear if a number has an effect, else by segment, else one rate per action.

    Users are divided by a column whose rates are shown to differ, and also by one with few values unless its rates are
    shown to be equal: few rows cannot show a difference that exists, and the limit would then hold on average only. Of
    several such columns the one with the smallest p-value is used, since a limit has one division. Rates count as equal
    within a share of the limit, or of the safe action's cost if no limit was given.
    """
    profile, columns = cost.profile, divisions.columns
    low = cost.limit.low
    margin = MARGIN_SHARE * ((cost.rate(profile.is_safe, 0.5).mean if given is None else given) - low)
    limit = low if given is None else given
    equal = {name: describe_equivalence(cost, groups, margin, limit, p_value) for name, groups in columns.items()}
    different = [column for column in columns if not equal[column]]
    undecided = (*different, *divisions.unfit)
    ways = 1 + len(columns) + bool(profile.log.problem.numbers)
    dependence, _ = measure_rate_dependence(cost)
    if dependence is not None and dependence.p_value <= get_selection_level(profile):
        return LimitModel(dependence.message, None, True, ways, undecided)
    extremes = {column: find_extreme_segment(cost, columns[column]) for column in different}
    p_values = {column: extreme.p_value * len(columns) * len(profile.costs) for column, extreme in extremes.items()}
    shown = {column for column in different if p_values[column] <= 0.5 * SELECTION_LEVEL}
    order = sorted(different, key=lambda column: p_values[column])
    best = next((column for column in order if column in shown or column in divisions.few), None)
    if best is None:
        numbers = (
            "no number has a visible effect" if profile.log.problem.numbers else "there are no numbers about users"
        )
        why = f"one rate per action: {numbers}"
        why += "".join(f"; {column!r}: {text}" for column, text in equal.items() if text)
    elif best in shown:
        extreme = extremes[best]
        where = f"in {columns[best].names[extreme.group]!r} it is {extreme.difference:+.2g} from elsewhere"
        why = f"rates differ by {best!r}: {where} (p-value {format_number(p_values[best])}, corrected)"
    else:
        why = (
            f"rates of an action are not shown to be equal (within {format_number(margin)}) in all groups of "
            f"{best!r}, so the limit is to hold in each"
        )
    return LimitModel(why, best, False, ways, tuple(column for column in undecided if column != best))


def describe_equivalence(cost: Cost, groups: Groups, margin: float, limit: float, p_value: float) -> str:
    """Return why users need not be divided by groups; empty if that is not shown.

    With probability 1 − p_value every action's mean in every group is in its interval. The means of an action are equal
    if its highest upper end is within the margin of its lowest lower end. A group without rows of an action has the
    whole range as its interval. If every upper end keeps the limit, no group can break it.
    """
    count = len(groups.names)
    level, widest, largest = p_value / (count * len(cost.profile.by_action)), 0.0, cost.ends[0]
    for _, rows in cost.profile.by_action:
        rates = [cost.rate(rows & (groups.codes == index), level) for index in range(count)]
        highest = max(rate.high for rate in rates)
        widest, largest = max(widest, highest - min(rate.low for rate in rates)), max(largest, highest)
    if largest <= limit:
        return f"no action is over {format_number(largest)} in any of {count} groups, so none is over the limit"
    if widest <= margin:
        allowed = f"within {format_number(widest)} of {format_number(margin)} allowed"
        return f"equal in all {count} groups of an action, {allowed}"
    return ""


def set_safe_rate(cost: Cost, given: float | None, share: float, reasons: dict[str, str]) -> Limit:
    """Return a limit with an upper bound on the safe action's cost, and a threshold if none was given.

    The interval is OPB's "kl", so it holds for every logging policy; with segments the largest one counts.
    """
    name, limit, problem, profile = cost.name, cost.limit, cost.profile.log.problem, cost.profile
    rates, span = [rate for _, rate in estimate_safe_rates(cost, share)], limit.high - limit.low
    bound = max((rate.high for rate in rates), default=limit.high)
    safe = limit.low + round_up((bound - limit.low) / span, 3) * span
    mean = max((rate.mean for rate in rates), default=limit.high)
    if given is None:
        overall, room = cost.rate(profile.is_safe, share), 1.0  # all segments: a limit is one number
        if rates:
            room = max(MEAN_FACTOR * (overall.mean - limit.low), BOUND_FACTOR * (overall.high - limit.low)) / span
        value = limit.low + min(max(round_up(room), MIN_DISTANCE), 1.0 - MIN_DISTANCE) * span
        why = f"PROPOSED, so decide: twice the cost of {problem.safe_name!r}, or 5/4 of its upper bound"
    else:
        value, why = given, "as given"
    reasons[f"limit.{name}"] = why
    has_unknown_segment = cost.by is not None and len(rates) < len(profile.segments[cost.by].names)
    if limit.model == "linear" or has_unknown_segment or not rates or not safe < value:
        why = "it differs by user" if limit.model == "linear" else f"{format_number(safe)} is the smallest upper bound"
        why = f"the log has no row of the safe action in some {cost.by!r}" if has_unknown_segment else why
        reasons[f"safe.{name}"] = f"left out, so the policy learns it first by playing the safe action: {why}"
        return replace(limit, value=value)
    where = f" in the most expensive of {len(rates)} segments; a new segment may cost more" if cost.by else ""
    bounds = f"an upper bound with error probability {format_number(share)}, a share of delta"
    reasons[f"safe.{name}"] = f"observed {format_number(mean)}{where}; {bounds}"
    return replace(limit, value=value, safe_bound=safe)


def declare_drift(cost: Cost, split: Split, reasons: dict[str, str]) -> Limit:
    """Return a limit with the drift that the selection rows suggest, if they show that a mean moved.

    A drift that is chosen from rows that are learned too would need a share of delta; then it is only named.
    """
    proposal = propose_drift(cost)
    if proposal is None:
        return cost.limit
    reasons[f"drift.{cost.name}"] = proposal.message
    declares = proposal.is_shown and proposal.is_learnable and split.fraction < 1.0
    return replace(cost.limit, drift=proposal.drift) if declares else cost.limit


def describe_delta(delta: float, limits: Mapping[str, Limit], columns: Mapping[str, Any]) -> str:
    """Return what the reading share of delta is for; it is reserved before the results are known."""
    read = "the safe action's rates" + (", and whether rates are equal in groups" if columns else "")
    text = f"of {format_number(delta)}; {format_number(READING_SHARE * delta)} pays for estimating {read}"
    if all(limit.safe_bound is None for limit in limits.values()):
        text += "; `safe_bound` is left out because of these estimates, so they are paid for in any case"
    return text


def estimate_norm_bound(profile: LogProfile, p_value: float) -> tuple[float, str]:
    """Return a bound on the norm of all linear parameters, and why; 1 if no fit is longer.

    A mean that is linear in numbers of [−1, 1] and stays in [0, 1] for all of them has a norm of at most 1. Ranges are
    rounded outward, and a line may leave [0, 1] where there are no users: then its norm is larger.
    """
    norms = [each for each in estimate_norms(profile, p_value) if max(each[2].fit, each[2].low) > 1.0]
    if not norms:
        return 1.0, ""
    signal, action, largest = max(norms, key=lambda each: each[2].high)
    return largest.high, (
        f"the mean of {signal!r} of {action!r} leaves its range somewhere in [context], where few users are: "
        f"its parameter may be as long as {format_number(largest.high)}; a narrower range makes it shorter"
    )


# The file that `Problem.load` reads, with a comment on the reason for each value.


def format_toml(proposal: Proposal) -> str:
    """Return the content of the file."""
    problem, why = proposal.problem, proposal.reasons
    lines = [to_comment(line) for line in format_header(proposal)]
    lines += [
        "",
        f"action_names = [{', '.join(map(to_toml_text, problem.action_names))}]",
        f"safe_name = {to_toml_text(problem.safe_name)}",
    ]
    lines += [f"delta = {to_toml_number(problem.delta)}  {to_comment(why['delta'])}", ""]
    lines += ["[context]"] * bool(problem.context)
    for name, column in problem.context_columns.items():
        comment = to_comment(why[f"context.{name}"])
        lines.append(f"{to_toml_key(name)} = {to_toml_value(encode_column(column))}  {comment}")
    prefix = "ignored."
    ignored = {name.removeprefix(prefix): text for name, text in why.items() if name.startswith(prefix)}
    lines += [to_comment(f"{name!r} is left out: {text}") for name, text in ignored.items()]
    lines += ["", "[reward]", f"name = {to_toml_text(problem.reward.name)}"]
    lines += format_range(problem.reward, why[f"range.{problem.reward.name}"])
    lines.append(to_comment('window = "12h" would count an outcome that is not reported in time as its low'))
    for name, limit in problem.limits.items():
        lines += ["", f"[limits.{to_toml_key(name)}]"]
        lines.append(f"at_most = {to_toml_number(get_threshold(limit)[0])}  {to_comment(why[f'limit.{name}'])}")
        comment = why[f"safe.{name}"]
        has_safe = limit.safe_bound is not None
        lines.append(
            f"safe_bound = {to_toml_number(limit.safe_bound)}  {to_comment(comment)}"
            if has_safe
            else f"# safe_bound: {comment}"
        )
        lines += format_range(limit, why[f"range.{name}"])
        by = limit.segment_columns
        model = f"model = {to_toml_text(str(limit.model))}" if not by else f"by = {to_toml_text(by[0])}"
        lines.append(f"{model}  {to_comment(why[f'model.{name}'])}; {problem.promises[name]}")
        lines += [to_comment(why[key]) for key in [f"average.{name}"] if key in why]
        if (drift := why.get(f"drift.{name}")) is not None:
            declared = "" if limit.drift is None else f"drift = {to_toml_text(str(limit.drift))}  "
            lines.append(declared + to_comment(drift if declared else f"no drift is declared; {drift}"))
    if problem.settings:
        norm_bound = to_toml_number(problem.settings["norm_bound"])
        lines += ["", "[settings]", f"norm_bound = {norm_bound}  {to_comment(why['norm_bound'])}"]
    return "\n".join(lines) + "\n"


def format_header(proposal: Proposal) -> list[str]:
    """Return the lines at the top of the file."""
    split, roles = proposal.split, proposal.roles
    selected, holdout = int(split.selection.sum()), int(split.holdout.sum())
    lines = [f"Proposed by stagewise doctor from {selected:,} rows: {split.rule}."]
    if split.fraction == 1.0:
        lines.append("The same rows will be learned, so the choices made from them are paid for out of delta, below.")
    else:
        lines.append(f"Learn from the other {holdout:,} rows only: these were used to choose the problem.")
    if roles.guessed:
        lines.append(f"Guessed, please check: {', '.join(roles.guessed)}.")
    if proposal.observed:
        outcomes = ", ".join(map(repr, proposal.observed))
        lines.append(f"Ranges taken from the log, please decide: low and high of {outcomes}.")
    if proposal.columns:
        options = " ".join(f"--columns {name}={column}" for name, column in proposal.columns.items())
        lines.append(f"Column mapping: {options}")
    return lines


def format_range(signal: Reward | Limit, why: str) -> list[str]:
    return [f"low = {to_toml_number(signal.low)}", f"high = {to_toml_number(signal.high)}  {to_comment(why)}"]


def to_toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else to_toml_text(name)


def to_toml_text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def to_toml_number(value: Any) -> str:
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def to_toml_value(value: Any) -> str:
    """Return a declared column as TOML, on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{to_toml_key(name)} = {to_toml_value(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(to_toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return to_toml_text(value) if isinstance(value, str) else to_toml_number(value)


def to_comment(text: str) -> str:
    return "# " + "".join(c if c.isprintable() else " " for c in text)
