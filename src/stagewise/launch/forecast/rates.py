"""What a log says of a rate: a Beta distribution for every action, and in every segment one around it.

    p_a ~ Beta(½ + κ_a m_a, ½ + κ_a (1 − m_a)),    κ_a = n m̃ (1 − m̃)/s²

Of outcomes that are 0 or 1 κ is n, the rows, and this is Jeffreys' posterior, whose intervals hold their level even
where outcomes are rare; others are worth as many rows as their variance s² says. With segments g

    p_ag ~ Beta(τ p_a + κ_ag m_ag, τ (1 − p_a) + κ_ag (1 − m_ag)),    τ = ½/min(p_a, 1 − p_a)

so that a segment with few rows is like the others, as if half an event more had been seen there. An action without
rows has Beta(½, ½): anything between 0 and 1; those with rows have more than these halves in common (`alike`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri  # type: ignore[import-untyped]

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.forecast.alike import drawn_together

HALF = 0.5
LEAST = 1e-9
WIDEST = 1.0 / 8.0  # the variance of Beta(½, ½)


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
        return int(self.rows.size + self.rows_by.size) + 2

    def drawn(self, uniform: Floats) -> Floats:
        """Return a draw of the rates: (1, K), or (G, K) by segment."""
        (ones, others), count = self.before(uniform[-2:]), self.rows.size
        each = betaincinv(ones + self.ones, others + self.rows - self.ones, uniform[:count])
        if not self.rows_by.size:
            return np.asarray(each)[np.newaxis]
        centre = np.clip(each, LEAST, 1.0 - LEAST)
        chances = uniform[count:-2].reshape(self.rows_by.shape)
        alike = HALF / np.minimum(centre, 1.0 - centre)
        low, high = alike * centre + self.ones_by, alike * (1.0 - centre) + self.rows_by - self.ones_by
        return np.asarray(betaincinv(low, high, chances))

    def before(self, uniform: Floats) -> tuple[Floats, Floats]:
        """Return what counts as seen beforehand (K,): Jeffreys' halves, or as much as actions with rows are alike."""
        ones, others = np.full(self.rows.size, HALF), np.full(self.rows.size, HALF)
        known = self.rows > 0.0
        rows, rates = self.rows[known] + 1.0, (self.ones[known] + HALF) / (self.rows[known] + 1.0)
        own = (rates * (1.0 - rates) / rows)[:, np.newaxis]
        common = drawn_together(rates[:, np.newaxis], own, np.full(1, WIDEST), uniform[:1], ndtri(uniform[1:]))
        if common is not None:
            centre = float(np.clip(common.centre[0], 0.5 * rates.min(), 1.0 - 0.5 * (1.0 - rates.max())))
            alike = max(centre * (1.0 - centre) / float(common.spread[0]) - 1.0, 0.0)
            ones[known], others[known] = max(alike * centre, HALF), max(alike * (1.0 - centre), HALF)
        return ones, others


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
    return np.asarray(ones, dtype=np.float64), np.asarray(np.bincount(cells, each, count), dtype=np.float64)
