"""Bounds of a mean that moves: the theorem's formulas from all rows, which epochs are kept, and what they cost."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.engine.compile import as_python
from stagewise.models import epochs
from stagewise.models.intervals import LOG_WEIGHTS, UPPER_ETAS, compute_average_lower, compute_average_upper
from stagewise.problem.timing import DAY, Drift

SHARE, KEPT = as_python(epochs.compute_log_share), as_python(epochs.is_kept)
HIGH, LOW = as_python(epochs.compute_high_now), as_python(epochs.compute_low_now)
UPPER, LOWER = as_python(compute_average_upper), as_python(compute_average_lower)
LEARN, FIND = as_python(epochs.learn_in_epochs), as_python(epochs.find_epoch)
ADVANCE, BEGIN = as_python(epochs.advance_cell), as_python(epochs.advance_header)
FORGET = as_python(epochs.forget_before)
CONFIDENCE, LIMIT = 3.0, 0.02
MODULI = [Drift(0.005, 30 * DAY), Drift(0.01, 10 * DAY, is_budget=True)]


class Cell:
    """One cell, and all its rows."""

    def __init__(self, modulus: Drift) -> None:
        self.modulus, self.settings = modulus, np.array(modulus.to_settings(0, LIMIT))
        self.header, self.cell = np.zeros(epochs.HEADER_SIZE), np.zeros(epochs.CELL_SIZE)
        self.rows: list[tuple[float, float, int]] = []  # time, value, newest epoch when it was learned

    def learn(self, time: float, value: float) -> None:
        newest = FIND(self.header, self.settings, time)
        if newest > self.header[epochs.NEWEST]:
            ADVANCE(self.header, newest, self.cell)
            BEGIN(self.header, self.settings, newest, time)
        self.rows.append((time, value, newest))
        self.cell[epochs.PULLS] += 1.0
        LEARN(self.header, self.settings, time, value, CONFIDENCE, CONFIDENCE, self.cell)
        self.rows[-1] = (time, value, int(self.header[epochs.NEWEST]))

    def list_ends(self, now: float) -> list[tuple[float, float]]:
        """Return the ends of Theorem 1 from all rows: U + ω̄ and L − ω̄ of every kept epoch."""
        ends = []
        for epoch in self.header[epochs.FIRST_BEGIN :]:
            part = [row for row in self.rows if row[2] >= epoch]
            if epoch and part:
                n, total, spent = len(part), sum(row[1] for row in part), CONFIDENCE + SHARE(int(epoch))
                ages = [(now - row[0]) for row in part]
                drift = self.modulus.budget + self.modulus.slope * sum(ages) / n
                ends.append((UPPER(float(n), total, spent) + drift, LOWER(float(n), total, spent) - drift))
        return ends

    def weigh_evidence(self, bound: float, now: float) -> float:
        """Return Σ_b c_b Σ_j w_j exp(−η_j S_b − n_b log(1 − κ_j (bound − ω̄_b))) δ', which is 1 at the upper bound."""
        total = 0.0
        for epoch in self.header[epochs.FIRST_BEGIN :]:
            part = [row for row in self.rows if row[2] >= epoch]
            p = bound - self.modulus.slope * sum(now - row[0] for row in part) / max(len(part), 1)
            if not (epoch and part) or p <= sum(row[1] for row in part) / len(part):
                continue
            for eta, weight in zip(UPPER_ETAS, LOG_WEIGHTS, strict=True):
                exponent = -eta * sum(row[1] for row in part) - len(part) * math.log(1.0 + math.expm1(-eta) * p)
                total += math.exp(weight + exponent - SHARE(int(epoch)) - CONFIDENCE)
        return total

    @property
    def is_fresh(self) -> bool:
        """Whether bounds are computed after this row."""
        return self.cell[epochs.PULLS] < epochs.EVERY_ROW or self.cell[epochs.PULLS] % epochs.ROWS == 0


@pytest.mark.parametrize("modulus", MODULI)
def test_bounds_are_those_of_all_epochs_of_now_and_age(modulus: Drift) -> None:
    """At most the least end of the theorem, by what all epochs say together; no earlier bound is kept."""
    rng, cell = np.random.default_rng(3), Cell(modulus)
    for row in range(700):
        time = row * DAY / 8
        cell.learn(time, float(rng.random() < 0.01))
        if not cell.is_fresh:
            continue
        line = min(high - modulus.slope * time for high, _ in cell.list_ends(time))
        floor = max(low + modulus.slope * time for _, low in cell.list_ends(time))
        for later in (0.0, DAY, 20 * DAY):
            now = time + later
            expected = min(line + modulus.slope * now, 1.0)
            high, low = HIGH(cell.settings, now, cell.cell), LOW(cell.settings, now, cell.cell)
            assert high <= expected + 1e-12
            if high < 1.0 and not modulus.is_budget:
                assert cell.weigh_evidence(high, now) == pytest.approx(1.0, abs=1e-3)
            assert low == pytest.approx(max(floor - modulus.slope * now, 0.0), abs=1e-12)
    assert HIGH(cell.settings, time, cell.cell) < 0.2
    assert cell.cell[epochs.CHANGED] == 0.0


