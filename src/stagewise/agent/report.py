"""The report of an agent: traffic, rewards, limits and what comes next."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.agent_statistics import Statistics, describe_contexts
from stagewise.agent.changes import DriftingBound, format_bound, summarize_drifting_bounds
from stagewise.agent.decision_analysis import (
    WHOLE,
    DecisionAnalysis,
    ProposalSummary,
    Proposed,
    analyze_decision,
    classify_round,
    compute_pulls_needed,
    count_learned,
    estimate_plays_needed,
    summarize_proposals,
)
from stagewise.agent.observed_costs import LIMIT, ObservedCosts
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import SAFE_INDEX
from stagewise.models.segment_rates import RatesBlock, get_lowest_value
from stagewise.policies.policy import PolicyState
from stagewise.problem.columns import list_names_once
from stagewise.problem.division import ScoreDivision
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import align_columns, format_count, safe_repr
from stagewise.records.decision import Decision, to_json_value
from stagewise.records.explanation import Columns, render_html
from stagewise.records.reason import Contradiction, ReasonDetails

LEAST = as_python(get_lowest_value)
MAX_SEGMENTS = 12  # segments of a limit in a report: those with most outcomes


class SegmentSummary(NamedTuple):
    """One action in one segment, for a limit that holds in every segment."""

    limit: str
    by: str
    segment: str
    action: str
    outcomes: int  # learned from decisions and logs
    rate: float | None  # their mean; None without outcomes
    pessimistic_cost: float  # the upper bound (lower, for AtLeast)
    threshold: float


def iter_segment_parts(policy: Any, memory: Floats) -> Iterator[tuple[RatesBlock, Floats, Floats]]:
    """Yield every model block with segments: their hashes (S,), and the statistics (S, K, 3) of every action."""
    for model, part in policy.rounds.iter_blocks(memory):
        segments = model.diagnostics.segments(part, memory)
        if segments is not None:
            yield part, *segments


def summarize_segments(policy: Any, state: Any) -> tuple[SegmentSummary, ...]:
    """Return the rates in the segments of a problem's limits, those with most outcomes first."""
    if getattr(policy, "problem", None) is None:
        return ()
    summaries, thresholds, limits = [], policy.display_thresholds, list(policy.problem.limits)
    for part, numbers, statistics in iter_segment_parts(policy, state.memory):
        if part.first == 0:
            continue
        j, low = part.first - 1, float(LEAST(part, policy.settings))
        name = limits[j]
        division = policy.problem.get_division(name)
        order = np.argsort(-statistics[:, :, 0].sum(axis=1), kind="stable")[:MAX_SEGMENTS]
        for segment in (np.sort(order) if isinstance(division, ScoreDivision) else order).tolist():
            for action, (pulls, mean, most) in zip(policy.names, statistics[segment].tolist(), strict=True):
                rate = None if pulls == 0.0 else thresholds.to_user_unit(j, low + mean)
                labels = division.name, division.get_segment_name(int(numbers[segment])), action
                high = min(low + most, policy.declared_costs[j]) if action == policy.problem.safe_name else low + most
                cost, threshold = thresholds.to_user_unit(j, high), float(thresholds.values[j])
                summaries.append(SegmentSummary(name, *labels, int(pulls), rate, cost, threshold))
    return tuple(summaries)


def list_segment_names(policy: Any, memory: Floats, *rows: Floats) -> list[str]:
    """Return the names of all segments of a memory and of decisions' rows, for a file; keys do not contain them."""
    if policy.problem is None:
        return []
    names, divisions, signals = set[str](), policy.problem.divisions, list(policy.problem.signals)
    for part, keys, _ in iter_segment_parts(policy, memory):
        names |= policy.problem.get_division(signals[part.first]).list_names(keys)
    for place, division in enumerate(divisions):
        for some in rows:
            names |= division.list_names(some[:, policy.first_segment + place])
    return sorted(names)


CERTIFIED, ABOVE_LIMIT, NOT_PLAYED = "certified", "its estimate is beyond a limit", "not played at present"
TOO_FEW_OUTCOMES = "too few outcomes"


class Interval(NamedTuple):
    """An estimate and its interval, with the agent's probability 1 − δ."""

    estimate: float
    low: float
    high: float


