"""What each row of a log counts for a candidate, with a bound on it, and what part of it no row speaks for."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.evaluation.propensities import Propensities
from stagewise.launch.log import NOTHING, Log
from stagewise.problem.checks import positive
from stagewise.problem.errors import InvalidOutcome

ROUNDING = 1e-9  # a mass below it is none
SLIGHT = 1e-3  # of a candidate's mass, below which an estimate may still be named
OWN = "the log's own policy"
DEAR = 0.01  # what a bound may add to an interval, as a share of the range, before clipping is thought of


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of a candidate, each at most `bound`."""

    values: Floats
    """wₜ = min(π(aₜ|xₜ) / pₜ(aₜ|xₜ), W), for each row (n,)."""
    kept: Floats | None
    """min(π(a|xₜ), W pₜ(a|xₜ)) (n, K): the part of the candidate that the log speaks for; None: not known."""
    lost: Floats
    """1 − Σₐ kept (n,): the part that it does not."""
    unsupported: Floats
    """The share (K,) of the candidate that goes to each action where the log could not have taken it."""
    bound: float
    """W, which no weight exceeds."""
    excess: float
    """What w (1 − p) is at most: a term leaves the range of the outcomes by no more."""
    source: str
    """Where the bound comes from, in words."""
    complete: bool = True
    """Whether the log says how likely every action was; else intervals rest on no bound, and not on `kept`."""
    guessed: bool = False
    """Whether the probabilities were reckoned from the log itself, so that no interval is sure."""

    @property
    def clipped(self) -> float:
        """The share of the candidate that is lost since weights are clipped."""
        return max(float(self.lost.mean()) - float(self.unsupported.sum()), 0.0)

    def rooms(self, regression: bool) -> tuple[float, float]:
        """Return c from below and from above: no term is farther on that side from a guess in [0, 1]."""
        if not self.complete:
            return 1.0, 1.0
        if regression:
            return 1.0 + self.excess, 1.0 + self.excess
        return 1.0, self.bound if not self.lost.any() else 1.0 + self.excess

    def taken(self, rows: Any) -> "Weights":
        """Return the weights of some of the rows; what bounds them stays."""
        kept = None if self.kept is None else self.kept[rows]
        return replace(self, values=self.values[rows], kept=kept, lost=self.lost[rows])


def own_weights(log: Log) -> Weights:
    """Return the weights of the policy that made the log: every row counts as it is, and needs no regression."""
    nothing = np.zeros(len(log.problem.actions))
    return Weights(np.ones(log.rows), None, np.zeros(log.rows), nothing, 1.0, 1.0, OWN)


def weights_of(log: Log, drawn: Propensities, candidate: Floats, alpha: float, bound: float | None = None) -> Weights:
    """Return the weights of a candidate (n, K), clipped at a bound where one is given, or where they are too large."""
    said = None if bound is None else positive(bound, "weight_bound")
    if said is not None and said < 1.0:
        raise InvalidOutcome(f"weight_bound is {said:g}; weights average 1, so a bound must be at least 1")
    if drawn.every is None:
        return of_done(log, drawn, candidate, said)
    every = drawn.every
    ratios = np.divide(candidate, every, out=np.zeros_like(candidate), where=every > 0.0)
    largest = max(float(ratios.max()), 1.0)
    most, source = chosen(said, largest, drawn, candidate, alpha, log.rows)
    clips = largest > most * (1.0 + ROUNDING)
    kept = np.minimum(candidate, most * every) if clips else np.where(every > 0.0, candidate, 0.0)
    lost = np.maximum(1.0 - kept.sum(axis=1), 0.0)
    lost[lost < ROUNDING] = 0.0
    known = log.actions != NOTHING
    values = np.where(known, np.minimum(ratios[np.arange(log.rows), log.actions], most), 0.0)
    excess = most if said is not None else float((np.minimum(ratios, most) * (1.0 - every)).max())
    unsupported = np.where(every > 0.0, 0.0, candidate).mean(axis=0)
    return Weights(values, kept, lost, unsupported, most, excess, source, guessed=drawn.estimated)


def chosen(
    said: float | None, largest: float, drawn: Propensities, candidate: Floats, alpha: float, rows: int
) -> tuple[float, str]:
    """Return the bound on the weights, and where it comes from: it never looks at what came of anything."""
    if said is not None:
        return said, "as said"
    price = np.log(2.0 / alpha) / rows  # what an interval is wider for each 1 of the bound
    if largest * price <= DEAR:
        return largest, "the largest that the log's probabilities allow"
    assert drawn.every is not None
    best, least, most = largest, largest * price, largest
    supported = np.where(drawn.every > 0.0, candidate, 0.0)
    while (most := 0.5 * most) >= 1.0:
        loss = float(np.maximum(supported - most * drawn.every, 0.0).sum(axis=1).mean())
        if loss <= SLIGHT and most * price + loss < least:
            best, least = most, most * price + loss
    clipped = "clipped: larger ones would widen the interval by more than they tell"
    return best, clipped if best < largest else "the largest that the log's probabilities allow"


def of_done(log: Log, drawn: Propensities, candidate: Floats, said: float | None) -> Weights:
    """Return weights where only the probability of what was done is known.

    What else could have been drawn is known only where nothing could: a row that was sure leaves nothing to the others.
    """
    known, rows = log.actions != NOTHING, np.arange(log.rows)
    ratios = np.where(known, candidate[rows, log.actions] / np.where(known, drawn.done, 1.0), 0.0)
    largest = max(float(ratios.max()), 1.0)
    if said is not None and largest > said:
        raise InvalidOutcome(
            f"weight_bound is {said:g}, and a row weighs {largest:g}; what clipping loses can only be told where the "
            "log has the probabilities of all actions, in columns 'probability.ACTION'"
        )
    places = np.arange(candidate.shape[1])
    sure = known & (drawn.done >= 1.0 - ROUNDING)
    never = ~np.isin(places, log.actions) | (sure[:, None] & (log.actions[:, None] != places))
    kept = np.where(never, 0.0, candidate)
    lost = np.maximum(1.0 - kept.sum(axis=1), 0.0)
    lost[lost < ROUNDING] = 0.0
    most, source = (largest, "the largest that came") if said is None else (said, "as said")
    unsupported = np.where(never, candidate, 0.0).mean(axis=0)
    return Weights(ratios, kept, lost, unsupported, most, most, source, complete=False)
