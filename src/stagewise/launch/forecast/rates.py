"""What a log says of a rate: a Beta distribution for every action, and in every segment one around it.

    p_a ~ Beta(½ + κ_a m_a, ½ + κ_a (1 − m_a)),    κ_a = n m̃ (1 − m̃)/s²

Of outcomes that are 0 or 1 κ is n, the rows, and this is Jeffreys' posterior, whose intervals hold their level even
where outcomes are rare; others are worth as many rows as their variance s² says. With segments g

    p_ag ~ Beta(τ p_a + κ_ag m_ag, τ (1 − p_a) + κ_ag (1 − m_ag))

so that a segment with few rows is like the others, within what it shows itself. An action without rows has Beta(½, ½):
anything between 0 and 1.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from stagewise.kernels.compile import Floats, Ints

HALF = 0.5
ALIKE = 2.0  # τ: rows that the other segments count as
LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of one signal, each scaled to [0, 1]."""

    ones: Floats  # (K,) κ m of all rows of an action
    rows: Floats  # (K,) κ
    ones_by: Floats  # (G, K) the same by segment; (0, K): there are none
    rows_by: Floats  # (G, K)

    @classmethod
    def of(cls, actions: Ints, groups: Ints | None, values: Floats, count: int) -> "Rates":
        """Return what rows say: what was done (n,), in which segment (n,), and what came of it (n,)."""
        worth = worth_of(actions, values, count)
        ones, rows = summed(actions, values, worth, count)
        segments = 0 if groups is None else int(groups.max(initial=-1)) + 1
        cells = actions if groups is None else groups * count + actions
        by = summed(cells, values, worth[actions], segments * count) if segments else (np.empty(0), np.empty(0))
        return cls(ones, rows, by[0].reshape(segments, count), by[1].reshape(segments, count))

    @property
    def draws(self) -> int:
        """How many uniform numbers a draw takes."""
        return int(self.rows.size + self.rows_by.size)

    def drawn(self, uniform: Floats) -> Floats:
        """Return a draw of the rates: (1, K), or (G, K) by segment."""
        each = betaincinv(HALF + self.ones, HALF + self.rows - self.ones, uniform[: self.rows.size])
        if not self.rows_by.size:
            return np.asarray(each)[np.newaxis]
        centre = np.clip(each, LEAST, 1.0 - LEAST)
        chances = uniform[self.rows.size :].reshape(self.rows_by.shape)
        low, high = ALIKE * centre + self.ones_by, ALIKE * (1.0 - centre) + self.rows_by - self.ones_by
        return np.asarray(betaincinv(low, high, chances))


def worth_of(actions: Ints, values: Floats, count: int) -> Floats:
    """Return how many rows of zeros and ones a row of each action (K,) is worth: more than 1 where they vary less."""
    worth = np.ones(count)
    for action in range(count):
        seen = values[actions == action]
        if seen.size and not np.isin(seen, (0.0, 1.0)).all():
            mean = (seen.sum() + HALF) / (seen.size + 1.0)
            spread = (np.square(seen - seen.mean()).sum() + mean * (1.0 - mean)) / seen.size  # one row of the widest
            worth[action] = max(mean * (1.0 - mean) / spread, 1.0)
    return worth


def summed(cells: Ints, values: Floats, worth: Floats, count: int) -> tuple[Floats, Floats]:
    """Return κ m and κ of every cell; `worth` is a cell's, or a row's own."""
    each = worth[cells] if worth.size == count else worth
    ones = np.bincount(cells, weights=each * values, minlength=count)
    return ones, np.bincount(cells, weights=each, minlength=count)
