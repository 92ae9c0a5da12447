"""A test of "every mean is at most its limit" that counts what is told at once, and is as quick after a quiet stretch.

Rows are decisions in their order, each with a value in [0, 1] as far as it is told (what is not told counts as 0) and
the limit τ of its mean. For odds κ > 1

    P(κ) = Π (1 + (κ − 1) y)/(1 + (κ − 1) τ)

has factors of conditional mean 1 at most. The bets begin anew at every block of rows b, with shares w_b that add up to
1: W(κ) = Σ_b w_b P_b(κ), P_b over the rows from b on. W is one number for each κ, since with every block

    W ← (W + w) P.

The average over κ is an e-process: it ever reaches 1/a with probability a at most. By values that are not all told it
is smaller, in every prefix of the rows, so that it crosses no sooner (docs/theory/stops.md).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from stagewise.kernels.compile import Floats

BLOCK = 64  # rows from one beginning of the bets to the next
ODDS = np.array(
    [1.25, 1.5, 2.0, 3.0, 5.0, 10.0]
)  # an alternative each: the odds of a cost are so many times the limit's
MOST = float(ODDS[-1]) - 1.0
CLOSE = 0.999  # the share of 1/a that a bound may have before the exact value is asked for: rounding is far smaller

Rows = Callable[[int, int], tuple[Floats, Floats]]
"""Values and limits of the rows from one place to before another; a row whose value is NaN does not count."""


class EProcess:
    """Rows in their order, of which the earliest are settled and the others may still rise.

    >>> values = np.array([0.0] * 50 + [1.0] * 8)
    >>> test, rows = EProcess(level=0.01), lambda start, end: (values[start:end], np.full(end - start, 0.02))
    >>> test.look(rows, 50)
    False
    >>> for place in range(50, 58):
    ...     test.rise(place, place + 1, by=1.0)
    >>> test.look(rows, 58), test.lost_by
    (True, (58, 8.0))
    """

    def __init__(self, level: float, first: int = 0) -> None:
        """Begin.

        Args:
            level: With which probability it may cross by chance, ever.
            first: The place of the first row that counts.
        """
        self.level, self.first = level, first
        self.base = first // BLOCK  # blocks before it are settled
        self.wealth = np.zeros(ODDS.size)  # before block `base`
        self.count, self.total = 0, 0.0  # of settled rows that count
        self.lost_by: tuple[int, float] | None = None
        """Count and sum of all rows when it crossed; None: it has not."""
        self._bound = 1.0  # on the value of every prefix of the rows, those that are to come with the value 0 as well
        self._forget()

    def _forget(self) -> None:
        self._from = self.base  # what is kept of blocks from here on may be another since
        self._before: dict[int, Floats] = {}  # by block: the wealth before it
        self._blocks: dict[int, tuple[int, Floats, Floats]] = {}  # rows, their product, the highest product up to one
        self._highest: dict[int, float] = {}  # by block: a bound on the values of its prefixes

    @property
    def crossed(self) -> bool:
        """Whether the test is lost, for good."""
        return self.lost_by is not None

    def rise(self, start: int, end: int, by: float) -> None:
        """Take in that rows from one place to before another have other values, each higher by so much at most.

        A row that counts no more rises by its limit; where the limit is 0, any rise is infinite.
        """
        if self.lost_by is not None:
            return
        grown = (end - start) * math.log1p(MOST * by)
        self._bound *= math.exp(grown) if grown < 700.0 else math.inf
        first, last = max(start // BLOCK, self.base), (end - 1) // BLOCK
        for block in range(first, last + 1):
            self._blocks.pop(block, None)
        self._from = min(self._from, first)

    def look(self, rows: Rows, end: int) -> bool:
        """Say whether the test is lost, now or before, by the rows before `end`; it may be asked after every row."""
        if self.lost_by is None and self._bound >= CLOSE / self.level:
            self._scan(rows, end)
        return self.lost_by is not None

    def settle(self, rows: Rows, before: int, end: int) -> None:
        """Take in that rows before a place stay as they are: whole blocks of them are asked for no more."""
        settled = before // BLOCK
        if settled <= self.base:
            return
        if self.lost_by is None:
            self._scan(rows, end)
        self.count, self.total = self.seen(rows, settled * BLOCK)
        if self.lost_by is None:
            self.wealth = self._before[settled]
            for block in range(self.base, settled):
                del self._blocks[block], self._before[block], self._highest[block]
        self.base = settled

    def seen(self, rows: Rows, end: int) -> tuple[int, float]:
        """Return how many rows count, and the sum of their values as far as they are told."""
        count, total = self.count, self.total
        for start in range(self.base * BLOCK, end, BLOCK):  # as they are settled, so that sums are the same to the bit
            values, _ = self._counted(rows, start, min(start + BLOCK, end))
            counted = values[~np.isnan(values)]
            count, total = count + counted.size, total + float(counted.sum())
        return count, total

    def _scan(self, rows: Rows, end: int) -> None:
        """Bring everything up to date, and look whether a prefix of the rows has crossed."""
        last = -(-end // BLOCK)
        wealth = self._before.get(self._from, self.wealth)
        for block in range(self._from, last):
            self._before[block] = wealth
            kept = self._blocks.get(block)
            if kept is None or kept[0] < min(end - block * BLOCK, BLOCK):
                paths = self._paths(rows, block, end)
                kept = self._blocks[block] = len(paths), paths[-1], paths.max(axis=0)
            wealth = wealth + self._share(block)
            self._highest[block] = highest = float((wealth * kept[2]).mean())
            if highest >= CLOSE / self.level:
                exact = (wealth * self._paths(rows, block, end)).mean(axis=1).max()
                if exact >= 1.0 / self.level:
                    self.lost_by, self.wealth = self.seen(rows, end), np.zeros(ODDS.size)
                    self._forget()
                    return
            wealth = wealth * kept[1]
        self._before[last], self._from = wealth, max(end // BLOCK, self.base)
        rest = 1.0 / fourth_root(max(last * BLOCK - self.first, 0) + 1.0)  # of all shares
        self._bound = max(self._highest.values(), default=0.0) + rest

    def _paths(self, rows: Rows, block: int, end: int) -> Floats:
        """Return the product of the factors of a block up to each row (n, K)."""
        start = block * BLOCK
        return np.cumprod(factors_of(*self._counted(rows, start, min(start + BLOCK, end))), axis=0)

    def _counted(self, rows: Rows, start: int, end: int) -> tuple[Floats, Floats]:
        """Return rows, of which those before the first do not count."""
        values, limits = rows(start, end)
        if start < self.first:
            values = np.where(np.arange(start, end) < self.first, math.nan, values)
        return values, limits

    def _share(self, block: int) -> float:
        """Return the share of the bets that begin with a block: n⁻¼ before it less n⁻¼ after it, n rows from 1 on."""
        start = max(block * BLOCK - self.first, 0)
        return 1.0 / fourth_root(start + 1.0) - 1.0 / fourth_root((block + 1) * BLOCK - self.first + 1.0)

    def copied(self) -> "EProcess":
        """Return an independent copy."""
        other = EProcess(self.level)
        other.restore(self.plain())
        return other

    def plain(self) -> list[float]:
        """Return it for a file, without the rows."""
        lost = (-1.0, 0.0) if self.lost_by is None else (float(self.lost_by[0]), self.lost_by[1])
        return [float(self.first), float(self.base), float(self.count), self.total, *lost, *self.wealth.tolist()]

    def restore(self, plain: Sequence[float]) -> None:
        """Go on from what `plain` wrote down."""
        first, base, count, total, lost, lost_total, *wealth = plain
        self.first, self.base, self.count, self.total = int(first), int(base), int(count), float(total)
        self.lost_by = None if lost < 0.0 else (int(lost), float(lost_total))
        self.wealth, self._bound = np.array(wealth, dtype=np.float64), math.inf  # so that it looks when it is asked
        self._forget()


def fourth_root(number: float) -> float:
    """Return √√x: the same to the bit everywhere, as a power need not be."""
    return math.sqrt(math.sqrt(number))


def factors_of(values: Floats, limits: Floats) -> Floats:
    """Return what rows multiply the wealth by (n, K); a mean of 0 at most is refuted by one value above it."""
    over = np.outer(values, ODDS - 1.0)
    factors = (1.0 + over) / (1.0 + np.outer(limits, ODDS - 1.0))
    factors[(limits <= 0.0) & (values > 0.0)] = math.inf
    factors[np.isnan(values)] = 1.0
    return factors
