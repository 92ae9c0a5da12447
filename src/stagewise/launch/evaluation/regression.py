"""What a linear regression expects of every action, without having seen the row it speaks of.

Any prediction keeps the doubly robust estimate right, as long as the row itself had no part in it; a good one makes it
sharp. For a confidence sequence only rows before it may have one.
"""

from itertools import pairwise

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.log import Log
from stagewise.launch.mixing import mixed

RIDGE = 1.0
FIRST = 64  # rows before the first regression; it is made again whenever there are half as many more
GROWTH = 1.5
MOST = 50  # segments of a division that have a column of their own


def features_of(log: Log) -> Floats:
    """Return 1, the numbers scaled to [−1, 1] and the segments that came first (n, d); 0 where something is missing.

    The commonest could only be told at the end: a row would look at users after it.
    """
    columns = [np.ones(log.rows)]
    for column, (_, (low, high)) in zip(log.numbers.T, log.problem.ranges, strict=True):
        within = np.clip(column, low, high)
        columns.append(np.nan_to_num((2.0 * within - low - high) / (high - low)))
    for texts in log.segments.values():
        told = np.where(texts == None, "", texts).astype(str)  # noqa: E711
        names, first, places = np.unique(told, return_index=True, return_inverse=True)
        early = [place for place in np.argsort(first) if names[place]][:MOST]
        columns += [(places == place) * 1.0 for place in early]
    return np.column_stack(columns)


def predicted(features: Floats, actions: Ints, outcomes: Floats, count: int, parts: Ints, past: bool) -> Floats:
    """Return what is expected of each of `count` actions (n, count), within [0, 1].

    Each part of the rows is spoken of by a regression on other parts: those before it, or all but it.
    """
    fits = {int(part): Sums.of(features, actions, outcomes, count, parts == part) for part in np.unique(parts)}
    answers = np.zeros((len(actions), count))
    total = Sums.nothing(features.shape[1], count) if past else sum_of(list(fits.values()))
    for part, own in fits.items():
        known = total if past else total.without(own)
        rows = parts == part
        answers[rows] = np.clip(features[rows] @ known.coefficients().T + known.mean, 0.0, 1.0)
        total = total.together(own) if past else total
    return answers


class Sums:
    """What ridge regressions need of some rows: one for each action, around the mean of all outcomes."""

    def __init__(self, squares: Floats, products: Floats, rows: Floats, outcome: float, count: float) -> None:
        self.squares, self.products, self.rows = squares, products, rows  # (K, d, d), (K, d), (K, d)
        self.outcome, self.count = outcome, count

    @classmethod
    def nothing(cls, size: int, actions: int) -> "Sums":
        """Return the sums of no rows."""
        return cls(np.zeros((actions, size, size)), np.zeros((actions, size)), np.zeros((actions, size)), 0.0, 0.0)

    @classmethod
    def of(cls, features: Floats, actions: Ints, outcomes: Floats, count: int, rows: Floats) -> "Sums":
        """Return the sums of some rows."""
        self = cls.nothing(features.shape[1], count)
        for action in range(count):
            mine = rows & (actions == action)
            part = features[mine]
            self.squares[action], self.products[action] = part.T @ part, part.T @ outcomes[mine]
            self.rows[action] = part.sum(axis=0)
        self.outcome, self.count = float(outcomes[rows].sum()), float(np.count_nonzero(rows))
        return self

    def together(self, other: "Sums", sign: float = 1.0) -> "Sums":
        """Return the sums of both."""
        return Sums(
            self.squares + sign * other.squares,
            self.products + sign * other.products,
            self.rows + sign * other.rows,
            self.outcome + sign * other.outcome,
            self.count + sign * other.count,
        )

    def without(self, other: "Sums") -> "Sums":
        """Return the sums of the rest."""
        return self.together(other, -1.0)

    @property
    def mean(self) -> float:
        """The mean of all outcomes; 0 before there is one."""
        return self.outcome / self.count if self.count > 0.0 else 0.0

    def coefficients(self) -> Floats:
        """Return the coefficients (K, d) for what is left of an outcome beside the mean."""
        left = self.products - self.mean * self.rows
        solved = np.linalg.solve(self.squares + RIDGE * np.eye(left.shape[1]), left[..., None])
        return np.asarray(solved[..., 0], dtype=np.float64)


def sum_of(parts: list[Sums]) -> Sums:
    """Return the sums of all parts."""
    total = parts[0]
    for part in parts[1:]:
        total = total.together(part)
    return total


def stretches(rows: int) -> Ints:
    """Return to which stretch of time each row (n,) belongs; each is half as long as all before it.

    >>> np.bincount(stretches(200)).tolist()
    [64, 32, 48, 56]
    """
    ends, end = [0], float(FIRST)
    while ends[-1] < rows:
        ends.append(min(int(end), rows))
        end *= GROWTH
    return np.repeat(np.arange(len(ends) - 1), [b - a for a, b in pairwise(ends)])


def folds_of(rows: int, folds: int) -> Ints:
    """Return in which fold each row (n,) is, by its number alone: the same for everybody, at every time."""
    return np.asarray(mixed(rows) % np.uint64(folds), dtype=np.int64)
