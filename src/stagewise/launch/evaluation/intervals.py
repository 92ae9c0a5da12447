"""The interval of each estimator, in the signal's own units; the worst case for unknown parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import UNKNOWN_ACTION
from stagewise.launch.evaluation.balance import Balance
from stagewise.launch.evaluation.confidence_sequence import ConfidenceSequence, choose_log_spaced, compute_sequence
from stagewise.launch.evaluation.estimate import Estimate, Validity
from stagewise.launch.evaluation.estimators import dr_terms, ips_terms, snips, snips_standard_error, standard_error
from stagewise.launch.evaluation.weights import NEGLIGIBLE_MASS, Weights


@dataclass(frozen=True, eq=False)
class SignalRows:
    """The rows of one signal, for the estimators."""

    actions: Ints  # (n,)
    outcomes: Floats  # (n,) in [0, 1]
    weights: Weights
    regression: Floats | None  # (n, K) the prediction for each action, in [0, 1]
    ordered: bool = True  # they are in the order of the decisions, or in one that is equivalent

    def take(self, chosen: Any) -> "SignalRows":
        """Return some of the rows."""
        regression = None if self.regression is None else self.regression[chosen]
        return SignalRows(
            self.actions[chosen], self.outcomes[chosen], self.weights.take(chosen), regression, self.ordered
        )

    def baselines(self) -> tuple[Floats, Floats]:
        """Return the predictions (n,) for the action taken, and for the candidate."""
        regression, covered = self.regression, self.weights.covered_mass
        assert regression is not None
        assert covered is not None
        known = self.actions != UNKNOWN_ACTION
        logged = np.where(known, regression[np.arange(known.size), self.actions], 0.0)
        return logged, np.einsum("nk,nk->n", covered, regression)


def compute_estimates(
    rows: SignalRows, balance: Balance, estimators: Sequence[str], alpha: float, ends: tuple[float, float], past: bool
) -> dict[str, Estimate]:
    """Return the estimates of one signal with intervals at 1 − α; none if the weights are contradicted."""
    if balance.contradicted:
        return dict.fromkeys(estimators, Estimate(None, np.nan, np.nan, Validity.NONE, rows.outcomes.size))
    functions = {"ips": estimate_ips, "snips": estimate_snips, "dr": estimate_dr if past else estimate_cross_fitted_dr}
    enough = float(rows.weights.lost_mass.mean()) <= NEGLIGIBLE_MASS and balance.is_balanced
    estimates = {name: functions[name](rows, alpha) for name in estimators}
    if rows.weights.is_estimated:
        shares = Validity.IF_SHARES_CORRECT
        estimates = {
            name: one if one.validity is Validity.NONE else one._replace(validity=shares)
            for name, one in estimates.items()
        }
    return {name: to_signal_units(one if enough else one._replace(value=None), ends) for name, one in estimates.items()}


def estimate_anytime(terms: Floats, rows: SignalRows, regression: bool, alpha: float) -> Estimate:
    """Return the mean of terms with an interval that holds at all times.

    If the probabilities of the other actions are unknown, its ends are those of wₜ yₜ and 1 − wₜ (1 − yₜ), also for a
    regression: both terms are at least 0 for any probabilities (docs/theory/evaluation.md, Lemma 3). If the order of a
    possibly adaptive policy is unknown too, they are those of the worst order (Lemma 5); a regression needs an order,
    and its interval then holds if the policy was fixed.
    """
    weights, rooms = rows.weights, rows.weights.get_ranges(regression)
    ends, needs_order = (terms, terms + weights.lost_mass), regression and weights.complete
    if not weights.complete:
        ends = ips_terms(weights.values, rows.outcomes), 1.0 - ips_terms(weights.values, 1.0 - rows.outcomes)
    uses_order = rows.ordered or needs_order
    after = choose_log_spaced(terms.size) if uses_order else np.array([terms.size])
    sequence = compute_sequence(*ends, rooms, alpha, after, uses_order)
    low, high = float(sequence.low[-1]), float(sequence.high[-1])
    value = float(np.clip(terms.mean(), low, high))
    validity = Validity.IF_POLICY_FIXED if needs_order and not rows.ordered else Validity.ANYTIME
    return Estimate(value, low, high, validity, terms.size, sequence if uses_order else None)


def estimate_ips(rows: SignalRows, alpha: float) -> Estimate:
    """Return the inverse propensity estimate."""
    return estimate_anytime(ips_terms(rows.weights.values, rows.outcomes), rows, False, alpha)


def estimate_dr(rows: SignalRows, alpha: float) -> Estimate:
    """Return the doubly robust estimate, with predictions from earlier rows."""
    return estimate_anytime(dr_terms(rows.weights.values, rows.outcomes, *rows.baselines()), rows, True, alpha)


def estimate_cross_fitted_dr(rows: SignalRows, alpha: float) -> Estimate:
    """Return the doubly robust estimate, with predictions from other folds; it has no confidence sequence."""
    terms = dr_terms(rows.weights.values, rows.outcomes, *rows.baselines())
    return estimate_asymptotic(float(np.clip(terms.mean(), 0.0, 1.0)), standard_error(terms), rows, alpha)


def estimate_snips(rows: SignalRows, alpha: float) -> Estimate:
    """Return the self-normalised estimate."""
    weights, outcomes = rows.weights.values, rows.outcomes
    return estimate_asymptotic(snips(weights, outcomes), snips_standard_error(weights, outcomes), rows, alpha)


def estimate_asymptotic(value: float, error: float, rows: SignalRows, alpha: float) -> Estimate:
    """Return an estimate with the interval of the normal approximation, within the range of the outcomes.

    There is no interval if a part of the candidate is unknown, or if all outcomes are the same.
    """
    if not (np.isfinite(value) and error > 0.0) or rows.weights.lost_mass.any():
        finite = float(value) if np.isfinite(value) else None
        return Estimate(finite, np.nan, np.nan, Validity.NONE, rows.outcomes.size)
    half = float(ndtri(1.0 - 0.5 * alpha)) * error
    return Estimate(value, max(value - half, 0.0), min(value + half, 1.0), Validity.ASYMPTOTIC, rows.outcomes.size)


def to_signal_units(one: Estimate, ends: tuple[float, float]) -> Estimate:
    """Return an estimate in the signal's own units."""
    low, length = ends[0], ends[1] - ends[0]
    value = None if one.value is None else low + length * one.value
    sequence = one.confidence_sequence
    if sequence is not None:
        after, *lines = sequence
        sequence = ConfidenceSequence(after, *(low + length * line for line in lines))
    return one._replace(
        value=value, low=low + length * one.low, high=low + length * one.high, confidence_sequence=sequence
    )
