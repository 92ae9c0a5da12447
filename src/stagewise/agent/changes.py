"""Means that drift: the changes that the kernels find, and the bounds of limits, their age, and what comes next.

The cell of an action whose mean has moved further than declared has forgotten what is older, so that its action is held
back and recovers by itself (docs/theory/drift.md, Theorem 2). A change is a warning, or, with `on_jump="stop"`, an
alert.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stagewise.agent.agent_statistics import Statistics
from stagewise.agent.health_findings import Check, format_finding_name
from stagewise.engine.compile import Floats
from stagewise.models.diagnostics import AgedBound, FoundChange, build_contradiction
from stagewise.problem.checks import check_choice
from stagewise.problem.division import name_segment
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.timing import DAY, LATEST, parse_timestamp
from stagewise.records.reason import Contradiction, ReasonDetails

CHECK_EVERY = 64  # updates


def record_changes(policy: Any, memory: Floats, statistics: Statistics) -> None:
    """Record the last change of every limit that drifts, and schedule the next look."""
    if not getattr(policy, "moduli", ()):
        return
    statistics.updates_until_check = min(statistics.updates_until_check, CHECK_EVERY)
    for j, limit in enumerate(policy.thresholds.names):
        name, last = format_finding_name(Check.CHANGE, limit), find_last_change(policy, memory, j)
        if last is None:
            continue
        cause = build_change_cause(policy, j, last)
        stops = policy.problem is not None and policy.problem.limits[limit].on_jump == "stop"
        found = statistics.alerts if stops and policy.check_assumptions else statistics.warnings
        if name not in found or identify_change(found[name]) != identify_change(cause):
            statistics.acknowledged.pop(name, None)  # what was acknowledged was another change
            limited = policy.thresholds.signs[j] * policy.thresholds.values[j]
            explains = not (last.fell and last.mean <= limited)  # what fell below the limit explains no costs
            statistics.changed |= {limit} if explains and not stops else set()
        found[name] = cause


def identify_change(cause: ReasonDetails) -> tuple[Any, ...]:
    """Return what distinguishes a change from another one of its limit; its mean moves with every outcome."""
    return tuple(cause.details.get(name) for name in ("action", "segment", "since"))


def find_last_change(policy: Any, memory: Floats, j: int) -> FoundChange | None:
    """Return the last change that was found of a limit's means; None: there is none."""
    model, block = next(one for one in policy.rounds.iter_blocks(memory) if one[1].first == 1 + j)
    return max(model.diagnostics.list_changes(block, policy.settings, memory), key=lambda one: one.since, default=None)


def build_change_cause(policy: Any, j: int, last: FoundChange) -> ReasonDetails:
    """Return a change in the user's units."""
    limit = policy.thresholds.names[j]
    modulus = policy.moduli[limit]
    return build_contradiction(
        Contradiction.CHANGE, policy.display_thresholds, j,
        action=policy.describe_action(last.action), since=last.since, declared=modulus.amount > 0.0,
        segment=None if last.segment is None else name_segment(policy, limit, last.segment),
        mean=None if math.isnan(last.mean) else policy.to_user_units(1 + j, last.mean),
    )  # fmt: skip


def check_forget_costs(policy: Any, action: Any, before: Any) -> tuple[int, float]:
    """Return the index of an action and the time before which its costs are forgotten, or raise."""
    if not getattr(policy, "moduli", ()):
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED,
            "no limit has a drift, so outcomes are learned without their times and none can be forgotten; declare a "
            "drift, such as Limit(..., drift='jumps')",
        )
    names = [policy.describe_action(index) for index in range(policy.actions)] if policy.names is None else policy.names
    index = list(names).index(check_choice(action, tuple(names), "action"))
    return index, math.inf if before is None else parse_timestamp(before)


def forget_costs(policy: Any, memory: Floats, index: int, before: float) -> None:
    """Forget what was learned of an action's costs from epochs that began before a time, in every limit that drifts."""
    for model, block in policy.rounds.iter_blocks(memory):
        model.diagnostics.forget(block, policy.settings, memory, index, before)


ASSUMPTION = "if outcomes come as often as since then and its mean stays"
FIRST_GUESS, LAST_GUESS = 60.0, 3650.0 * DAY  # seconds until an action is back