class LimitSummary(NamedTuple):
    """One limit and the costs of recent rounds."""

    name: str
    threshold: float
    estimated_cost: float  # expected cost of a recent round
    worst_pessimistic_cost: float  # the largest (smallest, for AtLeast) of any recent round
    margin: float  # limit minus pessimistic cost
    observed_mean: float | None = None  # the mean of reported costs over all decisions; a missing cost counts as 0
    decision_count: int = 0  # the number of these decisions
    promise: str = ""  # to whom it is promised, in words


class ActionSummary(NamedTuple):
    """One action: its share of the traffic, its reward, and what it needs to be certified."""

    name: str
    share: float  # of all rounds this agent decided and that were carried out
    recent_share: float  # of the recent rounds: its probability in them, or whole rounds
    reward: Interval | None
    certified: bool | None
    rounds_to_certify: float | None  # at the recent rate, with constant means; None: see the note
    certification_note: str


@dataclass(frozen=True)
class Report:
    """The report of an agent; `print` shows a table, `to_dict` is for JSON."""

    rounds: int
    recent_rounds: int  # the number of recent decisions
    safe_only_rounds: int  # rounds in which only the safe action could be played
    recent_exploring_share: float | None  # shares of the recent rounds
    recent_exploiting_share: float | None
    recent_safe_share: float | None
    reward: Interval | None
    safe_reward: Interval | None
    reward_gain: Interval | None  # the difference of the two
    limits: tuple[LimitSummary, ...]
    actions: tuple[ActionSummary, ...]
    reward_name: str = "reward"
    cancelled: int = 0  # rounds that were not carried out
    segments: tuple[SegmentSummary, ...] = ()  # for limits that hold in every segment
    proposals: tuple[ProposalSummary, ...] = ()  # what became of each action that callers proposed
    drifting: tuple[DriftingBound, ...] = ()  # bounds of limits with a drift: their age, changes, and recovery
    clipped: Mapping[str, int] = field(default_factory=dict)  # values beyond their range that count as its end
    refused_log_rows: int = 0  # rows of logs that were left out because of their context
    alerts: Mapping[str, ReasonDetails] = field(default_factory=dict)  # why every decision is the safe action, if so

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON holds it; None for values that are unknown or not finite."""
        content, lists = encode_record(vars(self)), ("limits", "actions", "segments", "proposals", "drifting")
        content |= {name: [encode_record(one._asdict()) for one in getattr(self, name)] for name in lists}
        return content | {"alerts": {name: cause.to_json() for name, cause in self.alerts.items()}}

    def __str__(self) -> str:
        parts = [
            [part] if isinstance(part, str) else align_columns([part.titles, *part.rows], part.right)
            for part in list_parts(self)
        ]
        return "\n".join(line for lines in parts for line in lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it."""
        return render_html(*list_parts(self))


