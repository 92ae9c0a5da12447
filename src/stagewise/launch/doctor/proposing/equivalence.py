"""Equivalence tests: are the rates in all groups of a column shown to be equal?"""

from typing import NamedTuple

from stagewise.engine.compile import Ints
from stagewise.launch.doctor.finding_messages import format_number
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.problem.signals import Limit

MARGIN_SHARE = 0.1  # of a limit, by which equal rates of one action may differ


class EquivalenceBounds(NamedTuple):
    """The margin within which rates count as equal, and the limit, if one was given."""

    margin: float
    limit: float


def get_equivalence_bounds(profile: LogProfile, signal: int, limit: Limit, given: float | None) -> EquivalenceBounds:
    """Return the bounds for a limit: a share of it, or of the safe action's cost if no limit was given."""
    if given is not None:
        return EquivalenceBounds(MARGIN_SHARE * (given - limit.low), given)
    _, mean, _ = profile.rate(signal, profile.log.actions == profile.safe, 0.5)
    return EquivalenceBounds(MARGIN_SHARE * (mean - limit.low), limit.low)


def describe_equivalence(
    profile: LogProfile, signal: int, groups: Ints, names: list[str], bounds: EquivalenceBounds, p_value: float
) -> str:
    """Return why users need not be divided by groups; empty if that is not shown.

    With probability 1 − p_value every action's mean in every group is in its interval. The means of an action are equal
    if its highest upper end is within the margin of its lowest lower end. A group without rows of an action has the
    whole range as its interval. If every upper end keeps the limit, no group can break it.
    """
    problem = profile.log.problem
    level, widest, largest = p_value / (len(names) * len(problem.actions)), 0.0, profile.ends(signal)[0]
    for action in range(len(problem.actions)):
        has_action = profile.log.actions == action
        intervals = [profile.rate(signal, has_action & (groups == index), level)[2] for index in range(len(names))]
        highest = max(interval.high for interval in intervals)
        widest = max(widest, highest - min(interval.low for interval in intervals))
        largest = max(largest, highest)
    if largest <= bounds.limit:
        return f"no action is over {format_number(largest)} in any of {len(names)} groups, so none is over the limit"
    if widest <= bounds.margin:
        return (
            f"equal in all {len(names)} groups of an action, within {format_number(widest)} of "
            f"{format_number(bounds.margin)} allowed"
        )
    return ""
