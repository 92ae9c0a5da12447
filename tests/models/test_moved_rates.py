"""Evidence that rates moved: the formula against its meaning, and its size where nothing moves."""

import math
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed

from stagewise.models.rate_changes import FALLS, RATIOS, RISES, SHORT, CellCounts, compute_log_evidence, find_shift

MEANS = np.linspace(0.0, 1.0, 2001)


def cells_of(pulls: Any, totals: Any, index: int) -> CellCounts:
    return CellCounts.at([np.array(one, float) for one in pulls], [np.array(one, float) for one in totals], index)


def by_definition(pulls: list[float], totals: list[float], rises: bool) -> float:
    """Return the mixture of bets on one cell since its first mark, the least over a grid of means, step by step."""
    early, result = pulls[0], []
    sign, bets = (1.0, RISES) if rises else (-1.0, FALLS)
    for stake, other, ratio in bets:
        factor, grown, used = (1.0 - sign * other) ** totals[0] * np.ones(MEANS.size), early, 0.0
        factor *= (1.0 - sign * other * MEANS) ** -early
        for j in range(1, len(pulls)):
            new, events = pulls[j] - pulls[j - 1], totals[j] - totals[j - 1]
            part = min(max((RATIOS[int(ratio)] * early - used) / max(SHORT * grown, 1.0), 0.0), 1.0)
            factor *= (1.0 + sign * stake * part) ** events * np.exp(-sign * stake * part * new * MEANS)
            used, grown = used + part * new, new
        result.append(factor.min())
    return math.log(sum(result) / (4.0 * len(bets)))


@pytest.mark.parametrize("rises", [True, False])
@pytest.mark.parametrize("totals", [[4.0, 5.0, 14.0, 18.0], [12.0, 12.0, 13.0, 13.0], [0.0, 3.0, 3.0, 4.0]])
def test_evidence_is_what_bets_make_at_the_worst_mean(totals: list[float], rises: bool) -> None:
    pulls = [60.0, 80.0, 110.0, 160.0]
    found = compute_log_evidence(cells_of([[n] for n in pulls], [[s] for s in totals], 0), np.array([0]), rises)
    expected = by_definition(pulls, totals, rises)
    assert found <= expected + 1e-12
    assert found == pytest.approx(expected, abs=1e-3)


def test_what_is_nearer_to_one_is_weighed_by_what_it_lacks() -> None:
    pulls, totals = [[60.0], [80.0], [120.0]], [[3.0], [9.0], [22.0]]
    lacking = [[n - s] for [n], [s] in zip(pulls, totals, strict=True)]
    one = compute_log_evidence(cells_of(pulls, totals, 0), np.array([0]), True)
    assert compute_log_evidence(cells_of(pulls, lacking, 0), np.array([0]), False) == pytest.approx(one)


def test_a_factor_of_a_product_is_never_below_what_is_held_back() -> None:
    """A cell whose rate fell tells nothing of the rise of nine others, and cannot hide it."""
    pulls = [[100.0] * 10, [200.0] * 10]
    rose = cells_of(pulls, [[5.0] * 10, [5.0 + 25.0] * 10], 0)
    but_one = cells_of(pulls, [[5.0] * 9 + [90.0], [30.0] * 9 + [90.0]], 0)
    all_, nine = (compute_log_evidence(cells, np.arange(10), True) for cells in (rose, but_one))
    assert nine > 20.0
    assert all_ > nine


def adapted(chance: np.random.Generator, rates: Any, steps: int) -> tuple[list[Any], list[Any]]:
    """Return pulls and totals at marks; what is played next depends on all that came, and the mix of users moves."""
    pulls, totals = [np.zeros(rates.size)], [np.zeros(rates.size)]
    for step in range(steps):
        weight = np.where(np.arange(rates.size) < rates.size // 2, 1.0 - step / steps, 1.0)
        weight *= np.where(totals[-1] <= rates * pulls[-1], 0.3, 1.0)  # whoever was lucky is played less
        new = chance.multinomial(int(60 * 1.2**step), weight / weight.sum())
        pulls.append(pulls[-1] + new)
        totals.append(totals[-1] + chance.binomial(new, rates))
    return pulls[1:], totals[1:]


@pytest.mark.long
def test_rates_that_stay_are_seldom_said_to_move() -> None:
    """At level .2 over all marks, all later times, every cell, both actions and all together."""
    rates, alarms, runs, steps = np.array([0.02, 0.3, 0.1, 0.05, 0.5, 0.2, 0.15, 0.7]), 0, 200, 8
    for seed in range(runs):
        pulls, totals = adapted(np.random.default_rng(seed), rates, steps)
        alarms += any(
            find_shift(CellCounts.at(pulls[:now], totals[:now], index), 2, True, math.log(steps / 0.2)) is not None
            for now in range(2, steps + 1)
            for index in range(now - 1)
        )
    assert alarms <= allowed(runs, 0.2)


@pytest.mark.long
def test_evidence_is_worth_one_at_most_where_rates_stay() -> None:
    """Its mean over many runs, in each of which what is played depends on what came before."""
    rates, result = np.array([0.02, 0.1, 0.3, 0.5]), []
    for seed in range(1500):
        pulls, totals = adapted(np.random.default_rng(seed), rates, 6)
        result.append(
            [
                math.exp(compute_log_evidence(CellCounts.at(pulls, totals, 2), np.arange(4), rises))
                for rises in (True, False)
            ]
        )
    assert np.mean(result, axis=0).max() <= 0.25  # each has a quarter of the stakes