class DriftingBound(NamedTuple):
    """The bound of an action for a limit that drifts; with segments, that of the segment with the worst bound."""

    limit: str
    action: str
    segment: str | None
    estimate: float | None  # the mean of the outcomes that count
    bound: float  # the upper bound (lower, for AtLeast) now
    age_term: float  # how much of it the age of the outcomes and the declared drift make
    threshold: float
    outcomes: int  # of the longest stretch that counts
    drift: str  # what is declared, in words
    changed_at: float | None  # when the outcomes that count since the last change begin, in seconds since 1970
    recovering: bool  # outcomes count since a change, and the bound is beyond the limit
    back_at: float | None  # about when the bound is within the limit, at the present rate of outcomes and a steady mean
    note: str  # why that is unknown


def summarize_drifting_bounds(policy: Any, memory: Floats, time: float | None = None) -> tuple[DriftingBound, ...]:
    """Return the bound of every action for every limit that drifts, at a time; None: that of the newest outcome."""
    problem = getattr(policy, "problem", None)
    if problem is None or not policy.needs_times:
        return ()
    found = []
    for model, block in policy.rounds.iter_blocks(memory):
        if block.first == 0:
            continue
        j = block.first - 1
        name = policy.thresholds.names[j]
        now = get_newest_time(policy, memory) if time is None else time
        for one in model.diagnostics.list_bounds(block, policy.settings, memory, now):
            if policy.names[one.action] != problem.safe_name or problem.limits[name].safe_bound is None:
                found.append(describe_bound(policy, j, one, now))
    return tuple(found)


def get_newest_time(policy: Any, memory: Floats) -> float:
    """Return the time of the newest outcome that was learned for a limit that drifts; 0: none was."""
    times = [
        model.diagnostics.get_newest_time(block, policy.settings, memory)
        for model, block in policy.rounds.iter_blocks(memory)
    ]
    return max(times, default=0.0)


def describe_bound(policy: Any, j: int, one: AgedBound, now: float) -> DriftingBound:
    """Return a bound in the user's units."""
    thresholds, display = policy.thresholds, policy.display_thresholds
    limit, name = float(thresholds.signs[j] * thresholds.values[j]), thresholds.names[j]
    recovering = one.changed != 0.0 and one.upper > limit
    seconds, note = estimate_return(one, limit) if recovering else (None, "")
    zero = display.to_user_unit(j, 0.0)
    return DriftingBound(
        limit=name,
        action=policy.names[one.action],
        segment=None if one.segment is None else name_segment(policy, name, one.segment),
        estimate=None if math.isnan(one.mean) else display.to_user_unit(j, one.mean),
        bound=display.to_user_unit(j, one.upper),
        age_term=abs(display.to_user_unit(j, one.age_term) - zero),
        threshold=float(display.values[j]),
        outcomes=one.outcomes,
        drift=str(policy.problem.limits[name].modulus),
        changed_at=one.changed or None,
        recovering=recovering,
        back_at=None if seconds is None else now + seconds,
        note=note,
    )


def estimate_return(one: AgedBound, limit: float) -> tuple[float | None, str]:
    """Return in about how many seconds a bound is within its limit, or why that is unknown."""
    if one.ends is None:
        return None, "too few outcomes since the change"
    if one.mean > limit:
        return None, "its estimate is beyond the limit"
    seconds = find_first(lambda passed: one.ends is not None and one.ends(passed) <= limit)
    return seconds, "" if seconds is not None else "not at the present rate of outcomes"


def find_first(holds: Callable[[float], bool]) -> float | None:
    """Return about the least number of seconds at which something holds; None: it never does within ten years."""
    seconds = FIRST_GUESS
    while not holds(seconds):
        seconds *= 1.05
        if seconds > LAST_GUESS:
            return None
    return seconds


def format_bound(one: DriftingBound) -> str:
    """Return a bound as a line of a report."""
    where = "" if one.segment is None else f" in {one.segment!r}"
    estimate = "no outcome" if one.estimate is None else f"estimate {one.estimate:z.4f}"
    text = f"{one.limit} of {one.action!r}{where}: {estimate}, bound {one.bound:z.4f}"
    text += f", of which age {one.age_term:.4f}" if one.age_term > 0.0 else ""
    return f"{text}, limit {one.threshold:g}{format_recovery(one)}"


def format_recovery(one: DriftingBound) -> str:
    """Return the last change of an action and when it is back, as the end of a sentence."""
    if one.changed_at is None:
        return ""
    text = f"; after a change outcomes count since {format_date(one.changed_at)}"
    if not one.recovering:
        return f"{text}; the action is back"
    if one.back_at is None:
        return f"{text}; recovering: {one.note}"
    return f"{text}; recovering, back about {format_date(one.back_at)} {ASSUMPTION}"


def format_date(seconds: float) -> str:
    """Return a time as text.

    >>> format_date(1.7e9)
    '2023-11-14 22:13 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M UTC}" if abs(seconds) < LATEST else f"{seconds:g}"
