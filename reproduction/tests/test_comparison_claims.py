"""What the comparison says of limits: it must find a policy that breaks its promise, and one unlucky run is none."""

import math
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.beyond.comparison.claims import CHANCE, allowed, kept
from stagewise_reproduction.claim import FAILS, HOLDS, clearly_smaller
from stagewise_reproduction.instances import DELTA


def broken(*rounds: int) -> sw.Result:
    """Return a policy's runs, each with so many rounds above the limit."""
    column, runs = np.zeros((len(rounds), 1)), np.arange(len(rounds))
    cost = np.zeros((len(rounds), 1, 1))
    return sw.Result(np.array([10]), column, column, cost, cost[:, 0], np.array(rounds), column, runs, {})


@pytest.mark.parametrize(
    ("bad", "verdict", "most", "all_"),
    [
        ([0] * 10, HOLDS, 0.0, 0),
        ([7, *[0] * 9], HOLDS, 1.0, 1),  # a run counts once, in however many rounds
        ([1, 1, 1, *[0] * 7], FAILS, 3.0, 3),
        ([9] * 10, FAILS, 10.0, 10),
    ],
)
def test_one_policy_that_breaks_its_promise_is_found_among_many(
    bad: list[int], verdict: str, most: float, all_: int
) -> None:
    good: dict[str, Any] = {str(k): broken(*[0] * 10) for k in range(45)}
    claim = kept({**good, "bad": broken(*bad)})
    assert claim.must_hold
    assert (claim.verdict, claim.value) == (verdict, most)
    assert claim.remark.startswith(f"{all_} of all 460 runs")


def test_of_equal_regrets_it_is_said_that_they_are_equal() -> None:
    same = clearly_smaller("one regrets less", broken(0, 0), broken(0, 0), "disclosed")
    assert same.verdict == FAILS
    assert same.remark.startswith("the same in every run")


def test_two_runs_that_both_break_limits_are_too_many() -> None:
    good = {str(k): broken(0, 0) for k in range(45)}
    assert kept({**good, "bad": broken(1, 1)}).verdict == FAILS
    assert kept({**good, "bad": broken(1, 0)}).verdict == HOLDS


@pytest.mark.parametrize("runs", [2, 4, 10, 100, 4000])
def test_so_many_runs_are_allowed_that_more_would_be_a_surprise(runs: int) -> None:
    most, level = allowed(runs, 1.0 - CHANCE), np.array([math.comb(runs, k) for k in range(10)], dtype=float)
    tail = [float(np.sum(level[: k + 1] * DELTA ** np.arange(k + 1) * (1 - DELTA) ** (runs - np.arange(k + 1))))
            for k in range(10)]  # fmt: skip
    if runs <= 100:
        assert tail[most] >= 1.0 - CHANCE
        assert most == 0 or tail[most - 1] < 1.0 - CHANCE
    drawn = np.random.default_rng(0).binomial(runs, DELTA, 200_000)
    assert float((drawn > most).mean()) <= 1.1 * CHANCE
    assert most == 0 or float((drawn > most - 1).mean()) > 0.9 * CHANCE
