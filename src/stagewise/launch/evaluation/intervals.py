"""Each estimator with its interval, in the signal's own units; the worst case where a part is not known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri  # type: ignore[import-untyped]

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.evaluation.balance import Balance
from stagewise.launch.evaluation.estimate import ANYTIME, ASYMPTOTIC, FIXED, NONE, SHARES, Estimate
from stagewise.launch.evaluation.estimators import deviation, dr_terms, ips_terms, snips, snips_deviation
from stagewise.launch.evaluation.sequence import Sequence as Running
from stagewise.launch.evaluation.sequence import moments, sequence
from stagewise.launch.evaluation.weights import SLIGHT, Weights
from stagewise.launch.log import NOTHING


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one signal, as estimators need them."""

    actions: Ints  # (n,)
    outcomes: Floats  # (n,) in [0, 1]
    weights: Weights
    regression: Floats | None  # (n, K) what is expected of each action, in [0, 1]
    ordered: bool = True  # they stand in the order in which they were decided, or in one that is as good

    def taken(self, some: Any) -> "Rows":
        """Return some of the rows."""
        regression = None if self.regression is None else self.regression[some]
        return Rows(self.actions[some], self.outcomes[some], self.weights.taken(some), regression, self.ordered)

    def baselines(self) -> tuple[Floats, Floats]:
        """Return what was expected of what was done, and of the candidate (n,)."""
        regression, kept = self.regression, self.weights.kept
        assert regression is not None
        assert kept is not None
        known = self.actions != NOTHING
        done = np.where(known, regression[np.arange(known.size), self.actions], 0.0)
        return done, np.einsum("nk,nk->n", kept, regression)


def estimates_of(
    rows: Rows, balance: Balance, estimators: Sequence[str], alpha: float, ends: tuple[float, float], past: bool
) -> dict[str, Estimate]:
    """Return the estimates of one signal, each with an interval at 1 − α; neither where weights cannot be right."""
    if balance.contradicted:
        return dict.fromkeys(estimators, Estimate(None, np.nan, np.nan, NONE, rows.outcomes.size))
    ways = {"ips": of_ips, "snips": of_snips, "dr": of_dr if past else of_folds}
    enough = float(rows.weights.lost.mean()) <= SLIGHT and balance.even
    made = {name: ways[name](rows, alpha) for name in estimators}
    if rows.weights.guessed:
        made = {name: one._replace(holds=one.holds if one.holds == NONE else SHARES) for name, one in made.items()}
    return {name: in_units(one if enough else one._replace(value=None), ends) for name, one in made.items()}


def anytime(terms: Floats, rows: Rows, regression: bool, alpha: float) -> Estimate:
    """Return the mean of terms with the interval that holds at all times.

    Where it is not known what else the log could have done, its ends are those of wₜ yₜ and 1 − wₜ (1 − yₜ), also for a
    regression: both terms are at least 0, whatever could have been drawn (docs/theory/evaluation.md, Lemma 3). Where it
    is not known either in which order a policy that may have adapted decided, they are those of the worst order (Lemma
    5); only a regression needs one, and holds if there was nothing to adapt.
    """
    weights, rooms = rows.weights, rows.weights.rooms(regression)
    ends, needs_order = (terms, terms + weights.lost), regression and weights.complete
    if not weights.complete:
        ends = ips_terms(weights.values, rows.outcomes), 1.0 - ips_terms(weights.values, 1.0 - rows.outcomes)
    one_by_one = rows.ordered or needs_order
    after = moments(terms.size) if one_by_one else np.array([terms.size])
    running = sequence(*ends, rooms, alpha, after, one_by_one)
    low, high = float(running.low[-1]), float(running.high[-1])
    value = float(np.clip(terms.mean(), low, high))
    holds = FIXED if needs_order and not rows.ordered else ANYTIME
    return Estimate(value, low, high, holds, terms.size, running if one_by_one else None)


def of_ips(rows: Rows, alpha: float) -> Estimate:
    """Return the inverse propensity estimate."""
    return anytime(ips_terms(rows.weights.values, rows.outcomes), rows, False, alpha)


def of_dr(rows: Rows, alpha: float) -> Estimate:
    """Return the doubly robust estimate, each row by a regression on rows before it."""
    return anytime(dr_terms(rows.weights.values, rows.outcomes, *rows.baselines()), rows, True, alpha)


def of_folds(rows: Rows, alpha: float) -> Estimate:
    """Return the doubly robust estimate, each row by a regression on other folds: no martingale, so no sequence."""
    terms = dr_terms(rows.weights.values, rows.outcomes, *rows.baselines())
    return asymptotic(float(np.clip(terms.mean(), 0.0, 1.0)), deviation(terms), rows, alpha)


def of_snips(rows: Rows, alpha: float) -> Estimate:
    """Return the self-normalised estimate."""
    weights, outcomes = rows.weights.values, rows.outcomes
    return asymptotic(snips(weights, outcomes), snips_deviation(weights, outcomes), rows, alpha)


def asymptotic(value: float, spread: float, rows: Rows, alpha: float) -> Estimate:
    """Return an estimate with the interval of the normal approximation, within the range of the outcomes.

    Where a part of the candidate is not known the rest would have to be scaled up by it: there is no interval then, nor
    where all outcomes are the same.
    """
    if not (np.isfinite(value) and spread > 0.0) or rows.weights.lost.any():
        named = float(value) if np.isfinite(value) else None
        return Estimate(named, np.nan, np.nan, NONE, rows.outcomes.size)
    half = float(ndtri(1.0 - 0.5 * alpha)) * spread
    return Estimate(value, max(value - half, 0.0), min(value + half, 1.0), ASYMPTOTIC, rows.outcomes.size)


def in_units(one: Estimate, ends: tuple[float, float]) -> Estimate:
    """Return an estimate in the signal's own units."""
    low, length = ends[0], ends[1] - ends[0]
    value = None if one.value is None else low + length * one.value
    running = one.running
    if running is not None:
        after, *lines = running
        running = Running(after, *(low + length * line for line in lines))
    return one._replace(value=value, low=low + length * one.low, high=low + length * one.high, running=running)
