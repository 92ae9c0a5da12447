"""Importance weights of a candidate with a bound, and the part of it that the log does not support."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log
from stagewise.launch.evaluation.logging_propensities import Propensities
from stagewise.problem.checks import check_positive
from stagewise.problem.errors import ErrorCode, InvalidOutcome

ROUNDING = 1e-9  # a smaller mass counts as zero
NEGLIGIBLE_MASS = 1e-3  # unsupported mass below which an estimate is still given
LOGGING_POLICY = "the log's own policy"
MAX_BOUND_COST = 0.01  # share of the range that a bound may add to an interval before weights are clipped


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a candidate, each at most `bound`."""

    values: Floats
    """wₜ = min(π(aₜ|xₜ) / pₜ(aₜ|xₜ), W), for each row (n,)."""
    covered_mass: Floats | None
    """min(π(a|xₜ), W pₜ(a|xₜ)) (n, K): the part of the candidate that the log supports; None: unknown."""
    lost_mass: Floats
    """1 − Σₐ covered_mass (n,): the part that it does not support."""
    unsupported: Floats
    """The share (K,) of the candidate by action that the log could not have taken."""
    bound: float
    """W, which no weight exceeds."""
    excess: float
    """An upper bound of w (1 − p), by which a term may leave the range of the outcomes."""
    source: str
    """Where the bound comes from."""
    complete: bool = True
    """Whether the log has the probability of every action; otherwise intervals use neither bound nor covered_mass."""
    is_estimated: bool = False
    """Whether the probabilities were estimated from the log, so that no interval is certain."""

    @property
    def clipped(self) -> float:
        """The share of the candidate that is lost by clipping."""
        return max(float(self.lost_mass.mean()) - float(self.unsupported.sum()), 0.0)

    def get_ranges(self, regression: bool) -> tuple[float, float]:
        """Return the ranges below and above: no term is farther from a guess in [0, 1] on that side."""
        if not self.complete:
            return 1.0, 1.0
        if regression:
            return 1.0 + self.excess, 1.0 + self.excess
        return 1.0, self.bound if not self.lost_mass.any() else 1.0 + self.excess

    def take(self, rows: Any) -> "Weights":
        """Return the weights of some rows, with the same bound."""
        covered = None if self.covered_mass is None else self.covered_mass[rows]
        return replace(self, values=self.values[rows], covered_mass=covered, lost_mass=self.lost_mass[rows])


def build_logging_weights(log: Log) -> Weights:
    """Return the weights of the log's own policy, which are all 1."""
    zeros = np.zeros(len(log.problem.actions))
    return Weights(np.ones(log.rows), None, np.zeros(log.rows), zeros, 1.0, 1.0, LOGGING_POLICY)


def compute_weights(
    log: Log, propensities: Propensities, candidate: Floats, alpha: float, bound: float | None = None
) -> Weights:
    """Return the weights of a candidate (n, K), clipped at a bound if one is given or if they are too large."""
    given = None if bound is None else check_positive(bound, "weight_bound")
    if given is not None and given < 1.0:
        raise InvalidOutcome(
            ErrorCode.OUT_OF_RANGE,
            "weight_bound is {weight_bound:g}; it must be at least 1, since weights average 1",
            weight_bound=given,
        )
    if propensities.all_actions is None:
        return compute_partial_weights(log, propensities, candidate, given)
    all_actions = propensities.all_actions
    ratios = np.divide(candidate, all_actions, out=np.zeros_like(candidate), where=all_actions > 0.0)
    largest = max(float(ratios.max()), 1.0)
    limit, source = choose_bound(given, largest, propensities, candidate, alpha, log.rows)
    clips = largest > limit * (1.0 + ROUNDING)
    covered = np.minimum(candidate, limit * all_actions) if clips else np.where(all_actions > 0.0, candidate, 0.0)
    lost = np.maximum(1.0 - covered.sum(axis=1), 0.0)
    lost[lost < ROUNDING] = 0.0
    known = log.actions != UNKNOWN_ACTION
    values = np.where(known, np.minimum(ratios[np.arange(log.rows), log.actions], limit), 0.0)
    excess = limit if given is not None else float((np.minimum(ratios, limit) * (1.0 - all_actions)).max())
    unsupported = np.where(all_actions > 0.0, 0.0, candidate).mean(axis=0)
    return Weights(values, covered, lost, unsupported, limit, excess, source, is_estimated=propensities.is_estimated)


def choose_bound(
    given: float | None, largest: float, propensities: Propensities, candidate: Floats, alpha: float, rows: int
) -> tuple[float, str]:
    """Return the bound on the weights and where it comes from; it does not depend on outcomes."""
    if given is not None:
        return given, "as given"
    price = np.log(2.0 / alpha) / rows  # width of an interval per unit of the bound
    if largest * price <= MAX_BOUND_COST:
        return largest, "the largest that the log's probabilities allow"
    assert propensities.all_actions is not None
    best_bound, lowest_cost, limit = largest, largest * price, largest
    supported = np.where(propensities.all_actions > 0.0, candidate, 0.0)
    while (limit := 0.5 * limit) >= 1.0:
        loss = float(np.maximum(supported - limit * propensities.all_actions, 0.0).sum(axis=1).mean())
        if loss <= NEGLIGIBLE_MASS and limit * price + loss < lowest_cost:
            best_bound, lowest_cost = limit, limit * price + loss
    clipped = "clipped: larger weights would widen the interval more than they inform"
    return best_bound, clipped if best_bound < largest else "the largest that the log's probabilities allow"


def compute_partial_weights(log: Log, propensities: Propensities, candidate: Floats, given: float | None) -> Weights:
    """Return weights if only the probability of the action taken is known.

    What else could have been drawn is known only in rows with a probability of 1.
    """
    known, rows = log.actions != UNKNOWN_ACTION, np.arange(log.rows)
    ratios = np.where(known, candidate[rows, log.actions] / np.where(known, propensities.logged, 1.0), 0.0)
    largest = max(float(ratios.max()), 1.0)
    if given is not None and largest > given:
        raise InvalidOutcome(
            ErrorCode.PROPENSITY_MISSING,
            "weight_bound is {weight_bound:g}, and a row has weight {largest:g}; the bias of clipping can be "
            "bounded only if the log has every action's probability, in columns 'probability.ACTION'",
            weight_bound=given,
            largest=largest,
        )
    indices = np.arange(candidate.shape[1])
    is_certain = known & (propensities.logged >= 1.0 - ROUNDING)
    never = ~np.isin(indices, log.actions) | (is_certain[:, None] & (log.actions[:, None] != indices))
    covered = np.where(never, 0.0, candidate)
    lost = np.maximum(1.0 - covered.sum(axis=1), 0.0)
    lost[lost < ROUNDING] = 0.0
    limit, source = (largest, "the largest that occurred") if given is None else (given, "as given")
    unsupported = np.where(never, candidate, 0.0).mean(axis=0)
    return Weights(ratios, covered, lost, unsupported, limit, limit, source, complete=False)
