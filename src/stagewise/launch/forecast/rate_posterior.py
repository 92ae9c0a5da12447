"""The posterior of a rate given a log: a Beta distribution by action, and around it one by segment.

    p_a ~ Beta(½ + κ_a m_a, ½ + κ_a (1 − m_a)),    κ_a = n m̃ (1 − m̃)/s²

For binary outcomes κ is the number of rows, and this is Jeffreys' posterior, whose intervals keep their level even for
rare outcomes; other outcomes count as many rows as their variance s² implies. With segments g

    p_ag ~ Beta(τ p_a + κ_ag m_ag, τ (1 − p_a) + κ_ag (1 − m_ag)),    τ = ½/min(p_a, 1 − p_a)

so a segment with few rows is like the others, with half an event more. An action without rows has Beta(½, ½); actions
with rows share a common prior (`shrinkage`).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri  # type: ignore[import-untyped]

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.forecast.shrinkage import draw_common_prior

JEFFREYS = 0.5
MIN_RATE = 1e-9
MAX_VARIANCE = 1.0 / 8.0  # of Beta(½, ½)


@dataclass(frozen=True, eq=False)
class RatePosterior:
    """The rates of one signal, scaled to [0, 1]."""

    ones: Floats  # (K,) κ m of all rows of an action
    rows: Floats  # (K,) κ
    ones_by: Floats  # (G, K) the same by segment; (0, K): there are none
    rows_by: Floats  # (G, K)

    @classmethod
    def of(cls, actions: Ints, groups: Ints | None, values: Floats, count: int) -> "RatePosterior":
        """Fit actions (n,), segments (n,) and outcomes (n,)."""
        row_weights = compute_row_weights(actions, values, count)
        ones, rows = sum_cells(actions, values, row_weights, count)
        segments = 0 if groups is None else int(groups.max(initial=-1)) + 1
        cells = actions if groups is None else groups * count + actions
        by = (
            sum_cells(cells, values, row_weights[actions], segments * count) if segments else (np.empty(0), np.empty(0))
        )
        return cls(ones, rows, by[0].reshape(segments, count), by[1].reshape(segments, count))

    @property
    def sample_size(self) -> int:
        """The number of uniform variates of a draw."""
        return int(self.rows.size + self.rows_by.size) + 2

    def sample(self, uniform: Floats) -> Floats:
        """Return a draw of the rates: (1, K), or (G, K) by segment."""
        (ones, others), count = self.sample_prior(uniform[-2:]), self.rows.size
        each = betaincinv(ones + self.ones, others + self.rows - self.ones, uniform[:count])
        if not self.rows_by.size:
            return np.asarray(each)[np.newaxis]
        centre = np.clip(each, MIN_RATE, 1.0 - MIN_RATE)
        uniforms = uniform[count:-2].reshape(self.rows_by.shape)
        strength = JEFFREYS / np.minimum(centre, 1.0 - centre)
        low, high = strength * centre + self.ones_by, strength * (1.0 - centre) + self.rows_by - self.ones_by
        return np.asarray(betaincinv(low, high, uniforms))

    def sample_prior(self, uniform: Floats) -> tuple[Floats, Floats]:
        """Return the prior counts (K,): Jeffreys' halves, or a common prior for actions with rows."""
        ones, others = np.full(self.rows.size, JEFFREYS), np.full(self.rows.size, JEFFREYS)
        known = self.rows > 0.0
        rows, rates = self.rows[known] + 1.0, (self.ones[known] + JEFFREYS) / (self.rows[known] + 1.0)
        variances = (rates * (1.0 - rates) / rows)[:, np.newaxis]
        common = draw_common_prior(
            rates[:, np.newaxis], variances, np.full(1, MAX_VARIANCE), uniform[:1], ndtri(uniform[1:])
        )
        if common is not None:
            centre = float(np.clip(common.centre[0], 0.5 * rates.min(), 1.0 - 0.5 * (1.0 - rates.max())))
            strength = max(centre * (1.0 - centre) / float(common.variance[0]) - 1.0, 0.0)
            ones[known], others[known] = max(strength * centre, JEFFREYS), max(strength * (1.0 - centre), JEFFREYS)
        return ones, others


def compute_row_weights(actions: Ints, values: Floats, count: int) -> Floats:
    """Return how many binary rows a row of each action (K,) counts as: more than 1 if outcomes vary less."""
    row_weights = np.ones(count)
    for action in range(count):
        outcomes = values[actions == action]
        if outcomes.size and not np.isin(outcomes, (0.0, 1.0)).all():
            mean = (outcomes.sum() + JEFFREYS) / (outcomes.size + 1.0)
            variance = (
                np.square(outcomes - outcomes.mean()).sum() + mean * (1.0 - mean)
            ) / outcomes.size  # with one row of the prior
            row_weights[action] = max(mean * (1.0 - mean) / variance, 1.0)
    return row_weights


def sum_cells(cells: Ints, values: Floats, row_weights: Floats, count: int) -> tuple[Floats, Floats]:
    """Return κ m and κ of every cell; `worth` is by cell or by row."""
    each = row_weights[cells] if row_weights.size == count else row_weights
    ones = np.bincount(cells, weights=each * values, minlength=count)
    return np.asarray(ones, dtype=np.float64), np.asarray(np.bincount(cells, each, count), dtype=np.float64)
