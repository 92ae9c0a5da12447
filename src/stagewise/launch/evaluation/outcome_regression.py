"""Linear regressions for the doubly robust estimator, each fitted without the rows that it predicts.

The estimate is unbiased with any prediction that does not use the row itself; a good prediction makes it precise. A
confidence sequence needs predictions from earlier rows.
"""

from itertools import pairwise

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import Log
from stagewise.launch.splitmix import hash_row_numbers

RIDGE = 1.0
FIRST_BLOCK = 64  # rows before the first regression; it is repeated whenever the rows have grown by half
GROWTH = 1.5
MAX_SEGMENTS = 50  # segments of a division with a column


def build_features(log: Log) -> Floats:
    """Return 1, the numbers scaled to [−1, 1] and indicators of the first segments (n, d); 0 for missing values.

    The most frequent segments would depend on later rows.
    """
    columns = [np.ones(log.rows)]
    for column, (_, (low, high)) in zip(log.numbers.T, log.problem.ranges, strict=True):
        within = np.clip(column, low, high)
        columns.append(np.nan_to_num((2.0 * within - low - high) / (high - low)))
    for texts in log.segments.values():
        names_or_empty = np.where(texts == None, "", texts).astype(str)  # noqa: E711
        names, first, codes = np.unique(names_or_empty, return_index=True, return_inverse=True)
        early = [code for code in np.argsort(first) if names[code]][:MAX_SEGMENTS]
        columns += [(codes == code) * 1.0 for code in early]
    return np.column_stack(columns)


def predict_outcomes(features: Floats, actions: Ints, outcomes: Floats, count: int, parts: Ints, past: bool) -> Floats:
    """Return predictions (n, count) for each of `count` actions, within [0, 1].

    Each part of the rows is predicted from other parts: the earlier ones, or all others.
    """
    fits = {int(part): RidgeSums.of(features, actions, outcomes, count, parts == part) for part in np.unique(parts)}
    predictions = np.zeros((len(actions), count))
    total = RidgeSums.zeros(features.shape[1], count) if past else add_sums(list(fits.values()))
    for part, part_sums in fits.items():
        known = total if past else total.subtract(part_sums)
        rows = parts == part
        predictions[rows] = np.clip(features[rows] @ known.coefficients().T + known.mean, 0.0, 1.0)
        total = total.add(part_sums) if past else total
    return predictions


class RidgeSums:
    """The sums for ridge regressions, one per action, around the mean of all outcomes."""

    def __init__(self, squares: Floats, products: Floats, rows: Floats, outcome: float, count: float) -> None:
        self.squares, self.products, self.rows = squares, products, rows  # (K, d, d), (K, d), (K, d)
        self.outcome, self.count = outcome, count

    @classmethod
    def zeros(cls, size: int, actions: int) -> "RidgeSums":
        """Return the sums of no rows."""
        return cls(np.zeros((actions, size, size)), np.zeros((actions, size)), np.zeros((actions, size)), 0.0, 0.0)

    @classmethod
    def of(cls, features: Floats, actions: Ints, outcomes: Floats, count: int, rows: Floats) -> "RidgeSums":
        """Return the sums of some rows."""
        self = cls.zeros(features.shape[1], count)
        for action in range(count):
            chosen = rows & (actions == action)
            part = features[chosen]
            self.squares[action], self.products[action] = part.T @ part, part.T @ outcomes[chosen]
            self.rows[action] = part.sum(axis=0)
        self.outcome, self.count = float(outcomes[rows].sum()), float(np.count_nonzero(rows))
        return self

    def add(self, other: "RidgeSums", sign: float = 1.0) -> "RidgeSums":
        """Return the sums of both."""
        return RidgeSums(
            self.squares + sign * other.squares,
            self.products + sign * other.products,
            self.rows + sign * other.rows,
            self.outcome + sign * other.outcome,
            self.count + sign * other.count,
        )

    def subtract(self, other: "RidgeSums") -> "RidgeSums":
        """Return the sums without another's."""
        return self.add(other, -1.0)

    @property
    def mean(self) -> float:
        """The mean of all outcomes; 0 without outcomes."""
        return self.outcome / self.count if self.count > 0.0 else 0.0

    def coefficients(self) -> Floats:
        """Return the coefficients (K, d) for the outcomes minus their mean."""
        residuals = self.products - self.mean * self.rows
        solution = np.linalg.solve(self.squares + RIDGE * np.eye(residuals.shape[1]), residuals[..., None])
        return np.asarray(solution[..., 0], dtype=np.float64)


def add_sums(parts: list[RidgeSums]) -> RidgeSums:
    """Return the sums of all parts."""
    total = parts[0]
    for part in parts[1:]:
        total = total.add(part)
    return total


def assign_time_blocks(rows: int) -> Ints:
    """Return the time block of each row (n,); each block is half as long as all before it.

    >>> np.bincount(assign_time_blocks(200)).tolist()
    [64, 32, 48, 56]
    """
    ends, end = [0], float(FIRST_BLOCK)
    while ends[-1] < rows:
        ends.append(min(int(end), rows))
        end *= GROWTH
    return np.repeat(np.arange(len(ends) - 1), [b - a for a, b in pairwise(ends)])


def assign_folds(rows: int, folds: int) -> Ints:
    """Return the fold of each row (n,), by a hash of its index."""
    return np.asarray(hash_row_numbers(rows) % np.uint64(folds), dtype=np.int64)
