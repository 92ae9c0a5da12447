"""Propose `norm_bound`: 1 if the fitted means stay in their range wherever users can be."""

from stagewise.launch.doctor.checks.parameter_norms import estimate_norms
from stagewise.launch.doctor.finding_messages import format_number
from stagewise.launch.doctor.log_profile import LogProfile


def estimate_norm_bound(profile: LogProfile, p_value: float) -> tuple[float, str]:
    """Return a bound on the norm of all linear parameters, and why; 1 if no fit is longer.

    A mean that is linear in numbers of [−1, 1] and stays in [0, 1] for all of them has a norm of at most 1. Ranges are
    rounded outward, and a line may leave [0, 1] where there are no users: then its norm is larger.
    """
    norms = {
        (signal, action): norm.high
        for signal, action, norm in estimate_norms(profile, p_value)
        if max(norm.fit, norm.low) > 1.0
    }
    if not norms:
        return 1.0, ""
    (signal, action), largest = max(norms.items(), key=lambda one: one[1])
    return largest, (
        f"the mean of {signal!r} of {action!r} leaves its range somewhere in [context], where few users are: "
        f"its parameter may be as long as {format_number(largest)}; a narrower range makes it shorter"
    )