def test_young_outcomes_of_a_budget_pay_it_once() -> None:
    modulus = Drift(0.01, 30 * DAY, is_budget=True)
    cell = Cell(modulus)
    for row in range(640):
        cell.learn(row * DAY / 64, 0.0)
    now = 10 * DAY
    within = UPPER(640.0, 0.0, CONFIDENCE + SHARE(1)) + 0.01
    assert HIGH(cell.settings, now, cell.cell) == pytest.approx(within, abs=1e-12)
    assert HIGH(cell.settings, 29.9 * DAY, cell.cell) == pytest.approx(within, abs=1e-12)
    assert HIGH(cell.settings, 30.1 * DAY, cell.cell) > within + 0.005


def test_shares_add_up_to_one() -> None:
    most = 2**15
    total = math.fsum(math.exp(-SHARE(epoch)) for epoch in range(1, most))
    assert 0.98 < total < 1.0


def test_every_look_back_has_an_epoch_and_few_are_kept() -> None:
    for newest in range(1, 700):
        kept = [epoch for epoch in range(1, newest + 1) if KEPT(epoch, newest)]
        assert len(kept) <= epochs.EPOCHS
        ages = [newest - epoch for epoch in kept]
        for back in range(1, min(newest, epochs.SPAN // 2)):
            assert any(back / (2 if 4 <= back < 32 else 4) < age <= back for age in ages) or (back == 1 and 1 in ages)
        assert kept[-1] == newest
        before = [epoch for epoch in kept if epoch < newest]
        assert all(KEPT(epoch, newest - 1) for epoch in before)  # none comes back


def test_a_cell_has_at_most_forty_numbers_after_ten_years() -> None:
    assert epochs.CELL_SIZE <= 40
    cell = Cell(Drift(0.0001, DAY))
    for step in range(0, 4000, 5):
        cell.learn(step * cell.settings[epochs.STEP], 0.0)
    assert cell.header[epochs.NEWEST] == 3996
    begins = [one for one in cell.header[epochs.FIRST_BEGIN :] if one]
    assert 3996 - epochs.SPAN < begins[0] <= 3996 - epochs.SPAN // 2
    assert all(one < two for one, two in pairwise(begins))


def test_what_parts_further_than_declared_is_found() -> None:
    cell, calm = Cell(Drift(0.001, 30 * DAY)), Cell(Drift(0.06, 30 * DAY))
    rng = np.random.default_rng(2)
    for row in range(4000):
        value = float(rng.random() < (0.004 if row < 2000 else 0.06))
        cell.learn(row * DAY / 100, value)
        calm.learn(row * DAY / 100, value if row < 2000 else float(rng.random() < 0.02))
    assert cell.cell[epochs.CHANGED] > 0.0
    assert calm.cell[epochs.CHANGED] == 0.0


def test_forgetting_leaves_the_epochs_that_began_since() -> None:
    cell = Cell(Drift(0.005, 30 * DAY))
    for row in range(800):
        cell.learn(row * DAY / 10, 0.0)
    begins = cell.header[epochs.ORIGIN] + (cell.header[epochs.FIRST_BEGIN :] - 1.0) * cell.settings[epochs.STEP]
    FORGET(cell.header, cell.settings, 60 * DAY, cell.cell)
    assert HIGH(cell.settings, 80 * DAY, cell.cell) == 1.0
    pulls = cell.cell[epochs.FIRST_EPOCH :: 3]
    for begin, epoch, n in zip(begins, cell.header[epochs.FIRST_BEGIN :], pulls, strict=True):
        if epoch:
            assert (n < 0.0) == (begin < 60 * DAY)
    for row in range(800, 816):
        cell.learn(row * DAY / 10, 0.0)
    assert HIGH(cell.settings, 81.6 * DAY, cell.cell) < 0.2


@given(st.lists(st.tuples(st.floats(0.0, 40.0), st.floats(0.0, 1.0)), min_size=1, max_size=60), st.sampled_from(MODULI))
@settings(max_examples=60)
def test_bounds_hold_for_times_in_any_order(rows: list[tuple[float, float]], modulus: Drift) -> None:
    """No bound is below the least of the theorem's ends at the time of the newest row."""
    cell = Cell(modulus)
    for day, value in rows:
        cell.learn(day * DAY, value)
    now = max(row[0] for row in cell.rows)
    high = HIGH(cell.settings, now, cell.cell)
    assert 0.0 <= LOW(cell.settings, now, cell.cell) <= 1.0
    mean = sum(row[1] for row in rows) / len(rows)
    if not cell.cell[epochs.CHANGED]:
        assert high >= mean - 1e-9 or len(cell.list_ends(now)) > 1
    assert HIGH(cell.settings, now + 5 * DAY, cell.cell) >= high - 1e-15
    assert HIGH(cell.settings, now - 5 * DAY, cell.cell) >= min(high, 1.0) - 1e-15
