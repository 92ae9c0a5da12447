"""Check `features`: every number about users has an effect; each number makes all bounds wider."""

import numpy as np
from scipy.special import chdtrc  # type: ignore[import-untyped]

from stagewise.launch.doctor.binary_outcomes import find_events
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile

EFFECT_LEVEL = 0.001  # p-value at which an effect counts as visible


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find numbers that have no visible effect on any linear signal."""
    problem = profile.log.problem
    linear = [index for index, name in enumerate(profile.names) if problem.choices[name].model == "linear"]
    if not problem.context or not linear:
        return Finding.of(FindingCode.NO_LINEAR_SIGNAL)
    constant = [name for i, name in enumerate(problem.context) if np.unique(profile.log.numbers[:, i]).size < 2]
    if constant:
        return Finding.of(FindingCode.FEATURES_CONSTANT, names=constant)
    idle = [name for i, name in enumerate(problem.context) if not any(has_effect(profile, i, k) for k in linear)]
    if not idle:
        return Finding.of(FindingCode.FEATURES_MATTER, names=list(problem.context))
    return Finding.of(FindingCode.FEATURES_WITHOUT_EFFECT, names=idle, signals=[profile.names[k] for k in linear])


def has_effect(profile: LogProfile, feature: int, signal: int) -> bool:
    """Say whether a number has a visible effect on a signal, by Σ z² over actions, a χ² statistic."""
    rows = profile.observed(signal)
    ranks, marked, actions = (
        profile.ranks[feature][rows],
        find_events(profile, signal)[rows],
        profile.log.actions[rows],
    )
    total, degrees = 0.0, 0
    for action in np.unique(actions).tolist():
        chosen = actions == action
        hits, count, variance_of_ranks = float(marked[chosen].sum()), int(chosen.sum()), float(ranks[chosen].var())
        variance = variance_of_ranks * hits * (count - hits) / max(count - 1, 1)
        if variance > 0.0:
            total += float((ranks[chosen] - ranks[chosen].mean())[marked[chosen]].sum()) ** 2 / variance
            degrees += 1
    return bool(degrees and chdtrc(degrees, total) <= EFFECT_LEVEL)
