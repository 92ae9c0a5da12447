"""Check `loose_limits`: every limit can bind."""

import numpy as np

from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile, get_threshold

LOOSE_FACTOR = 5.0  # a limit so many times as far away as every action's mean is loose
MAX_CELLS = 500


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find limits that every action, in every segment, certainly keeps with a fifth of the room."""
    problem, findings = profile.log.problem, []
    for signal, (name, limit) in enumerate(problem.limits.items(), start=1):
        threshold, at_least = get_threshold(limit)
        low, high = profile.ends(signal)
        room = (high - threshold if at_least else threshold - low) / LOOSE_FACTOR
        cells = profile.cells(signal)
        used = np.unique(cells[profile.observed(signal)])
        has_all_actions = set(profile.log.actions[profile.observed(signal)].tolist()) == set(
            range(len(problem.actions))
        )
        if not has_all_actions or not 0 < used.size <= MAX_CELLS or problem.choices[name].model != "rates":
            continue
        p_value = alpha / (len(problem.limits) * used.size)
        intervals = [profile.rate(signal, cells == cell, p_value)[2] for cell in used.tolist()]
        largest = max(high - one.low for one in intervals) if at_least else max(one.high - low for one in intervals)
        if largest < room:
            bound = high - largest if at_least else low + largest
            findings.append(
                Finding.of(FindingCode.LIMIT_NEVER_BINDS, name=name, at_least=at_least, bound=bound, limit=threshold)
            )
    return select_most_severe(findings, Finding.of(FindingCode.LIMITS_CAN_BIND))
