"""Whether weights average 1, as they do where the rows of a log were drawn with the probabilities it says."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.evaluation.sequence import distance
from stagewise.launch.evaluation.weights import SLIGHT, Weights


class Balance(NamedTuple):
    """The mean weight of some rows, with its interval (docs/theory/evaluation.md, Lemma 4)."""

    mean: float
    low: float
    high: float
    complete: bool
    """Whether the log says how likely every action was: then too little is a contradiction too."""

    @classmethod
    def of(cls, weights: Weights, alpha: float, ordered: bool = True) -> "Balance":
        """Return what some rows say, at 1 − α; `ordered`: they stand as they were decided, or as good as that."""
        whole = weights.values + weights.lost
        proved = whole if weights.complete else weights.values  # what was never drawn may have been possible
        room = 1.0 + weights.excess
        low = float(proved.mean()) - spare(proved, 1.0, alpha, ordered)
        high = float(whole.mean()) + spare(1.0 - whole, room, alpha, ordered)
        return cls(float(whole.mean()), low, high, weights.complete)

    @property
    def even(self) -> bool:
        """Whether an estimate may be named."""
        return self.low <= 1.0 + SLIGHT and self.high >= 1.0 - SLIGHT

    @property
    def contradicted(self) -> bool:
        """Whether the log cannot have been drawn as it says, so that no interval holds."""
        return not self.even and (self.complete or self.low > 1.0 + SLIGHT)

    @property
    def words(self) -> str:
        """What is wrong, in a sentence; empty: nothing is."""
        if self.even:
            return ""
        if self.contradicted:
            surely = f"above {self.low:.4g}" if self.low > 1.0 + SLIGHT else f"below {self.high:.4g}"
            return (
                f"weights average {self.mean:.4g}, surely {surely}, and 1 where rows were drawn with the probabilities "
                "that are said: rows are missing from the log, or these are not its probabilities; no estimate is "
                "named, and no limit judged"
            )
        return (
            f"weights average {self.mean:.4g}, and 1 where the log could do all that the candidate does: a part of it "
            "the log did never or hardly ever; no estimate is named, and intervals hold whatever came of that"
        )


def spare(terms: Floats, room: float, alpha: float, ordered: bool) -> float:
    """Return how far the mean of terms may be above what is expected, each side at half of α."""
    return float(distance(terms, room, 0.5 * alpha, np.array([terms.size]), ordered)[0])
