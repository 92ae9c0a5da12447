"""Changes of means that drift: found by the kernels that learn, told here, and forgotten at a person's word.

The cell of an action whose mean has moved further than declared has forgotten what is older, so that its action is held
back and recovers by itself (docs/theory/drift.md, Theorem 2). A change is a warning, or, with `on_jump="stop"`, an
alert.
"""

import math
from typing import Any

from stagewise.agent.health_findings import Check, format_finding_name
from stagewise.agent.statistics import Statistics
from stagewise.engine.compile import Floats
from stagewise.models.diagnostics import FoundChange
from stagewise.policies.contradictions import build_contradiction
from stagewise.problem.checks import check_choice
from stagewise.problem.division import name_segment
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.window import parse_timestamp
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
