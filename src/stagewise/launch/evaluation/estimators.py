"""The estimators of a candidate's value, each with its interval, and the regression that the doubly robust one uses."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.launch.decision_log import UNKNOWN_ACTION, Log
from stagewise.launch.evaluation.propensities import NEGLIGIBLE_MASS, Balance, Weights
from stagewise.launch.statistics import compute_sequence
from stagewise.problem.errors import SentenceCode

RIDGE = 1.0
FIRST_BLOCK = 64  # rows before the first regression; it is repeated whenever the rows have grown by half
GROWTH = 1.5
MAX_SEGMENTS = 50  # segments of a division with a column


class Validity(SentenceCode):
    """When an interval holds."""

    ANYTIME = "anytime", "at all times"  # and for every number of rows
    ASYMPTOTIC = "asymptotic", "large logs only"
    IF_SHARES_CORRECT = "if_shares_correct", "if the shares are correct"  # the estimated probabilities
    IF_POLICY_FIXED = "if_policy_fixed", "if the policy was fixed"  # did not adapt
    NONE = "none", "none"


class Estimate(NamedTuple):
    """One estimate with its interval, in the signal's own units."""

    value: float | None
    """The estimate, within the interval; None if a part of the candidate is unknown."""
    low: float
    high: float
    validity: Validity
    """When the interval holds."""
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON values."""
        low, high = (float(end) if np.isfinite(end) else None for end in (self.low, self.high))
        return {"value": self.value, "low": low, "high": high, "validity": str(self.validity), "rows": self.rows}

    def rescale(self, low: float, high: float) -> "Estimate":
        """Return an estimate of outcomes in [0, 1] in the units of a range."""
        length = high - low
        value = None if self.value is None else low + length * self.value
        return Estimate(value, low + length * self.low, low + length * self.high, *self[3:])


@dataclass(frozen=True, eq=False)
class SignalRows:
    """The rows of one signal for one policy, as the estimators read them."""

    actions: Ints  # (n,)
    outcomes: Floats  # (n,) in [0, 1]
    weights: Weights
    predictions: Floats | None  # (n, K) of the regression for each action, in [0, 1]
    ordered: bool = True  # they are in the order of the decisions, or in one that is equivalent

    def take(self, chosen: Any) -> "SignalRows":
        predictions = None if self.predictions is None else self.predictions[chosen]
        weights = self.weights.take(chosen)
        return SignalRows(self.actions[chosen], self.outcomes[chosen], weights, predictions, self.ordered)

    def dr_terms(self) -> Floats:
        """Return Σₐ π(a|xₜ) q(xₜ, a) + wₜ (yₜ − q(xₜ, aₜ)) (n,), of mean the candidate's value for any q."""
        predictions, covered = self.predictions, self.weights.covered_mass
        assert predictions is not None
        assert covered is not None
        known = self.actions != UNKNOWN_ACTION
        logged = np.where(known, predictions[np.arange(known.size), self.actions], 0.0)
        expected = np.einsum("nk,nk->n", covered, predictions)
        return np.asarray(expected + self.weights.values * (self.outcomes - logged))


def estimate_ips(rows: SignalRows, alpha: float) -> Estimate:
    """Return the inverse propensity estimate, the mean of wₜ yₜ (Horvitz and Thompson 1952)."""
    return estimate_anytime(rows.weights.values * rows.outcomes, rows, False, alpha)


def estimate_snips(rows: SignalRows, alpha: float) -> Estimate:
    """Return the self-normalised estimate v = Σ w y/Σ w, with the delta method's error √(Σ w² (y − v)²)/Σ w."""
    weights, total = rows.weights.values, float(rows.weights.values.sum())
    if not total > 0.0:
        return estimate_asymptotic(float("nan"), float("nan"), rows, alpha)
    value = float((weights * rows.outcomes).sum()) / total
    residuals = weights * (rows.outcomes - value)
    return estimate_asymptotic(value, float(np.sqrt((residuals**2).sum())) / total, rows, alpha)


def estimate_dr(rows: SignalRows, alpha: float) -> Estimate:
    """Return the doubly robust estimate (Dudík, Langford and Li 2011)."""
    return estimate_anytime(rows.dr_terms(), rows, True, alpha)


ESTIMATORS = {"ips": estimate_ips, "snips": estimate_snips, "dr": estimate_dr}


