"""Test that weights average 1, as they do if the rows were drawn with the given probabilities."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.evaluation.confidence_sequence import compute_radius
from stagewise.launch.evaluation.weights import NEGLIGIBLE_MASS, Weights
from stagewise.launch.notes import NoteCode


class Balance(NamedTuple):
    """The mean weight of some rows, with its interval (docs/theory/evaluation.md, Lemma 4)."""

    mean: float
    low: float
    high: float
    complete: bool
    """Whether the log has the probability of every action; then a low mean is a contradiction too."""

    @classmethod
    def of(cls, weights: Weights, alpha: float, ordered: bool = True) -> "Balance":
        """Return the balance of some rows at 1 − α; `ordered`: they are in the order of the decisions."""
        complete = weights.values + weights.lost_mass
        lower = (
            complete if weights.complete else weights.values
        )  # an action that was never drawn may have been possible
        room = 1.0 + weights.excess
        low = float(lower.mean()) - compute_margin(lower, 1.0, alpha, ordered)
        high = float(complete.mean()) + compute_margin(1.0 - complete, room, alpha, ordered)
        return cls(float(complete.mean()), low, high, weights.complete)

    @property
    def is_balanced(self) -> bool:
        """Whether an estimate may be given."""
        return self.low <= 1.0 + NEGLIGIBLE_MASS and self.high >= 1.0 - NEGLIGIBLE_MASS

    @property
    def contradicted(self) -> bool:
        """Whether the log cannot have been drawn with these probabilities, so that no interval holds."""
        return not self.is_balanced and (self.complete or self.low > 1.0 + NEGLIGIBLE_MASS)

    @property
    def note_code(self) -> NoteCode | None:
        """The code of the note on these weights; None if they are balanced."""
        if self.is_balanced:
            return None
        return NoteCode.WEIGHTS_CONTRADICT if self.contradicted else NoteCode.WEIGHTS_UNBALANCED


def compute_margin(terms: Floats, room: float, alpha: float, ordered: bool) -> float:
    """Return how far the mean of terms may be above its expectation, each side at half of α."""
    return float(compute_radius(terms, room, 0.5 * alpha, np.array([terms.size]), ordered)[0])
