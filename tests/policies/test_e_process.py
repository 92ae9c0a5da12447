"""The test behind every stop: by its definition, whatever order values are told in, settled and kept or not."""

import math
from typing import Any

import numpy as np
import pytest

from stagewise.agent.e_process import BLOCK, ODDS, EProcess, RowReader


class Told:
    """Rows that are told one by one, held against limits of their own."""

    def __init__(self, limits: Any, level: float = 0.01, first: int = 0) -> None:
        self.limits, self.values = np.asarray(limits), np.zeros(len(limits))
        self.test = EProcess(level, first)

    def rows(self, start: int, end: int) -> tuple[Any, Any]:
        return self.values[start:end], self.limits[start:end]

    def tell(self, position: int, value: float, end: int) -> bool:
        """Take in a value, NaN where it does not count, after so many decisions."""
        self.values[position] = value
        limit = self.limits[position]
        self.test.raise_values(position, position + 1, math.inf if limit == 0.0 else limit if value != value else value)
        return self.test.check(self.rows, end)


def highest(values: Any, limits: Any, first: int = 0) -> float:
    """Return the highest value of all prefixes, by the definition: every beginning by itself."""
    best, shares = 0.0, dict[int, float]()
    for begin in range(first - first % BLOCK, len(values), BLOCK):
        start = max(begin - first, 0) + 1.0
        shares[begin] = start**-0.25 - (begin + BLOCK - first + 1.0) ** -0.25
    for end in range(first + 1, len(values) + 1):
        total = 0.0
        for begin, share in shares.items():
            y, t = values[max(begin, first) : end], limits[max(begin, first) : end]
            y, t = y[~np.isnan(y)], t[~np.isnan(y)]
            if begin < end:
                total += share * np.mean([np.prod((1.0 + (k - 1.0) * y) / (1.0 + (k - 1.0) * t)) for k in ODDS])
        best = max(best, total)
    return best


@pytest.mark.parametrize("first", [0, 70])
@pytest.mark.parametrize("seed", range(3))
def test_it_crosses_just_where_its_definition_does(seed: int, first: int) -> None:
    rng, limits = np.random.default_rng(seed), np.repeat([0.2, 0.1], 125)
    values = np.where(rng.random(250) < 0.5, rng.random(250), 0.0)
    values[rng.random(250) < 0.05] = math.nan
    reached = highest(values, limits, first)
    assert reached > 2.0
    for level, crosses in ((0.999 / reached, False), (1.001 / reached, True)):
        told = Told(limits, level, first)
        for place in rng.permutation(250):  # each outcome comes when all decisions are made
            if values[place] != 0.0:
                told.tell(place, values[place], 250)
        assert told.test.crossed is crosses


def test_what_is_told_late_counts_as_if_it_had_been_told_at_once() -> None:
    """Sooner it counts as nothing: it crosses no later than the last of them is told, and never more easily."""
    rng = np.random.default_rng(5)
    values = (rng.random(3000) < 0.05).astype(float)
    at_once, late = Told(np.full(3000, 0.02), 1e-6), Told(np.full(3000, 0.02), 1e-6)
    crossed = next(i for i in range(3000) if values[i] and at_once.tell(i, 1.0, i + 1))
    for i in range(3000):
        if i >= 40 and values[i - 40] and late.tell(i - 40, 1.0, i + 1):
            break
    assert i == crossed + 40
    assert late.test.rejection == at_once.test.rejection


def test_it_is_the_same_to_the_bit_however_rows_are_settled_and_kept() -> None:
    rng, count = np.random.default_rng(2), 1500
    values, limits = np.where(rng.random(count) < 0.1, rng.random(count), 0.0), rng.uniform(0.05, 0.2, count)
    kept = []
    for every in (1, 7, 400, count):
        told = Told(limits, 1e-9)
        for i in range(count):
            if values[i]:
                told.tell(i, values[i], i + 1)
            if i % every == 0:
                told.test.settle(told.rows, max(i - 100, 0), i + 1)
            if i % 111 == 0:
                again = EProcess(1e-9)
                again.restore(told.test.to_list())
                told.test = again
        told.test.settle(told.rows, count - 50, count)
        kept.append((told.test.to_list(), told.test.count_and_total(told.rows, count)))
    assert all(one == kept[0] for one in kept)
    assert not told.test.crossed
    assert kept[0][0][1] == (count - 50) // BLOCK  # so that something was settled
    assert kept[0][1][0] == count


def test_a_row_that_does_not_count_has_no_part_in_it() -> None:
    """Eight events in 480 decisions are nothing, and in eight they are a lot."""
    told, fewer = Told(np.full(480, 0.02), 0.01), Told(np.full(480, 0.02), 0.01)
    for i in range(480):
        event = i % 60 == 30
        told.tell(i, 1.0 if event else math.nan, 480)
        fewer.tell(i, float(event), 480)
    assert told.test.crossed
    assert told.test.rejection is not None
    assert told.test.rejection[0] == told.test.rejection[1] <= 8
    assert not fewer.test.crossed


def test_it_says_by_which_rows_it_is_lost_and_is_lost_for_good() -> None:
    told = Told(np.full(6000, 0.02), 0.01)
    values = np.zeros(6000)
    values[5000::10] = 1.0
    for i in np.flatnonzero(values):
        if told.tell(int(i), 1.0, int(i) + 1):
            break
    assert told.test.rejection is not None
    count, total = told.test.rejection
    assert 0.05 < total / count < 0.15  # and not the .003 of all 5,180
    again = EProcess(0.01)
    again.restore(told.test.to_list())
    assert again.check(told.rows, 6000)
    assert again.rejection == told.test.rejection


def test_a_limit_of_nothing_is_broken_by_one_event() -> None:
    told = Told(np.zeros(300), 1e-6)
    told.tell(3, 0.0, 300)
    assert not told.test.crossed
    assert told.tell(200, 1e-3, 300)


def test_rare_limits_are_watched_too() -> None:
    """Bets are in proportion to the limit: fixed ones lose all they have before a thousandth is seen three times."""
    rng, rows = np.random.default_rng(4), 40_000
    told, values = Told(np.full(rows, 0.001), 0.05), rng.random(rows) < 0.003
    assert any(told.tell(int(i), 1.0, int(i) + 1) for i in np.flatnonzero(values))


def test_looking_needs_no_rows_while_nothing_can_have_happened() -> None:
    read = list[int]()

    def rows(start: int, end: int) -> tuple[Any, Any]:
        read.append(start)
        return np.zeros(end - start), np.full(end - start, 0.02)

    test: EProcess = EProcess(1e-6)
    counted: RowReader = rows
    test.raise_values(10, 11, 1.0)
    assert not test.check(counted, 20)
    assert read == []
