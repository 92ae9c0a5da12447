"""Signals of actions in a context: linear in it action by action, or rates by action and segment."""

import math
from typing import Literal, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import APIECE, CELLS
from stagewise.kernels.signals.radius import JOINT
from stagewise.models.part import Modelled

SignalModel = Literal["linear", "rates"]
NOISE = 0.5  # of numbers in a range of length 1
LEAST = 1e-6  # a mean that is smaller makes no sharper a set
RESERVED = 0.1  # of δ, for actions that come later


class Signal(NamedTuple):
    """What is assumed of one signal, whose outcomes lie in [low, low + 1]."""

    place: int  # 0: the reward
    low: float
    confidence: float  # log 1/δ of all its actions together, and of all its segments
    declared: float  # of the safe action: the most that a cost may be, the least that the reward is; ±∞: nothing
    limit: float | None  # of a cost

    @property
    def prior(self) -> tuple[float, float]:
        """A and b of the coins that rates are held against."""
        return tilt(0.5 if self.limit is None else self.limit - self.low)

    def linear(self, size: int, shares: Floats, ridge: float, bound: float) -> Modelled:
        """Return regressions on n features, one for each action; `shares` are the actions' shares of δ."""
        told = [[ridge, 1.0, 0.0, NOISE, bound, self.confidence - math.log(share), 0.0] for share in shares]
        numbers = np.concatenate([*told, [self.low, self.low + 1.0, self.declared]])
        return Modelled((APIECE, self.place, 1, size, JOINT, 0, 0, shares.size, 0), numbers)

    def rates(self, column: int, shares: Floats) -> Modelled:
        """Return rates, by the segment that stands in a column of the rows; −1: by action alone."""
        numbers = np.concatenate([[self.confidence, self.low, self.declared, *self.prior], -np.log(shares)])
        return Modelled((CELLS, self.place, 1, shares.size, 0, 0, 0, column, 0), numbers)


def tilt(mean: float) -> tuple[float, float]:
    """Return a and b of a Beta distribution with this mean, one of them ½.

    >>> tilt(0.5), tilt(0.02)
    ((0.5, 0.5), (0.5, 24.5))
    """
    share = min(max(mean, LEAST), 1.0 - LEAST)
    return (0.5, 0.5 * (1.0 - share) / share) if share <= 0.5 else (0.5 * share / (1.0 - share), 0.5)


def action_shares(actions: int, launched: int) -> Floats:
    """Return how much of δ each action takes: those there were at first share alike, later ones what was kept back.

    >>> action_shares(3, 2).round(4)
    array([0.45, 0.45, 0.05])
    """
    later = np.arange(1.0, actions - launched + 1.0)
    return np.concatenate([np.full(launched, (1.0 - RESERVED) / launched), RESERVED / (later * (later + 1.0))])