def encode_record(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record of a report as JSON holds them."""
    return {
        name: encode_record(value._asdict()) if isinstance(value, Interval) else to_json_value(value)
        for name, value in fields.items()
    }


def build_report(
    policy: Any, state: PolicyState, statistics: Statistics, names: Any = None, observed: ObservedCosts | None = None
) -> Report:
    """Return the report of an agent; `names` are those of the listed actions, in order."""
    rounds, recent = sum(statistics.plays.values()) + statistics.cancelled, list(statistics.recent)
    views = [analyze_decision(decision, state.memory) for decision in recent]
    shares: list[float | None] = [None, None, None]
    if views:
        shares_by_round = [
            classify_round(view, decision._position) for view, decision in zip(views, recent, strict=True)
        ]
        shares = [float(share) for share in np.mean(shares_by_round, axis=0)]
    units = getattr(policy, "reward_span", (0.0, 1.0))
    is_learned = not getattr(policy, "first_reported", 0)
    reward, safe, gain = estimate_rewards(views if is_learned else [], units)
    actions = summarize_actions(state, statistics, views, recent, names, units)
    return Report(
        rounds,
        len(recent),
        statistics.safe_only_rounds,
        shares[0],
        shares[1],
        shares[2],
        reward,
        safe,
        gain,
        summarize_limits(policy, views, recent, observed),
        actions if is_learned else tuple(action._replace(reward=None) for action in actions),
        getattr(policy, "reward_name", "reward"),
        statistics.cancelled,
        summarize_segments(policy, state),
        summarize_proposals(
            policy, state.memory, iter_proposed(policy, statistics), len(recent) + len(statistics.registered)
        ),
        summarize_drifting_bounds(policy, state.memory),
        dict(statistics.clipped),
        statistics.refused_log_rows,
        statistics.open_alerts,
    )


def iter_proposed(policy: Any, statistics: Statistics) -> Iterator[Proposed]:
    """Yield the recent decisions on a proposal, those of this agent and those that it registered."""
    for one in statistics.registered:
        if one is not None:
            yield Proposed(policy.rows_for(policy.context_in(one.row)), one.weights, one.probabilities)
    for decision in statistics.recent:
        proposal, result = decision._proposal, decision._round_result
        if proposal is not None and result is not None and not proposal.is_scores:
            probabilities: Any = decision[3]
            yield Proposed(result.features, proposal.values, probabilities[:-1])


def estimate_rewards(
    views: list[DecisionAnalysis], units: tuple[float, float]
) -> tuple[Interval | None, Interval | None, Interval | None]:
    """Return the reward of recent rounds, that of the safe action, and the difference, each with its interval."""
    if not views:
        return None, None, None
    now = np.array([[view.weights @ row[0] for row in (view.fit, view.centre, view.half)] for view in views]).mean(
        axis=0
    )
    safe = np.array([[row[0, -1] for row in (view.fit, view.centre, view.half)] for view in views]).mean(axis=0)
    gains = [
        [view.weights @ (view.fit[0] - view.fit[0, -1]), view.weights @ (view.centre[0] - view.centre[0, -1]),
         view.weights[:-1] @ view.half[0, :-1]
         + (1.0 - view.weights[-1]) * view.half[0, -1]]
        for view in views
    ]  # fmt: skip
    gain = np.array(gains).mean(axis=0)
    return build_interval(now, units), build_interval(safe, units), build_interval(gain, (0.0, units[1]))


def build_interval(values: Any, units: tuple[float, float]) -> Interval:
    """Return an estimate, a centre and a half-width in [0, 1] as an interval in the user's units."""
    (estimate, centre, half), (low, length) = values, units
    return Interval(*(low + length * float(value) for value in (estimate, centre - half, centre + half)))


def summarize_limits(
    policy: Any, views: list[DecisionAnalysis], recent: list[Decision], observed: ObservedCosts | None
) -> tuple[LimitSummary, ...]:
    if not views:
        return ()
    summaries, thresholds = [], policy.display_thresholds
    promises = dict(zip(thresholds.names, thresholds.promises, strict=False))
    for j, (name, sign, value) in enumerate(zip(thresholds.names, thresholds.signs, thresholds.values, strict=True)):
        estimate = thresholds.to_user_unit(j, float(np.mean([view.weights @ view.fit[1 + j] for view in views])))
        largest = sign * max(sign * float(decision.pessimistic_cost[j]) for decision in recent)
        count, mean = (0, 0.0) if observed is None else observed.summarize(LIMIT, j)
        so_far = thresholds.to_user_unit(j, mean if sign > 0.0 else mean - 1.0) if count else None
        margin, promise = float(sign * (value - largest)), promises.get(name, "")
        summaries.append(LimitSummary(name, float(value), estimate, largest, margin, so_far, count, promise))
    return tuple(summaries)


def summarize_actions(
    state: PolicyState,
    statistics: Statistics,
    views: list[DecisionAnalysis],
    recent: list[Decision],
    names: Any,
    units: tuple[float, float],
) -> tuple[ActionSummary, ...]:
    """Return the share of every listed action, and what it needs to be certified; the safe action is last."""
    total = max(sum(statistics.plays.values()), 1)
    last = recent[-1]._round_result if recent else None
    safe_index = int(last.layout[SAFE_INDEX]) if last is not None else -1
    action_count = 1 + max(statistics.plays, default=-1)
    count = len(last.features) if last is not None else max(action_count, 0 if names is None else len(list(names)))
    labels = build_labels(names, count, "arm" if safe_index >= 0 else "action")
    weights = compute_recent_weights(views, recent, count)
    rows = []
    for i in range(count):
        if i == safe_index:
            continue
        share = statistics.plays.get(i, 0) / total
        if last is None or len(views[-1].weights) != count + 1:
            rows.append(ActionSummary(labels[i], share, 0.0, None, None, None, "no recent decision"))
            continue
        view = views[-1]
        needs = estimate_certification(
            view, last, state.memory, statistics, i, float(weights[i]) * statistics.execution_rate
        )
        rows.append(
            ActionSummary(labels[i], share, float(weights[i]), build_interval(get_reward(view, i), units), *needs)
        )
    safe = build_interval(get_reward(views[-1], -1), units) if views else None
    label = labels[safe_index] if safe_index >= 0 and names is not None else "safe action"
    share = statistics.plays.get(safe_index, 0) / total
    rows.append(ActionSummary(label, share, float(weights[-1]), safe, True, 0.0, CERTIFIED))
    return tuple(rows)


def get_reward(view: DecisionAnalysis, index: int) -> tuple[float, float, float]:
    """Return a candidate's reward: the estimate, and the centre and half-width of its interval."""
    return view.fit[0, index], view.centre[0, index], view.half[0, index]


def compute_recent_weights(views: list[DecisionAnalysis], recent: list[Decision], count: int) -> Floats:
    """Return the share (K + 1,) of recent rounds of each action: by probability, or whole rounds on rays."""
    weights = np.zeros(count + 1)
    for view, decision in zip(views, recent, strict=True):
        if view.weights.size != count + 1:
            continue
        if view.mixes:
            weights += view.weights / len(views)
        else:
            weights[decision._position] += 1.0 / len(views)
    return weights


def estimate_certification(
    view: DecisionAnalysis, round_result: Any, memory: Floats, statistics: Statistics, index: int, rate: float
) -> tuple[bool, float | None, str]:
    """Return whether an action is certified, in how many rounds it will be at this rate, or why that is unknown."""
    if np.all(view.pessimistic_cost[:, index] <= view.limits):
        return True, 0.0, CERTIFIED
    more = compute_pulls_needed(round_result, memory, index, view.limits)
    counted = more is not None
    if more is None:
        learned = count_learned(round_result, memory, index)  # else every decision is taken for an outcome
        counts = np.full(view.limits.size, float(statistics.plays.get(index, 0))) if learned is None else learned
        more = estimate_plays_needed(view, counts, index)
    if math.isinf(more):
        unsure = np.all(view.centre[1:, index] - view.half[1:, index] <= view.limits)
        return False, None, TOO_FEW_OUTCOMES if unsure and not counted else ABOVE_LIMIT
    more = max(more, 1.0)
    if rate <= 0.0 or math.isinf(more / rate):
        return False, None, f"{NOT_PLAYED}; about {format_count(more, 'more play')} would do"
    return False, math.ceil(more / rate), "at the recent rate, with means as they are"


def build_labels(names: Any, count: int, word: str) -> list[str]:
    if names is None:
        return [f"{word} {i}" for i in range(count)]
    listed = list_names_once(names)
    if len(listed) != count:
        template = "names is {names}; it must list the names of {count} actions, each once"
        raise InvalidProblem(ErrorCode.WRONG_TYPE, template, names=safe_repr(names), count=count)
    return [str(name) for name in listed]


def format_alert(name: str, cause: ReasonDetails) -> list[str]:
    """Return why every decision is the safe action, and what a person can do."""
    lines = [
        f"stopped by {name!r}: {cause.message}",
        f"to go on with all that was learned: acknowledge_alert({name!r}, note)",
    ]
    if cause.details.get("found") == Contradiction.DRIFT:
        lines.append("where means may change: Limit(drift=...), by which a new agent holds back one action alone")
    return lines


def format_header(report: Report) -> list[str]:
    """Return the sentences above a report's tables."""
    cancelled = f", {report.cancelled:,} not carried out" if report.cancelled else ""
    rounds = format_count(report.rounds, "round")
    first = f"{rounds} decided, {report.safe_only_rounds:,} of them the safe action alone{cancelled}"
    contexts = describe_contexts(report.clipped, report.refused_log_rows)
    first += f"; {contexts}" if contexts else ""
    stops = [line for name, cause in report.alerts.items() for line in format_alert(name, cause)]
    if not report.recent_rounds:
        return [first, *stops, "no recent decision: none since the agent was created or loaded, or of too many actions"]
    named = {
        "exploring": report.recent_exploring_share,
        "exploiting": report.recent_exploiting_share,
        "safe": report.recent_safe_share,
    }
    shares = [f"{name} {share:.1%}" for name, share in named.items()]
    return [first, *stops, f"of the last {format_count(report.recent_rounds, 'round')}: {', '.join(shares)}"]


def format_reward(action: ActionSummary) -> str:
    return "" if action.reward is None else "{:z.4f} ({:z.4f}, {:z.4f})".format(*action.reward)


def format_certification(report: Report, action: ActionSummary) -> str:
    """Return whether an action is certified, or when it will be."""
    if action.certified:
        return "yes"
    if any(one.action == action.name for one in report.proposals):  # its rate rises until it is played whole
        return "see below"
    rounds = action.rounds_to_certify
    return f"in {format_count(rounds, 'round')}" if rounds else action.certification_note


def list_parts(report: Report) -> list[str | Columns]:
    """Return the report as lines of text and tables."""
    lines: list[str | Columns] = [*format_header(report)]
    if not report.recent_rounds:
        drifting = map(format_bound, report.drifting)
        return [*lines, *drifting, *format_proposals(report.proposals), *format_segments(report.segments)]
    now = f"{report.reward_name} now"
    for title, interval in ((now, report.reward), ("safe action", report.safe_reward), ("gain", report.reward_gain)):
        if interval is not None:
            between = f"between {interval.low:z.4f} and {interval.high:z.4f}"
            lines.append(f"{title:<{max(len(now), 12)}} {interval.estimate:z.4f}, {between}")
    for limit in report.limits:
        lines.append(
            f"{limit.name}: estimate {limit.estimated_cost:z.4f}, pessimistic {limit.worst_pessimistic_cost:z.4f}, "
            f"limit {limit.threshold:g}, margin {limit.margin:z.4f}"
            + (f", {limit.promise}" if limit.promise else "")
            + (
                ""
                if limit.observed_mean is None
                else f"; observed {limit.observed_mean:z.4f} over {format_count(limit.decision_count, 'decision')}"
            )
        )
    lines += map(format_bound, report.drifting)
    is_learned = any(one.reward is not None for one in report.actions)
    titles, rows = ("action", "  share", " recent", *([f"{report.reward_name:>24}"] * is_learned), "certified"), []
    for one in report.actions:
        reward = [format_reward(one)] * is_learned
        shares = f"{one.share:.1%}", f"{one.recent_share:.1%}"
        rows.append((one.name, *shares, *reward, format_certification(report, one)))
    lines.append(Columns(titles, rows, right=range(1, 3 + is_learned)))
    return [*lines, *format_proposals(report.proposals), *format_segments(report.segments)]


def format_proposals(proposals: tuple[ProposalSummary, ...]) -> list[Columns]:
    """Return what became of each proposed action."""
    if not proposals:
        return []
    rows = [(one.action, f"{one.proposed:.1%}", f"{one.overlap:.1%}", format_whole(one)) for one in proposals]
    return [Columns(("proposed", "  asked", " played", "whole"), rows, right=(1, 2))]


def format_whole(one: ProposalSummary) -> str:
    """Return when a proposed action is played whole, or why that is unknown."""
    if not one.plays_until_whole or not one.decisions_until_whole:
        return "yes" if one.note == WHOLE else one.note
    more, rounds = format_count(one.plays_until_whole, "play"), format_count(one.decisions_until_whole, "round")
    return f"in {more}, about {rounds}"


def format_segments(segments: tuple[SegmentSummary, ...]) -> list[str]:
    """Return the observed rate and the pessimistic cost of each action and segment, as lines."""
    lines, heads = [], dict.fromkeys((one.limit, one.by, one.threshold) for one in segments)
    for name, by, threshold in heads:
        lines.append(f"{name} by {by}, limit {threshold:g}: seen, and at worst")
        rows: dict[str, list[str]] = {}
        for one in segments:
            if one.limit == name and one.rate is not None:
                entry = f"{one.action} {one.rate:z.4f}, {one.pessimistic_cost:z.4f}"
                rows.setdefault(one.segment, []).append(f"{entry} ({format_count(one.outcomes)})")
        lines += align_columns([(f"  {segment}", "; ".join(entries)) for segment, entries in rows.items()])
    return lines
