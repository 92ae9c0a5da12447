"""Linear regressions by action, as a linear problem would fit them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import Flags

ROWS_PER_PARAMETER = 10  # of an action, before it is fitted


@dataclass(frozen=True, eq=False)
class LinearFits:
    """The regressions of one signal on a constant and the numbers about users, scaled to [−1, 1]."""

    profile: LogProfile
    signal: int

    @cached_property
    def rows(self) -> Flags:
        """The rows (n,) that can be fitted: all values known and in range."""
        inside = (np.abs(self.scaled) <= 1.0 + 1e-9).all(axis=1)  # false for NaN
        return np.asarray(self.profile.observed(self.signal) & inside)

    @cached_property
    def scaled(self) -> Floats:
        """The numbers (n, d), scaled to [−1, 1]."""
        ends = np.array([ends for _, ends in self.profile.log.problem.ranges]).reshape(-1, 2)
        return np.asarray((2.0 * self.profile.log.numbers - ends.sum(axis=1)) / (ends[:, 1] - ends[:, 0]))

    @cached_property
    def design(self) -> Floats:
        """A constant and the numbers (n, 1 + d)."""
        return np.column_stack([np.ones(len(self.scaled)), self.scaled])

    @cached_property
    def outcomes(self) -> Floats:
        """The outcomes (n,), scaled to [0, 1]."""
        return self.profile.scaled(self.signal)

    def get_rows(self, action: int, chosen: Flags) -> Ints:
        """Return the indices of an action's rows; none if they are too few to fit."""
        indices = np.flatnonzero(self.rows & chosen & (self.profile.log.actions == action))
        return indices if indices.size >= ROWS_PER_PARAMETER * self.design.shape[1] else indices[:0]

    def fit(self, indices: Ints) -> Floats:
        """Return the parameter (1 + d,) of rows by least squares."""
        design = self.design[indices]
        return np.asarray(np.linalg.lstsq(design.T @ design, design.T @ self.outcomes[indices], rcond=None)[0])

    def predict(self, fit: Flags, ask: Flags) -> Floats:
        """Return the means (n,) that fits of some rows predict for others, by action; NaN: none."""
        predictions = np.full(self.profile.log.rows, np.nan)
        for action in range(len(self.profile.log.problem.actions)):
            fitted, predicted = self.get_rows(action, fit), self.get_rows(action, ask)
            if fitted.size and predicted.size:
                predictions[predicted] = self.design[predicted] @ self.fit(fitted)
        return predictions


def compute_cell_rates(profile: LogProfile, signal: int, fit: Flags) -> Floats:
    """Return the rate (n,) of every row's cell among some rows, scaled to [0, 1]; NaN: none."""
    cells, chosen = profile.cells(signal), fit & profile.observed(signal)
    size = int(cells.max(initial=-1)) + 1
    counts = np.bincount(cells[chosen], minlength=size)
    sums = np.bincount(cells[chosen], profile.scaled(signal)[chosen], minlength=size)
    with np.errstate(invalid="ignore"):
        return np.asarray((sums / counts)[cells])
