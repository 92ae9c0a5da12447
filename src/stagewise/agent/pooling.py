"""Buckets of a score that are pooled, though mean costs fall from one to a later one.

The kernels that learn find it and bound the action by single buckets from then on (`models.score_rates`), so the limit
holds in every bucket and nothing stops. It is a warning: the score orders users wrongly, and pooling gains nothing.
"""

from typing import Any

from stagewise.agent.health_findings import Check, format_finding_name
from stagewise.agent.statistics import LOOK_AFTER, Statistics
from stagewise.engine.compile import Floats
from stagewise.policies.contradictions import build_contradiction
from stagewise.problem.context import get_segment_name
from stagewise.records.reason import Contradiction, ReasonDetails


def list_pooled_limits(policy: Any) -> list[str]:
    """Return the limits whose buckets of a score are pooled."""
    return [name for name, buckets in getattr(policy, "buckets", {}).items() if buckets.pooled]


def record_falls(policy: Any, memory: Floats, statistics: Statistics) -> None:
    """Record the limits whose means fall from bucket to bucket, and schedule the next look."""
    pooled = list_pooled_limits(policy)
    if pooled:
        statistics.updates_until_check = min(statistics.updates_until_check, LOOK_AFTER)
    for limit in pooled:
        name = format_finding_name(Check.POOLING, limit)
        cause = None if name in statistics.warnings else find_fall(policy, memory, limit)
        if cause is not None:
            statistics.warnings[name] = cause


def find_fall(policy: Any, memory: Floats, limit: str) -> ReasonDetails | None:
    """Return the surest fall of a limit's means; None: there is none."""
    j = policy.thresholds.names.index(limit)
    model, block = next(one for one in policy.rounds.iter_blocks(memory) if one[1].first == 1 + j)
    falls = model.diagnostics.list_falls(block, policy.settings, memory)
    if not falls:
        return None
    fall = max(falls, key=lambda one: one.low - one.high)
    division = None if policy.problem is None else policy.problem.get_division(limit)
    name_bucket = get_segment_name if division is None else division.get_segment_name
    low, high = (policy.to_user_units(1 + j, mean) for mean in (fall.low, fall.high))
    return build_contradiction(
        Contradiction.POOLING, policy.display_thresholds, j,
        action=policy.describe_action(fall.action), score="" if division is None else division.name,
        before=name_bucket(fall.before), after=name_bucket(fall.after), low=low, high=high,
    )  # fmt: skip
