"""Linear means, action by action, as a problem that is linear would fit them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.exchange import Flags

ROWS_A_PARAMETER = 10  # of an action, before its fit is looked at


@dataclass(frozen=True, eq=False)
class Fits:
    """One signal's regressions on a constant and the numbers about users, each scaled to [−1, 1]."""

    chart: Chart
    signal: int

    @cached_property
    def rows(self) -> Flags:
        """The rows (n,) that can be fitted: everything is known, and in its range."""
        inside = (np.abs(self.scaled) <= 1.0 + 1e-9).all(axis=1)  # false for NaN
        return np.asarray(self.chart.seen(self.signal) & inside)

    @cached_property
    def scaled(self) -> Floats:
        """The numbers (n, d), scaled to [−1, 1]."""
        ends = np.array([ends for _, ends in self.chart.log.problem.ranges]).reshape(-1, 2)
        return np.asarray((2.0 * self.chart.log.numbers - ends.sum(axis=1)) / (ends[:, 1] - ends[:, 0]))

    @cached_property
    def design(self) -> Floats:
        """The numbers behind a constant (n, 1 + d)."""
        return np.column_stack([np.ones(len(self.scaled)), self.scaled])

    @cached_property
    def outcomes(self) -> Floats:
        """The outcomes (n,), scaled to [0, 1]."""
        return self.chart.scaled(self.signal)

    def of(self, action: int, some: Flags) -> Ints:
        """Return the rows of an action, by number; none where they are too few to fit anything."""
        places = np.flatnonzero(self.rows & some & (self.chart.log.actions == action))
        return places if places.size >= ROWS_A_PARAMETER * self.design.shape[1] else places[:0]

    def fitted(self, places: Ints) -> Floats:
        """Return the parameter (1 + d,) of some rows by least squares."""
        design = self.design[places]
        return np.asarray(np.linalg.lstsq(design.T @ design, design.T @ self.outcomes[places], rcond=None)[0])

    def predicted(self, fit: Flags, ask: Flags) -> Floats:
        """Return the means (n,) that fits of some rows have for others, action by action; NaN where there is none."""
        told = np.full(self.chart.log.rows, np.nan)
        for action in range(len(self.chart.log.problem.actions)):
            learned, asked = self.of(action, fit), self.of(action, ask)
            if learned.size and asked.size:
                told[asked] = self.design[asked] @ self.fitted(learned)
        return told


def rates(chart: Chart, signal: int, fit: Flags) -> Floats:
    """Return the rate (n,) of every row's cell among some rows, scaled to [0, 1]; NaN where there is none."""
    cells, some = chart.cells(signal), fit & chart.seen(signal)
    size = int(cells.max(initial=-1)) + 1
    counts = np.bincount(cells[some], minlength=size)
    sums = np.bincount(cells[some], chart.scaled(signal)[some], minlength=size)
    with np.errstate(invalid="ignore"):
        return np.asarray((sums / counts)[cells])