def estimate_signal(
    rows: SignalRows, balance: Balance, estimators: list[str], alpha: float, ends: tuple[float, float]
) -> dict[str, Estimate]:
    """Return the estimates of one signal with intervals at 1 − α; none if the weights are contradicted."""
    if balance.contradicted:
        return dict.fromkeys(estimators, Estimate(None, np.nan, np.nan, Validity.NONE, rows.outcomes.size))
    enough = float(rows.weights.lost_mass.mean()) <= NEGLIGIBLE_MASS and balance.is_balanced
    estimates = {}
    for name in estimators:
        one = ESTIMATORS[name](rows, alpha)
        if rows.weights.is_estimated and one.validity is not Validity.NONE:
            one = one._replace(validity=Validity.IF_SHARES_CORRECT)
        estimates[name] = (one if enough else one._replace(value=None)).rescale(*ends)
    return estimates


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
        ends = weights.values * rows.outcomes, 1.0 - weights.values * (1.0 - rows.outcomes)
    sequence = compute_sequence(*ends, rooms, alpha, np.array([terms.size]), rows.ordered or needs_order)
    low, high = float(sequence.low[-1]), float(sequence.high[-1])
    value = float(np.clip(terms.mean(), low, high))
    validity = Validity.IF_POLICY_FIXED if needs_order and not rows.ordered else Validity.ANYTIME
    return Estimate(value, low, high, validity, terms.size)


def estimate_asymptotic(value: float, error: float, rows: SignalRows, alpha: float) -> Estimate:
    """Return an estimate with the interval of the normal approximation, within the range of the outcomes.

    There is no interval if a part of the candidate is unknown, or if all outcomes are the same.
    """
    if not (np.isfinite(value) and error > 0.0) or rows.weights.lost_mass.any():
        finite = float(value) if np.isfinite(value) else None
        return Estimate(finite, np.nan, np.nan, Validity.NONE, rows.outcomes.size)
    half = float(ndtri(1.0 - 0.5 * alpha)) * error
    return Estimate(value, max(value - half, 0.0), min(value + half, 1.0), Validity.ASYMPTOTIC, rows.outcomes.size)


# Linear regressions, each fitted without the rows that it predicts. The doubly robust estimate is unbiased with any
# prediction that does not use the row itself; a good prediction makes it precise. A confidence sequence needs
# predictions from earlier rows.


def build_features(log: Log) -> Floats:
    """Return 1, the numbers scaled to [−1, 1] and indicators of the first segments (n, d); 0 for missing values.

    The most frequent segments would depend on later rows.
    """
    columns = [np.ones(log.rows)]
    for column, (_, (low, high)) in zip(log.numbers.T, log.problem.ranges, strict=True):
        within = np.clip(column, low, high)
        columns.append(np.nan_to_num((2.0 * within - low - high) / (high - low)))
    for texts in log.segments.values():
        names_or_empty = np.where(texts == None, "", texts).astype(str)  # noqa: E711
        names, first, codes = np.unique(names_or_empty, return_index=True, return_inverse=True)
        early = [code for code in np.argsort(first) if names[code]][:MAX_SEGMENTS]
        columns += [(codes == code) * 1.0 for code in early]
    return np.column_stack(columns)


def predict_outcomes(features: Floats, actions: Ints, outcomes: Floats, count: int, parts: Ints) -> Floats:
    """Return predictions (n, count) for each of `count` actions, within [0, 1]: of each part from the earlier ones."""
    total = RidgeSums.of(features, actions, outcomes, count, np.zeros(actions.size, dtype=bool))
    predictions = np.zeros((len(actions), count))
    for part in np.unique(parts).tolist():
        rows = parts == part
        coefficients, mean = total.fit()
        predictions[rows] = np.clip(features[rows] @ coefficients.T + mean, 0.0, 1.0)
        total = total.add(RidgeSums.of(features, actions, outcomes, count, rows))
    return predictions


class RidgeSums(NamedTuple):
    """The sums for ridge regressions, one per action, around the mean of all outcomes."""

    squares: Floats  # (K, d, d)
    products: Floats  # (K, d)
    features: Floats  # (K, d)
    outcome: float
    rows: float

    @classmethod
    def of(cls, features: Floats, actions: Ints, outcomes: Floats, count: int, rows: Flags) -> Self:
        chosen = [rows & (actions == action) for action in range(count)]
        return cls(
            np.stack([features[each].T @ features[each] for each in chosen]),
            np.stack([features[each].T @ outcomes[each] for each in chosen]),
            np.stack([features[each].sum(axis=0) for each in chosen]),
            float(outcomes[rows].sum()),
            float(np.count_nonzero(rows)),
        )

    def add(self, other: Self) -> Self:
        pairs: Any = zip(self, other, strict=True)
        return type(self)(*(mine + theirs for mine, theirs in pairs))

    def fit(self) -> tuple[Floats, float]:
        """Return the coefficients (K, d) for the outcomes minus their mean, and that mean, 0 without outcomes."""
        mean = self.outcome / self.rows if self.rows > 0.0 else 0.0
        residuals = self.products - mean * self.features
        solution = np.linalg.solve(self.squares + RIDGE * np.eye(residuals.shape[1]), residuals[..., None])
        return np.asarray(solution[..., 0], dtype=np.float64), mean


def assign_parts(rows: int) -> Ints:
    """Return the time block (n,) of each row; each is half as long as all before."""
    ends, end = [0], float(FIRST_BLOCK)
    while ends[-1] < rows:
        ends.append(min(int(end), rows))
        end *= GROWTH
    return np.repeat(np.arange(len(ends) - 1), [b - a for a, b in pairwise(ends)])
