"""What was learned of a limit in every segment: rates and their bounds, action by action."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import Part
from stagewise.kernels.signals.cells import least_of
from stagewise.models.answers import answers_of
from stagewise.models.part import parts_in
from stagewise.problem.naming import name_of_segment

LEAST = named(least_of)
MOST = 12  # segments of a limit that a report tells of: those of which most was learned


class SegmentNow(NamedTuple):
    """One action in one segment, beside a limit that holds in every segment by itself."""

    limit: str
    by: str
    segment: str
    action: str
    outcomes: int  # that were learned, from decisions and logs
    rate: float | None  # their mean; None: there is none
    dearest: float  # the highest plausible (lowest, for AtLeast)
    threshold: float


def divided(policy: Any, memory: Floats) -> Iterator[tuple[Part, Floats, Floats]]:
    """Yield every part that has segments: their numbers (S,), and of each and every action (S, K, 3) what was seen."""
    for part in parts_in(policy.layout, memory):
        met = answers_of(part).segments(part, memory)
        if met is not None:
            yield part, *met


def segments_now(policy: Any, state: Any) -> tuple[SegmentNow, ...]:
    """Return what was learned in the segments of a problem's limits, those of which most was learned first."""
    if getattr(policy, "problem", None) is None:
        return ()
    found, shown, limits = [], policy.presented, list(policy.problem.limits.items())
    for part, numbers, seen in divided(policy, state.memory):
        if part.first == 0:
            continue
        j, low = part.first - 1, float(LEAST(part, policy.settings))
        name, limit = limits[j]
        for place in np.argsort(-seen[:, :, 0].sum(axis=1), kind="stable")[:MOST].tolist():
            for action, (pulls, mean, most) in zip(policy.names, seen[place].tolist(), strict=True):
                rate = None if pulls == 0.0 else shown.in_unit(j, low + mean)
                told = str(limit.by), name_of_segment(int(numbers[place])), action
                high = min(low + most, policy.declared_costs[j]) if action == policy.problem.safe else low + most
                found.append(SegmentNow(name, *told, int(pulls), rate, shown.in_unit(j, high), float(shown.values[j])))
    return tuple(found)


def names_met(policy: Any, memory: Floats) -> list[str]:
    """Return the names of all segments that were met, so that a file holds them: numbers do not tell them."""
    if policy.problem is None:
        return []
    met = {int(number) for _, numbers, _ in divided(policy, memory) for number in numbers}
    return sorted(name_of_segment(number) for number in met)
