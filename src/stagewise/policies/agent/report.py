"""What people ask of an agent: where its traffic goes, what it earns, what room its limits have, what comes next."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import HOME
from stagewise.policies.agent.by_segment import SegmentNow, segments_now
from stagewise.policies.agent.notes import Notes
from stagewise.policies.agent.outlook import Outlook, kinds, learned_of, needed_of, outlook, pulls_needed
from stagewise.policies.agent.told import LIMIT, ToldCosts
from stagewise.policies.policy import State
from stagewise.problem.columns import distinct
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import several, shown
from stagewise.records.decision import Decision, plain
from stagewise.records.html import html_table, page_of

CERTIFIED, DEAR, IDLE = "certified", "its estimate is beyond a limit", "not played at present"
UNSURE = "too little was seen of it to tell"


class Span(NamedTuple):
    """A mean and where it lies, with the agent's own probability 1 − δ."""

    estimate: float
    low: float
    high: float


class LimitNow(NamedTuple):
    """One limit and what recent rounds leave of it."""

    name: str
    threshold: float
    estimate: float  # expected cost of a recent round
    dearest: float  # the highest plausible (lowest, for AtLeast) of any recent round
    slack: float  # what that leaves
    told: float | None = None  # the mean of all decisions so far, what is not told yet counting as nothing
    decisions: int = 0  # how many these are


class ActionNow(NamedTuple):
    """One action: its share of the traffic, what it earns, and what it needs to be certified."""

    name: str
    share: float  # of all rounds this agent decided and that were carried out
    recent: float  # of the recent ones, or its probability in them
    reward: Span | None
    certified: bool | None
    rounds: float | None  # until it is certified, at the recent rate and with means as they are; None: see `why`
    why: str


class Report(NamedTuple):
    """The answers; `print` shows a table, `plain` is for JSON, `sw.draw_report` makes a picture."""

    rounds: int
    recent: int  # decisions that "recent" and "now" rest on
    stays: int  # rounds in which the safe action was played alone
    exploring: float | None  # shares of the recent rounds
    exploiting: float | None
    safe: float | None
    reward: Span | None
    safe_reward: Span | None
    gain: Span | None  # the first less the second
    limits: tuple[LimitNow, ...]
    actions: tuple[ActionNow, ...]
    reward_name: str = "reward"
    withdrawn: int = 0  # of the rounds: decided and not carried out
    segments: tuple[SegmentNow, ...] = ()  # of limits that hold in every segment

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON holds it; None for what is not known, or not finite."""
        told = entry(self)
        told |= {name: [entry(one) for one in getattr(self, name)] for name in ("limits", "actions", "segments")}
        return told

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it."""
        return html_of(self)


def html_of(report: Report) -> str:
    """Return the report as HTML: its sentences, then what is earned, each limit, and each action."""
    first, *rest = report_head(report)
    if not report.recent:
        return page_of("\n".join([first, *rest]), *segment_lines(report.segments))
    named = ((report.reward_name, report.reward), ("safe action", report.safe_reward), ("gain", report.gain))
    earned = [[name, *(f"{value:z.4f}" for value in told)] for name, told in named if told is not None]
    limits = [[one.name, *(f"{x:z.4f}" for x in (one.estimate, one.dearest, one.threshold))] for one in report.limits]
    actions = [
        [one.name, f"{one.share:.1%}", f"{one.recent:.1%}", earned_by(one), certified_when(one)]
        for one in report.actions
    ]
    return page_of(
        "\n".join([first, *rest]),
        html_table(["now", "estimate", "low", "high"], earned),
        html_table(["limit", "estimate", "pessimistic", "limit"], limits),
        html_table(["action", "share", "recent", report.reward_name, "certified"], actions),
        *segment_lines(report.segments),
    )


def entry(record: Any) -> dict[str, Any]:
    """Return a record of a report as JSON holds it."""
    held = record._asdict()
    return {name: entry(value) if isinstance(value, Span) else plain(value) for name, value in held.items()}


def report_of(
    policy: Any, state: State, notes: Notes, names: Any = None, told_costs: ToldCosts | None = None
) -> Report:
    """Return the report of an agent; `names` are those of the listed actions, in their order."""
    rounds, recent = sum(notes.plays.values()) + notes.withdrawn, list(notes.recent)
    views = [outlook(decision, state.memory) for decision in recent]
    shares: list[float | None] = [None, None, None]
    if views:
        told = [kinds(view, decision.index) for view, decision in zip(views, recent, strict=True)]
        shares = [float(share) for share in np.mean(told, axis=0)]
    units = getattr(policy, "reward_span", (0.0, 1.0))
    reward, safe, gain = rewards(views, units)
    return Report(
        rounds,
        len(recent),
        notes.stays,
        shares[0],
        shares[1],
        shares[2],
        reward,
        safe,
        gain,
        limits_now(policy, views, recent, told_costs),
        actions_now(state, notes, views, recent, names, units),
        getattr(policy, "reward_name", "reward"),
        notes.withdrawn,
        segments_now(policy, state),
    )


