"""Check `propensities`: the logged probabilities agree with the actions taken."""

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.logged_probabilities import get_action_probabilities
from stagewise.launch.doctor.permutation_tests import MIN_PROBABILITY, freedman_bound

SUM_TOLERANCE = 1e-3  # logged probabilities may be rounded
BET_FRACTIONS = tuple(0.6 / 3.0**k for k in range(8))  # of the wealth, that bets against the probabilities stake


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find invalid probabilities, and actions that were taken more or less often than the probabilities allow.

    With the propensity of the action taken alone, only a too frequent action is found: in other rows it may not have
    been available.
    """
    log, problem = profile.log, profile.log.problem
    if log.probabilities is None and log.propensities is None:
        return Finding.of(FindingCode.PROPENSITIES_NOT_LOGGED)
    invalid = find_invalid(profile)
    if invalid is not None:
        return invalid
    probabilities = get_action_probabilities(profile)
    taken = (log.actions[profile.known, None] == np.arange(len(problem.actions))).astype(float)
    if probabilities is not None:
        probabilities = probabilities[profile.known]
        variances = (probabilities * (1.0 - probabilities)).sum(axis=0)
        p_values = freedman_bound((taken - probabilities).sum(axis=0), variances, 1.0, len(taken))
        expected, weights = probabilities.sum(axis=0), None
    else:
        assert log.propensities is not None
        weights = taken / log.propensities[profile.known, None]
        expected, p_values = None, compute_excess_p_values(weights)
    worst = int(np.argmin(p_values))
    if p_values[worst] * len(problem.actions) > alpha:
        return Finding.of(FindingCode.PROPENSITIES_AGREE)
    return Finding.of(
        FindingCode.ACTION_COUNT_IMPLAUSIBLE,
        action=problem.actions[worst],
        count=int(taken[:, worst].sum()),
        rows=len(taken),
        expected=None if expected is None else float(expected[worst]),
        weight=None if weights is None else float(weights[:, worst].sum()),
    )


def compute_excess_p_values(weights: Floats) -> Floats:
    """Return the p-value of each action's count, from weights 1{taken}/p (n, K).

    E[1{taken}/p] ≤ 1 given the past, for every p, without a bound on how small p can be. Bets against that,
    ∏ (1 + λ (1{taken}/p − 1)) with 0 < λ < 1, have mean at most 1, and exceed 1/c with probability at most c (Ville);
    so does their mean over several λ.

    >>> compute_excess_p_values(np.tile([[2.0, 0.0], [0.0, 2.0]], (100, 1))).tolist()
    [1.0, 1.0]
    >>> taken_twice_as_often = np.tile([[4.0], [0.0]], (100, 1))  # half of the time, but p is a quarter
    >>> bool(compute_excess_p_values(taken_twice_as_often)[0] < 1e-6)
    True
    """
    wealth = np.array([np.log1p(bet * (weights - 1.0)).sum(axis=0) for bet in BET_FRACTIONS])
    return np.asarray(
        np.clip(np.exp(np.log(len(BET_FRACTIONS)) - np.logaddexp.reduce(wealth, axis=0)), MIN_PROBABILITY, 1.0)
    )


def find_invalid(profile: LogProfile) -> Finding | None:
    """Return the finding on invalid probabilities, or None."""
    log = profile.log
    if log.propensities is not None:
        outside = ~((log.propensities > 0.0) & (log.propensities <= 1.0 + 1e-9))
        if outside.any():
            return Finding.of(
                FindingCode.PROPENSITY_OUT_OF_RANGE,
                count=int(outside.sum()),
                rows=log.rows,
                example=float(log.propensities[outside][0]),
            )
    if log.probabilities is not None:
        sums = log.probabilities.sum(axis=1)
        invalid = ~(np.abs(sums - 1.0) <= SUM_TOLERANCE) | ~(log.probabilities >= 0.0).all(axis=1)
        if invalid.any():
            return Finding.of(FindingCode.PROBABILITIES_DO_NOT_SUM, count=int(invalid.sum()), rows=log.rows)
    if log.probabilities is not None and log.propensities is not None:
        own = log.probabilities[np.arange(log.rows), np.maximum(log.actions, 0)]
        different = profile.known & ~(np.abs(own - log.propensities) <= SUM_TOLERANCE)
        if different.any():
            return Finding.of(FindingCode.PROPENSITY_NOT_OF_ACTION, count=int(different.sum()))
    return None
