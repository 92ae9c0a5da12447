"""Signals of actions in a context: linear in it action by action, or rates by action and segment."""

import math
from typing import Literal, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import APIECE, CELLS
from stagewise.kernels.signals.radius import JOINT
from stagewise.models.answers import register
from stagewise.models.arms import SMALLEST_RATE
from stagewise.models.for_users import CellsAnswers, PiecesAnswers
from stagewise.models.part import Modelled

register(APIECE, PiecesAnswers())
register(CELLS, CellsAnswers())
SignalModel = Literal["linear", "rates"]
NOISE = 0.5  # of numbers in a range of length 1
RESERVED = 0.1  # of δ, for actions that come later


class Signal(NamedTuple):
    """What is assumed of one signal, whose outcomes lie in [low, low + 1]."""

    place: int  # 0: the reward
    low: float
    lower: float  # log 1/δ of the lower ends of all its actions together, and of all its segments
    upper: float  # the same of the upper ends
    declared: float  # of the safe action: the most that a cost may be, the least that the reward is; ±∞: nothing
    expected: float  # about how large its rates are, above `low`: a cost's as large as its limit

    def linear(self, size: int, shares: Floats, ridge: float, bound: float) -> Modelled:
        """Return regressions on n features, one for each action; `shares` are the actions' shares of δ."""
        both = -math.log(math.exp(-self.lower) + math.exp(-self.upper))  # an ellipsoid has both ends
        rows = [[ridge, 1.0, 0.0, NOISE, bound, both - math.log(share), 0.0] for share in shares]
        numbers = np.concatenate([*rows, [self.low, self.low + 1.0, self.declared]])
        return Modelled((APIECE, self.place, 1, size, JOINT, 0, 0, shares.size, 0), numbers)

    def rates(self, column: int, shares: Floats) -> Modelled:
        """Return rates, by the segment that stands in a column of the rows; −1: by action alone."""
        expected = min(max(self.expected, SMALLEST_RATE), 0.5)
        numbers = np.concatenate([[self.low, self.declared, expected, self.lower, self.upper], -np.log(shares)])
        return Modelled((CELLS, self.place, 1, shares.size, 0, 0, 0, column, 0), numbers)


def action_shares(actions: int, launched: int) -> Floats:
    """Return how much of δ each action takes: those there were at first share alike, later ones what was kept back.

    >>> action_shares(3, 2).round(4)
    array([0.45, 0.45, 0.05])
    """
    later = np.arange(1.0, actions - launched + 1.0)
    return np.concatenate([np.full(launched, (1.0 - RESERVED) / launched), RESERVED / (later * (later + 1.0))])
