"""Whether realised costs are above their limit: an e-process for each limit, which trips the desk by itself.

Every decision's expected cost is at most τ, whatever came before it. So for each bet f in (0, 1) the wealth

    W_n(f) = Π_{i ≤ n} (1 + f (x_i − τ)/τ),   x_i in [0, 1], in the order of the decisions

is a non-negative supermartingale that starts at 1, and so is the average over bets. By Ville's inequality it ever
reaches 1/α with probability at most α, if all is as promised. At-least limits are the same with 1 − x and 1 − τ. Where
versions of the problem move a limit, τ is the one a decision was made under: nothing else was promised of it.
"""

import math

import numpy as np

from stagewise.kernels.compile import Floats

BETS = np.array([0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625])


class Trip:
    """The wealth of one limit.

    >>> trip = Trip(0.02, level=0.01)
    >>> trip.take(np.zeros(100)), trip.take(np.ones(10))
    (False, True)
    """

    def __init__(self, threshold: float, level: float) -> None:
        self.threshold, self.level = threshold, level
        self.wealth = np.zeros(BETS.size)  # logarithms
        self.count, self.total = 0, 0.0
        self.tripped = False

    def take(self, costs: Floats, thresholds: Floats | None = None) -> bool:
        """Take in costs in [0, 1] in their order; say whether the test is lost, now or before.

        `thresholds`: what was promised of each, where that is not the same for all.
        """
        limits = np.full(costs.size, self.threshold) if thresholds is None else thresholds
        told = (limits > 0.0) & (limits < 1.0)
        costs, limits = costs[told], limits[told]
        if not costs.size:
            return self.tripped
        steps = np.log1p(np.outer((costs - limits) / limits, BETS))
        paths = np.cumsum(np.vstack([self.wealth, steps]), axis=0)[1:]
        self.wealth = paths[-1].copy()
        self.count, self.total = self.count + costs.size, float(np.cumsum(np.append(self.total, costs))[-1])
        most = paths.max(axis=1)
        richest = most + np.log(np.mean(np.exp(paths - most[:, None]), axis=1))
        self.tripped = self.tripped or bool(richest.max() >= -math.log(self.level))
        return self.tripped

    def plain(self) -> list[float]:
        """Return it for a snapshot."""
        return [*self.wealth.tolist(), float(self.count), self.total, float(self.tripped)]

    def restore(self, plain: list[float]) -> None:
        """Go on from what `plain` wrote down."""
        *wealth, count, total, tripped = plain
        self.wealth, self.count, self.total, self.tripped = np.array(wealth), int(count), total, bool(tripped)
