"""Estimate the safe action's cost from a log, and propose limits relative to it."""

from dataclasses import replace

from stagewise.launch.doctor.checks.safe_action_rates import estimate_safe_rates
from stagewise.launch.doctor.finding_messages import format_number
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.proposing.rounding import round_up
from stagewise.problem.signals import Limit

MEAN_FACTOR = 2.0  # a proposed limit is the larger of this times the safe action's mean cost ...
BOUND_FACTOR = 1.25  # ... and this times its upper bound
MIN_DISTANCE = 1e-4  # of a range: the least distance of a limit from its ends


def set_safe_rate(
    profile: LogProfile, signal: int, limit: Limit, given: float | None, share: float, reasons: dict[str, str]
) -> Limit:
    """Return a limit with an upper bound on the safe action's cost, and a threshold if none was given.

    The interval is OPB's "kl", so it holds for every logging policy; with segments the largest one counts.
    """
    name, rates, span = profile.names[signal], estimate_safe_rates(profile, signal, share), limit.high - limit.low
    bound = max((rate.high for rate in rates), default=limit.high)
    safe = limit.low + round_up((bound - limit.low) / span, 3) * span
    mean = max((rate.mean for rate in rates), default=limit.high)
    if given is None:
        _, overall, interval = profile.rate(
            signal, profile.log.actions == profile.safe, share
        )  # all segments: a limit is one number
        room = (
            max(MEAN_FACTOR * (overall - limit.low), BOUND_FACTOR * (interval.high - limit.low)) if rates else span
        ) / span
        value = limit.low + min(max(round_up(room), MIN_DISTANCE), 1.0 - MIN_DISTANCE) * span
        reasons[f"limit.{name}"] = (
            f"PROPOSED, so decide: twice the cost of {profile.log.problem.safe!r}, or 5/4 of its upper bound"
        )
    else:
        value, reasons[f"limit.{name}"] = given, "as given"
    has_unknown_segment = limit.by is not None and len(rates) < len(profile.segment_codes[limit.by][1])
    if limit.model == "linear" or has_unknown_segment or not rates or not safe < value:
        why = "it differs by user" if limit.model == "linear" else f"{format_number(safe)} is the smallest upper bound"
        why = f"the log has no row of the safe action in some {limit.by!r}" if has_unknown_segment else why
        reasons[f"safe.{name}"] = f"left out, so the policy learns it first by playing the safe action: {why}"
        return replace(limit, value=value)
    where = f" in the most expensive of {len(rates)} segments; a new segment may cost more" if limit.by else ""
    reasons[f"safe.{name}"] = (
        f"observed {format_number(mean)}{where}; an upper bound with error probability {format_number(share)}, a share "
        "of delta"
    )
    return replace(limit, value=value, safe=safe)
