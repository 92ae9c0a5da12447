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
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats

BLOCK = 64  # rows from one beginning of the bets to the next
ODDS = np.array(
    [1.25, 1.5, 2.0, 3.0, 5.0, 10.0]
)  # an alternative each: the odds of a cost are so many times the limit's
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
    (True, (57, 7.0))
    """

    def __init__(self, level: float, first: int = 0) -> None:
        """Begin.

        Args:
            level: With which probability it may cross by chance, ever.
            first: The place of the first row that counts.
        """
        self.level, self.first = level, first
        self.base = first // BLOCK  # blocks before it are settled
        self.settled = NOTHING
        """What settled rows come to."""
        self.lost_by: tuple[int, float] | None = None
        """Count and sum of the rows by which it crossed: since the bets began that won most; None: it has not."""
        self._forget()

    def _forget(self) -> None:
        """Know nothing of what is not settled."""
        self._blocks: list[Block | None] = []  # from `base` on; None: some of its rows may be other ones
        self._before: list[Floats] = []  # the wealth before each block, of those before `_from`
        self._highest = np.zeros((0, ODDS.size))  # the highest wealth of a prefix that ends in each of these
        self._from = self.base
        self._looked = self.first  # rows before it were there when it was looked last
        self._bound = np.zeros(ODDS.size)  # on the wealth of bets that had begun then, by any prefix of the rows,
        self._later = np.ones(ODDS.size)  # and of those that begin later

    @property
    def crossed(self) -> bool:
        """Whether the test is lost, for good."""
        return self.lost_by is not None

    @property
    def is_sound(self) -> bool:
        """Whether what was restored can have been kept."""
        numbers = np.array(self.plain())
        return bool(np.isfinite(numbers).all()) and bool((numbers[4:] >= 0.0).all())

    def rise(self, start: int, end: int, by: float) -> None:
        """Take in that rows from one place to before another have other values, each higher by so much at most.

        A row that counts no more rises by its limit; where the limit is 0, any rise is infinite.
        """
        if self.lost_by is not None:
            return
        factor = (1.0 + (ODDS - 1.0) * by) ** (end - start)
        self._bound = self._bound * factor if by < math.inf else np.full(ODDS.size, math.inf)
        if end > self._looked:
            self._later = self._later * factor
        first, last = max(start // BLOCK, self.base), min((end - 1) // BLOCK, self.base + len(self._blocks) - 1)
        for block in range(first, last + 1):
            self._blocks[block - self.base] = None
        self._from = min(self._from, first)

    def look(self, rows: Rows, end: int) -> bool:
        """Say whether the test is lost, now or before, by the rows before `end`; it may be asked after every row."""
        if self.lost_by is None and (self._bound + self._later).mean() >= CLOSE / self.level:
            self._scan(rows, end)
        return self.lost_by is not None

    def settle(self, rows: Rows, before: int, end: int) -> None:
        """Take in that rows before a place stay as they are: whole blocks of them are asked for no more."""
        settled = before // BLOCK
        if settled <= self.base:
            return
        if self.lost_by is None:
            self._scan(rows, end)
        if self.lost_by is None:
            count = settled - self.base
            self.settled = self._sums(settled)
            self._highest = self._highest[count:]
            del self._blocks[:count], self._before[:count]
        else:
            counted, total = self.seen(rows, settled * BLOCK)
            self.settled = NOTHING._replace(counted=counted, total=total)
        self.base = settled

    def seen(self, rows: Rows, end: int) -> tuple[int, float]:
        """Return how many rows count, and the sum of their values as far as they are told."""
        count, total = self.settled.counted, self.settled.total
        for start in range(self.base * BLOCK, end, BLOCK):  # as they are settled, so that sums are the same to the bit
            told, sum_ = sum_of(self._counted(rows, start, min(start + BLOCK, end))[0])
            count, total = count + told, total + sum_
        return count, total

    def _scan(self, rows: Rows, end: int) -> None:
        """Bring everything up to date, and look whether a prefix of the rows has crossed."""
        first, base = self._from - self.base, self.base
        wealth = self._before[first] if first < len(self._before) else self.settled.wealth
        del self._before[first:]
        for block in range(self._from, -(-end // BLOCK)):
            self._before.append(wealth)
            wealth = (wealth + self._share(block)) * self._block(rows, block, end).product
        self._before.append(wealth)
        known = self._blocks[first : len(self._before) - 1]
        if known:
            begun = np.array(self._before[first:-1]) + [[self._share(base + first + i)] for i in range(len(known))]
            self._highest = np.concatenate([self._highest[:first], begun * [block.peak for block in known if block]])
        for i in np.flatnonzero(self._highest[first:].mean(axis=1) >= CLOSE / self.level):
            if self._crosses(rows, base + first + int(i), end):
                return
        self._from, self._looked = max(end // BLOCK, self.base), end
        self._bound = self._highest.max(axis=0, initial=0.0)
        self._later = np.full(ODDS.size, 1.0 / fourth_root(max(-(-end // BLOCK) * BLOCK - self.first, 0) + 1.0))

    def _block(self, rows: Rows, block: int, end: int) -> "Block":
        """Return what is kept of a block, read again where some of its rows may be other ones."""
        place = block - self.base
        if place == len(self._blocks):
            self._blocks.append(None)
        kept = self._blocks[place]
        if kept is None or kept.rows < min(end - block * BLOCK, BLOCK):
            values, paths = self._paths(rows, block, end)
            kept = self._blocks[place] = Block(len(paths), paths[-1], paths.max(axis=0), *sum_of(values))
        return kept

    def _sums(self, block: int) -> "Sums":
        """Return what all rows before a block come to; it is known of each block before."""
        sums = self.settled
        for place, kept in enumerate(self._blocks[: block - self.base]):
            sums = sums.begin(self._share(self.base + place)).after(kept) if kept else sums
        return sums

    def _crosses(self, rows: Rows, block: int, end: int) -> bool:
        """Say whether a prefix that ends in a block crosses, and write down by which rows."""
        values, paths = self._paths(rows, block, end)
        wealth = (self._before[block - self.base] + self._share(block)) * paths
        over = np.flatnonzero(wealth.mean(axis=1) >= 1.0 / self.level)
        if not over.size:
            return False
        begun, row = self._sums(block).begin(self._share(block)), int(over[0])
        count, total = sum_of(values[: row + 1])
        best = int(wealth[row].argmax())
        self.lost_by = (
            begun.counted + count - int(begun.counts[best]),
            begun.total + total - float(begun.totals[best]),
        )
        self.settled = NOTHING._replace(counted=self.settled.counted, total=self.settled.total)
        self._forget()
        return True

    def _paths(self, rows: Rows, block: int, end: int) -> tuple[Floats, Floats]:
        """Return the values of a block, and the product of the factors up to each row (n, K)."""
        start = block * BLOCK
        values, limits = self._counted(rows, start, min(start + BLOCK, end))
        paths: Floats = np.multiply.accumulate(factors_of(values, limits), axis=0)
        return values, paths

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
        lost, sums = (-1.0, 0.0) if self.lost_by is None else (float(self.lost_by[0]), self.lost_by[1]), self.settled
        numbers = [float(self.first), float(self.base), *lost, float(sums.counted), sums.total]
        return [*numbers, *sums.wealth.tolist(), *sums.counts.tolist(), *sums.totals.tolist()]

    def restore(self, plain: Sequence[float]) -> None:
        """Go on from what `plain` wrote down."""
        first, base, lost, lost_total, count, total = plain[:6]
        self.first, self.base = int(first), int(base)
        self.lost_by = None if lost < 0.0 else (int(lost), float(lost_total))
        bets = np.array(plain[6:], dtype=np.float64).reshape(3, ODDS.size)
        self.settled = Sums(int(count), float(total), *bets)
        self._forget()
        self._bound = np.full(ODDS.size, math.inf)  # so that it looks when it is asked


class Block(NamedTuple):
    """What is kept of a block of rows."""

    rows: int
    product: Floats  # (K,)
    peak: Floats  # (K,) the highest product up to one of its rows
    counted: int
    total: float


class Sums(NamedTuple):
    """What rows come to: how many count, their sum, and the wealth of each of the bets (K,)."""

    counted: int
    total: float
    wealth: Floats
    counts: Floats  # when those bets began that have most of it
    totals: Floats

    def begin(self, share: float) -> "Sums":
        """Return the same with bets that begin here."""
        fresh = share >= self.wealth
        counts, totals = np.where(fresh, self.counted, self.counts), np.where(fresh, self.total, self.totals)
        return Sums(self.counted, self.total, self.wealth + share, counts, totals)

    def after(self, block: Block) -> "Sums":
        """Return the same after a block of rows."""
        count, total = self.counted + block.counted, self.total + block.total
        return Sums(count, total, self.wealth * block.product, self.counts, self.totals)


NOTHING = Sums(0, 0.0, np.zeros(ODDS.size), np.zeros(ODDS.size), np.zeros(ODDS.size))


def sum_of(values: Floats) -> tuple[int, float]:
    """Return how many values count, and their sum."""
    counted = values[~np.isnan(values)]
    return counted.size, float(counted.sum())


def fourth_root(number: float) -> float:
    """Return √√x: the same to the bit everywhere, as a power need not be."""
    return math.sqrt(math.sqrt(number))


def factors_of(values: Floats, limits: Floats) -> Floats:
    """Return what rows multiply the wealth by (n, K); a mean of 0 at most is refuted by one value above it."""
    over = np.outer(values, ODDS - 1.0)
    factors: Floats = (1.0 + over) / (1.0 + np.outer(limits, ODDS - 1.0))
    factors[(limits <= 0.0) & (values > 0.0)] = math.inf
    factors[np.isnan(values)] = 1.0
    return factors
