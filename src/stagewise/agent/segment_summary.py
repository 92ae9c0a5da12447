"""Rates and bounds of limits in every segment, action by action."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import ModelBlock
from stagewise.models.segment_rates import get_lowest_value
from stagewise.problem.context import get_segment_name

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


def iter_segment_parts(policy: Any, memory: Floats) -> Iterator[tuple[ModelBlock, Floats, Floats]]:
    """Yield every model block with segments: their hashes (S,), and the statistics (S, K, 3) of every action."""
    for model, part in policy.rounds.iter_blocks(memory):
        segments = model.diagnostics.segments(part, memory)
        if segments is not None:
            yield part, *segments


def summarize_segments(policy: Any, state: Any) -> tuple[SegmentSummary, ...]:
    """Return the rates in the segments of a problem's limits, those with most outcomes first."""
    if getattr(policy, "problem", None) is None:
        return ()
    summaries, thresholds, limits = [], policy.display_thresholds, list(policy.problem.limits.items())
    for part, numbers, statistics in iter_segment_parts(policy, state.memory):
        if part.first == 0:
            continue
        j, low = part.first - 1, float(LEAST(part, policy.settings))
        name, limit = limits[j]
        for segment in np.argsort(-statistics[:, :, 0].sum(axis=1), kind="stable")[:MAX_SEGMENTS].tolist():
            for action, (pulls, mean, most) in zip(policy.names, statistics[segment].tolist(), strict=True):
                rate = None if pulls == 0.0 else thresholds.to_user_unit(j, low + mean)
                labels = str(limit.by), get_segment_name(int(numbers[segment])), action
                high = min(low + most, policy.declared_costs[j]) if action == policy.problem.safe else low + most
                cost, threshold = thresholds.to_user_unit(j, high), float(thresholds.values[j])
                summaries.append(SegmentSummary(name, *labels, int(pulls), rate, cost, threshold))
    return tuple(summaries)


def list_segment_names(policy: Any, memory: Floats) -> list[str]:
    """Return the names of all known segments, for a file; hashes do not contain them."""
    if policy.problem is None:
        return []
    hashes = {int(number) for _, numbers, _ in iter_segment_parts(policy, memory) for number in numbers}
    return sorted(get_segment_name(number) for number in hashes)
