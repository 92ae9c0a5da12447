"""An e-process for "every mean is at most its limit" that counts reported values at once.

Rows are decisions in their order, each with the value in [0, 1] reported so far (0 until it is reported) and the limit
τ of its mean. For odds κ > 1

    P(κ) = Π (1 + (κ − 1) y)/(1 + (κ − 1) τ)

has factors of conditional mean at most 1. The bets restart at every block of rows b, with shares w_b that add up to 1:
W(κ) = Σ_b w_b P_b(κ), P_b over the rows from b on, so a quiet stretch does not slow the test. W is one number for each
κ, since with every block

    W ← (W + w) P.

The average over κ is an e-process: it ever reaches 1/a with probability at most a. Missing values make it smaller in
every prefix of the rows, so it does not cross sooner (docs/theory/stops.md).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stagewise.agent.outcome_queue import BLOCK
from stagewise.engine.compile import Floats, Ints

ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 10.0])  # one alternative each: ratio of the odds of a cost to the limit's
EXCESS = ODDS - 1.0
BLOCKS_AT_ONCE = 256  # are read, so that a long queue takes little memory
BOUND_FRACTION = 0.999  # of 1/a: a bound above it triggers the exact computation; rounding errors are far smaller

RowReader = Callable[[int, int], tuple[Floats, Floats]]
"""Read the values and limits of the rows [start, end); a row whose value is NaN does not count."""


class EProcess:
    """A sequential test; the earliest rows are final, and the values of the others may still rise."""

    def __init__(self, level: float, first: int = 0) -> None:
        """Create a test.

        Args:
            level: The probability of a false rejection, over all time.
            first: The index of the first row that counts.
        """
        self.level, self.first = level, first
        self.base = first // BLOCK  # earlier blocks are final
        self.settled_sums = EMPTY_SUMS
        """The sums of the final rows."""
        self.rejection: tuple[int, float] | None = None
        """Count and sum of the rows that reject, since the restart of the winning bets; None: not rejected."""
        self._clear_cache()

    def _clear_cache(self) -> None:
        """Clear what is cached of rows that are not final."""
        self._blocks: list[Block | None] = []  # from `base` on; None: must be read again
        self._before: list[Floats] = []  # the wealth before each block, for blocks before `_from`
        self._highest = np.zeros((0, ODDS.size))  # the highest wealth of a prefix that ends in each of these
        self._from = self.base
        self._checked_end = self.first  # the number of rows at the last check
        self._bound = np.zeros(ODDS.size)  # on the wealth, in any prefix, of bets that had started at the last check
        self._later = np.ones(ODDS.size)  # and of bets that start later

    @property
    def crossed(self) -> bool:
        """Whether the test has rejected; a rejection is final."""
        return self.rejection is not None

    @property
    def is_valid(self) -> bool:
        """Whether the restored numbers are finite and not negative."""
        numbers = np.array(self.to_list())
        return bool(np.isfinite(numbers).all()) and bool((numbers[4:] >= 0.0).all())

    def raise_values(self, start: int, end: int, by: float) -> None:
        """Note that the values of the rows [start, end) rose by at most `by` each.

        A row that is excluded rises by its limit; if the limit is 0, any rise is infinite.
        """
        if self.rejection is not None:
            return
        factor = 1.0 + EXCESS * by
        if end - start > 1:
            factor = factor ** (end - start)
        self._bound = self._bound * factor if by < math.inf else np.full(ODDS.size, math.inf)
        if end > self._checked_end:
            self._later = self._later * factor
        first, last = max(start // BLOCK, self.base), min((end - 1) // BLOCK, self.base + len(self._blocks) - 1)
        for block in range(first, last + 1):
            self._blocks[block - self.base] = None
        self._from = min(self._from, first)

    def invalidate(self, indices: Ints) -> None:
        """Note that the values of many rows changed: the next check scans their blocks."""
        blocks = np.unique(indices[indices >= self.first] // BLOCK)
        blocks = blocks[blocks >= self.base]
        if self.rejection is not None or not blocks.size:
            return
        for block in blocks[blocks < self.base + len(self._blocks)].tolist():
            self._blocks[block - self.base] = None
        self._from, self._bound = min(self._from, int(blocks[0])), np.full(ODDS.size, math.inf)

    def check(self, rows: RowReader, end: int) -> bool:
        """Return whether the rows before `end` reject; may be called after every row."""
        if self.rejection is None and (self._bound + self._later).sum() >= ODDS.size * BOUND_FRACTION / self.level:
            self._scan(rows, end)
        return self.rejection is not None

    def settle(self, rows: RowReader, before: int, end: int) -> None:
        """Mark the rows before `before` as final; whole blocks of them are not read again."""
        block = before // BLOCK
        if block <= self.base:
            return
        if self.rejection is None:
            self._scan(rows, end)
        if self.rejection is None:
            count = block - self.base
            self.settled_sums = self._sums(block)
            self._highest = self._highest[count:]
            del self._blocks[:count], self._before[:count]
        else:
            counted, total = self.count_and_total(rows, block * BLOCK)
            self.settled_sums = EMPTY_SUMS._replace(counted=counted, total=total)
        self.base = block

    def count_and_total(self, rows: RowReader, end: int) -> tuple[int, float]:
        """Return the number of rows that count, and the sum of their reported values."""
        count, total = self.settled_sums.counted, self.settled_sums.total
        for start in range(self.base * BLOCK, end, BLOCK):  # block by block as in `settle`: equal to the bit
            block_count, block_total = count_and_sum(self._counted(rows, start, min(start + BLOCK, end))[0])
            count, total = count + block_count, total + block_total
        return count, total

    def _scan(self, rows: RowReader, end: int) -> None:
        """Update the wealth, and check whether a prefix of the rows rejects."""
        first, base = self._from - self.base, self.base
        wealth = self._before[first] if first < len(self._before) else self.settled_sums.wealth
        del self._before[first:]
        blocks = self._read_blocks(rows, first, end)
        for block, read in enumerate(blocks, self._from):
            self._before.append(wealth)
            wealth = (wealth + self._share(block)) * read.product
        self._before.append(wealth)
        if blocks:
            started = np.array(self._before[first:-1]) + [[self._share(base + first + i)] for i in range(len(blocks))]
            self._highest = np.concatenate([self._highest[:first], started * [block.peak for block in blocks]])
        for i in np.flatnonzero(self._highest[first:].mean(axis=1) >= BOUND_FRACTION / self.level):
            if self._crosses(rows, base + first + int(i), end):
                return
        self._from, self._checked_end = max(end // BLOCK, self.base), end
        self._bound = self._highest.max(axis=0, initial=0.0)
        self._later = np.full(ODDS.size, 1.0 / fourth_root(max(-(-end // BLOCK) * BLOCK - self.first, 0) + 1.0))

    def _read_blocks(self, rows: RowReader, first: int, end: int) -> "list[Block]":
        """Return the products of the blocks from a place on; those that changed, and those between, are read again."""
        blocks, base, count = self._blocks, self.base, -(-end // BLOCK) - self.base
        blocks += [None] * (count - len(blocks))
        sizes = [min(end - (base + i) * BLOCK, BLOCK) for i in range(first, count)]
        changed = [i for i, size in enumerate(sizes, first) if (block := blocks[i]) is None or block.rows < size]
        for low in range(changed[0], changed[-1] + 1, BLOCKS_AT_ONCE) if changed else ():
            high = min(low + BLOCKS_AT_ONCE, changed[-1] + 1)
            values, paths = self._paths(rows, base + low, base + high, end)
            peaks = paths.max(axis=1)
            for i in range(low, high):
                counted = count_and_sum(values[(i - low) * BLOCK : (i + 1 - low) * BLOCK])
                blocks[i] = Block(sizes[i - first], paths[i - low, -1], peaks[i - low], *counted)
        return [block for block in blocks[first:] if block is not None]

    def _sums(self, block: int) -> "WealthSums":
        """Return the sums of all rows before a block; all earlier blocks are cached."""
        sums = self.settled_sums
        for index, cached in enumerate(self._blocks[: block - self.base]):
            sums = sums.start_bets(self._share(self.base + index)).add_block(cached) if cached else sums
        return sums

    def _crosses(self, rows: RowReader, block: int, end: int) -> bool:
        """Return whether a prefix that ends in a block rejects, and store its rows."""
        values, paths = self._paths(rows, block, block + 1, end)
        wealth = (self._before[block - self.base] + self._share(block)) * paths[0, : values.size]
        over = np.flatnonzero(wealth.mean(axis=1) >= 1.0 / self.level)
        if not over.size:
            return False
        sums, row = self._sums(block).start_bets(self._share(block)), int(over[0])
        count, total = count_and_sum(values[: row + 1])
        best = int(wealth[row].argmax())
        self.rejection = (sums.counted + count - int(sums.counts[best]), sums.total + total - float(sums.totals[best]))
        self.settled_sums = EMPTY_SUMS._replace(counted=self.settled_sums.counted, total=self.settled_sums.total)
        self._clear_cache()
        return True

    def _paths(self, rows: RowReader, first: int, last: int, end: int) -> tuple[Floats, Floats]:
        """Return the values of the blocks [first, last), and the products of their factors up to each row (B, n, K).

        The rows that the last block lacks have factor 1.
        """
        start = first * BLOCK
        values, limits = self._counted(rows, start, min(last * BLOCK, end))
        factors = np.ones(((last - first) * BLOCK, ODDS.size))
        factors[: values.size] = compute_factors(values, limits)
        paths: Floats = np.multiply.accumulate(factors.reshape(last - first, BLOCK, ODDS.size), axis=1)
        return values, paths

    def _counted(self, rows: RowReader, start: int, end: int) -> tuple[Floats, Floats]:
        """Return the rows [start, end); those before `first` are NaN."""
        values, limits = rows(start, end)
        if start < self.first:
            values = np.where(np.arange(start, end) < self.first, math.nan, values)
        return values, limits

    def _share(self, block: int) -> float:
        """Return w of the bets that start with a block: n⁻¼ before it minus n⁻¼ after it, rows n counted from 1."""
        start = max(block * BLOCK - self.first, 0)
        return 1.0 / fourth_root(start + 1.0) - 1.0 / fourth_root((block + 1) * BLOCK - self.first + 1.0)

    def clone(self) -> "EProcess":
        """Return an independent copy."""
        other = EProcess(self.level)
        other.restore(self.to_list())
        return other

    def to_list(self) -> list[float]:
        """Return the numbers that `restore` reads, without the rows."""
        rejection = (-1.0, 0.0) if self.rejection is None else (float(self.rejection[0]), self.rejection[1])
        sums = self.settled_sums
        numbers = [float(self.first), float(self.base), *rejection, float(sums.counted), sums.total]
        return [*numbers, *sums.wealth.tolist(), *sums.counts.tolist(), *sums.totals.tolist()]

    def restore(self, numbers: Sequence[float]) -> None:
        """Restore the state that `to_list` returned."""
        first, base, rejected_count, rejected_total, count, total = numbers[:6]
        self.first, self.base = int(first), int(base)
        self.rejection = None if rejected_count < 0.0 else (int(rejected_count), float(rejected_total))
        bets = np.array(numbers[6:], dtype=np.float64).reshape(3, ODDS.size)
        self.settled_sums = WealthSums(int(count), float(total), *bets)
        self._clear_cache()
        self._bound = np.full(ODDS.size, math.inf)  # the next check scans all rows


class Block(NamedTuple):
    """The products and sums of a block of rows."""

    rows: int
    product: Floats  # (K,)
    peak: Floats  # (K,) the highest product up to one of its rows
    counted: int
    total: float


class WealthSums(NamedTuple):
    """The sums of rows: their count, their total, and the wealth of each bet (K,)."""

    counted: int
    total: float
    wealth: Floats
    counts: Floats  # (K,) the count and the total at the start of the richest bets
    totals: Floats

    def start_bets(self, share: float) -> "WealthSums":
        fresh = share >= self.wealth
        counts, totals = np.where(fresh, self.counted, self.counts), np.where(fresh, self.total, self.totals)
        return WealthSums(self.counted, self.total, self.wealth + share, counts, totals)

    def add_block(self, block: Block) -> "WealthSums":
        """Return the sums after a block of rows."""
        count, total = self.counted + block.counted, self.total + block.total
        return WealthSums(count, total, self.wealth * block.product, self.counts, self.totals)


EMPTY_SUMS = WealthSums(0, 0.0, np.zeros(ODDS.size), np.zeros(ODDS.size), np.zeros(ODDS.size))


def count_and_sum(values: Floats) -> tuple[int, float]:
    """Return the number of values that are not NaN, and their sum."""
    counted = values[~np.isnan(values)]
    return counted.size, float(counted.sum())


def fourth_root(number: float) -> float:
    """Return √√x, which is equal to the bit on all platforms; a power need not be."""
    return math.sqrt(math.sqrt(number))


def compute_factors(values: Floats, limits: Floats) -> Floats:
    """Return the factors (n, K) of rows; one value above 0 rejects a limit of 0."""
    over = np.outer(values, EXCESS)
    factors: Floats = (1.0 + over) / (1.0 + np.outer(limits, EXCESS))
    factors[(limits <= 0.0) & (values > 0.0)] = math.inf
    factors[np.isnan(values)] = 1.0
    return factors