def rewards(views: list[Outlook], units: tuple[float, float]) -> tuple[Span | None, Span | None, Span | None]:
    """Return what recent rounds earn, what the safe action does, and the difference, each with its interval."""
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
    return span(now, units), span(safe, units), span(gain, (0.0, units[1]))


def span(told: Any, units: tuple[float, float]) -> Span:
    """Return an estimate, a centre and a half-width in [0, 1] as a mean with its interval, in the user's units."""
    (estimate, centre, half), (low, length) = told, units
    return Span(*(low + length * float(value) for value in (estimate, centre - half, centre + half)))


def limits_now(
    policy: Any, views: list[Outlook], recent: list[Decision], told: ToldCosts | None
) -> tuple[LimitNow, ...]:
    """Return each limit beside the costs of recent rounds."""
    if not views:
        return ()
    found, thresholds = [], policy.presented
    for j, (name, sign, value) in enumerate(zip(thresholds.names, thresholds.signs, thresholds.values, strict=True)):
        estimate = thresholds.in_unit(j, float(np.mean([view.weights @ view.fit[1 + j] for view in views])))
        dearest = sign * max(sign * float(decision.dearest[j]) for decision in recent)
        count, mean = (0, 0.0) if told is None else told.seen(LIMIT, j)
        so_far = thresholds.in_unit(j, mean if sign > 0.0 else mean - 1.0) if count else None
        found.append(LimitNow(name, float(value), estimate, dearest, float(sign * (value - dearest)), so_far, count))
    return tuple(found)


def actions_now(
    state: State, notes: Notes, views: list[Outlook], recent: list[Decision], names: Any, units: tuple[float, float]
) -> tuple[ActionNow, ...]:
    """Return the share of every listed action, and what it needs to be certified; the safe action comes last."""
    total = max(sum(notes.plays.values()), 1)
    last = recent[-1]._seen if recent else None
    home = int(last.layout[HOME]) if last is not None else -1
    known = 1 + max(notes.plays, default=-1)
    count = len(last.features) if last is not None else max(known, 0 if names is None else len(list(names)))
    labels = labels_of(names, count, "arm" if home >= 0 else "action")
    weights = recent_weights(views, recent, count)
    rows = []
    for i in range(count):
        if i == home:
            continue
        share = notes.plays.get(i, 0) / total
        if last is None or len(views[-1].weights) != count + 1:
            rows.append(ActionNow(labels[i], share, 0.0, None, None, None, "no recent decision"))
            continue
        view = views[-1]
        needs = what_is_needed(view, last, state.memory, notes, i, float(weights[i]) * notes.carried_out)
        rows.append(ActionNow(labels[i], share, float(weights[i]), span(reward_at(view, i), units), *needs))
    safe = span(reward_at(views[-1], -1), units) if views else None
    label = labels[home] if home >= 0 and names is not None else "safe action"
    share = notes.plays.get(home, 0) / total
    rows.append(ActionNow(label, share, float(weights[-1]), safe, True, 0.0, CERTIFIED))
    return tuple(rows)


def reward_at(view: Outlook, place: int) -> tuple[float, float, float]:
    """Return what is believed of a candidate's reward: the estimate, and the centre and half-width of its interval."""
    return view.fit[0, place], view.centre[0, place], view.half[0, place]


def recent_weights(views: list[Outlook], recent: list[Decision], count: int) -> Floats:
    """Return how much of the recent rounds each action had (K + 1,): by probability, or whole rounds on rays."""
    weights = np.zeros(count + 1)
    for view, decision in zip(views, recent, strict=True):
        if view.weights.size != count + 1:
            continue
        if view.mixes:
            weights += view.weights / len(views)
        else:
            weights[decision.index] += 1.0 / len(views)
    return weights


def what_is_needed(
    view: Outlook, seen: Any, memory: Floats, notes: Notes, index: int, rate: float
) -> tuple[bool, float | None, str]:
    """Return whether an action is certified, in how many rounds it will be at this rate, or why that cannot be said."""
    if np.all(view.dearest[:, index] <= view.limits):
        return True, 0.0, CERTIFIED
    more = pulls_needed(seen, memory, index, view.limits)
    counted = more is not None
    if more is None:
        learned = learned_of(seen, memory, index)  # else every decision is taken for an outcome
        counts = np.full(view.limits.size, float(notes.plays.get(index, 0))) if learned is None else learned
        more = needed_of(view, counts, index)
    if math.isinf(more):
        unsure = np.all(view.centre[1:, index] - view.half[1:, index] <= view.limits)
        return False, None, UNSURE if unsure and not counted else DEAR
    more = max(more, 1.0)
    if rate <= 0.0:
        return False, None, f"{IDLE}; about {several(more, 'more play')} would do"
    return False, math.ceil(more / rate), "at the recent rate, with means as they are"


def labels_of(names: Any, count: int, word: str) -> list[str]:
    """Return the names of the listed actions."""
    if names is None:
        return [f"{word} {i}" for i in range(count)]
    listed = distinct(names)
    if len(listed) != count:
        raise InvalidProblem(f"names is {shown(names)}; it must list the name of each of {count} actions once")
    return [str(name) for name in listed]


def report_head(report: Report) -> list[str]:
    """Return the sentences above a report's tables."""
    undone = f", {report.withdrawn:,} not carried out" if report.withdrawn else ""
    first = f"{several(report.rounds, 'round')} decided, {report.stays:,} of them the safe action alone{undone}"
    if not report.recent:
        none = "there is no recent decision to tell more from: none since it was made or loaded, or of too many actions"
        return [first, none]
    shares = [f"{name} {getattr(report, name):.1%}" for name in ("exploring", "exploiting", "safe")]
    return [first, f"of the last {several(report.recent, 'round')}: {', '.join(shares)}"]


def earned_by(action: ActionNow) -> str:
    """Return what an action earns, with its interval."""
    return "" if action.reward is None else "{:z.4f} ({:z.4f}, {:z.4f})".format(*action.reward)


def certified_when(action: ActionNow) -> str:
    """Return whether an action is certified, or when it will be."""
    return "yes" if action.certified else f"in {several(action.rounds, 'round')}" if action.rounds else action.why


def lines_of(report: Report) -> list[str]:
    """Return the report as lines of text."""
    lines = report_head(report)
    if not report.recent:
        return [*lines, *segment_lines(report.segments)]
    now = f"{report.reward_name} now"
    for title, told in ((now, report.reward), ("safe action", report.safe_reward), ("gain", report.gain)):
        if told is not None:
            between = f"between {told.low:z.4f} and {told.high:z.4f}"
            lines.append(f"{title:<{max(len(now), 12)}} {told.estimate:z.4f}, {between}")
    for limit in report.limits:
        lines.append(
            f"{limit.name}: estimate {limit.estimate:z.4f}, pessimistic {limit.dearest:z.4f}, "
            f"limit {limit.threshold:g}, slack {limit.slack:z.4f}"
            + (
                ""
                if limit.told is None
                else f"; told so far {limit.told:z.4f} over {several(limit.decisions, 'decision')}"
            )
        )
    wide = max([6, *(len(action.name) for action in report.actions)])
    earned = [earned_by(one) for one in report.actions]
    wider = max([24, len(report.reward_name), *map(len, earned)])
    lines.append(f"{'action':<{wide}}  {'share':>7}  {'recent':>7}  {report.reward_name:>{wider}}  certified")
    for action, reward in zip(report.actions, earned, strict=True):
        shares = f"{action.share:>7.1%}  {action.recent:>7.1%}"
        lines.append(f"{action.name:<{wide}}  {shares}  {reward:>{wider}}  {certified_when(action)}")
    return [*lines, *segment_lines(report.segments)]


def segment_lines(segments: tuple[SegmentNow, ...]) -> list[str]:
    """Return what was seen of a limit's actions in each segment, and what is the worst that is plausible, as lines."""
    lines, heads = [], dict.fromkeys((one.limit, one.by, one.threshold) for one in segments)
    for name, by, threshold in heads:
        lines.append(f"{name} by {by}, limit {threshold:g}: seen, and at worst")
        rows: dict[str, list[str]] = {}
        for one in segments:
            if one.limit == name and one.rate is not None:
                told = f"{one.action} {one.rate:z.4f}, {one.dearest:z.4f}"
                rows.setdefault(one.segment, []).append(f"{told} ({several(one.outcomes)})")
        wide = max(map(len, rows), default=0)
        lines += [f"  {segment:<{wide}}  {'; '.join(told)}" for segment, told in rows.items()]
    return lines
