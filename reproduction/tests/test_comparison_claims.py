"""What is said of limits: a broken promise is found, one unlucky run is not one, and runs over a limit are counted."""

import math
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.claim import (
    FAILS,
    FALSE_ALARM_RATE,
    HOLDS,
    REMARK,
    Claim,
    LimitCount,
    check_clearly_smaller,
    check_safety,
    compute_allowed_runs,
)
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.report import summarize


def broken(*rounds: int) -> sw.Result:
    """Return a policy's runs, each with so many rounds above the limit."""
    column, runs = np.zeros((len(rounds), 1)), np.arange(len(rounds))
    cost = np.zeros((len(rounds), 1, 1))
    return sw.Result(np.array([10]), column, column, cost, cost[:, 0], np.array(rounds), column, runs, {})


@pytest.mark.parametrize(
    ("bad", "verdict", "over", "rounds"),
    [
        ([0] * 10, HOLDS, 0, 0),
        ([7, *[0] * 9], REMARK, 1, 7),  # a run counts once, in however many rounds, and is not passed over
        ([1, 1, 1, *[0] * 7], FAILS, 3, 3),
        ([9] * 10, FAILS, 10, 90),
    ],
)
def test_one_policy_that_breaks_its_promise_is_found_among_many(
    bad: list[int], verdict: str, over: int, rounds: int
) -> None:
    good: dict[str, Any] = {str(k): broken(*[0] * 10) for k in range(45)}
    claim = check_safety({**good, "bad": broken(*bad)})
    assert claim.must_hold
    assert claim.verdict == verdict
    assert claim.limits == LimitCount(over, 460, rounds, 4600, DELTA)


def test_settings_without_a_delta_may_break_no_limit() -> None:
    assert check_safety({"a": broken(0, 0)}, 0.0).verdict == HOLDS
    one = check_safety({"a": broken(0, 5)}, 0.0)
    assert (one.verdict, one.must_hold, one.limits) == (FAILS, False, LimitCount(1, 2, 5, 20, 0.0))


HELD = Claim("regret is under its bound", 1.0, "at most 2", HOLDS, True, experiment="a")
LOST = Claim("regret is under its bound", 3.0, "at most 2", FAILS, True, experiment="b")


def test_the_headline_counts_the_runs_that_went_over_a_limit() -> None:
    lucky = summarize("quick", [check_safety({"a": broken(*[0] * 10)}), HELD])
    assert "0 of 10 runs that promise safety went over a limit (0 of 100 rounds); δ allows 0.1 on average" in lucky
    assert "All 2 claims that must hold do" in lucky
    unlucky = summarize("quick", [check_safety({"a": broken(*[0] * 9, 7)}), HELD])
    assert "1 of 10 runs that promise safety went over a limit (7 of 100 rounds)" in unlucky
    assert "Of all 2 claims 1 hold, 1 with a remark, 0 do not" in unlucky


def test_the_headline_keeps_settings_without_a_delta_apart() -> None:
    said = summarize("full", [check_safety({"a": broken(0, 0)}), check_safety({"a": broken(0, 5)}, 0.0)])
    assert "0 of 2 runs that promise safety went over a limit (0 of 20 rounds); δ allows 0.0 on average" in said
    assert "1 of 2 runs with settings that state no δ went over a limit (5 of 20 rounds)" in said


def test_the_headline_says_which_claims_that_must_hold_do_not() -> None:
    said = summarize("full", [check_safety({"a": broken(*[4] * 10)}), HELD, LOST])
    assert "10 of 10 runs" in said
    assert "2 of 3 claims that must hold do not" in said
    assert "b: regret is under its bound: 3" in said


def test_of_equal_regrets_it_is_said_that_they_are_equal() -> None:
    same = check_clearly_smaller("one regrets less", broken(0, 0), broken(0, 0), "disclosed")
    assert same.verdict == FAILS
    assert same.remark.startswith("the same in every run")


def test_two_runs_that_both_break_limits_are_too_many() -> None:
    good = {str(k): broken(0, 0) for k in range(45)}
    assert check_safety({**good, "bad": broken(1, 1)}).verdict == FAILS
    assert check_safety({**good, "bad": broken(1, 0)}).verdict == REMARK


@pytest.mark.parametrize("runs", [2, 4, 10, 100, 4000])
def test_so_many_runs_are_allowed_that_more_would_be_a_surprise(runs: int) -> None:
    most, level = (
        compute_allowed_runs(runs, 1.0 - FALSE_ALARM_RATE),
        np.array([math.comb(runs, k) for k in range(10)], dtype=float),
    )
    tail = [float(np.sum(level[: k + 1] * DELTA ** np.arange(k + 1) * (1 - DELTA) ** (runs - np.arange(k + 1))))
            for k in range(10)]  # fmt: skip
    if runs <= 100:
        assert tail[most] >= 1.0 - FALSE_ALARM_RATE
        assert most == 0 or tail[most - 1] < 1.0 - FALSE_ALARM_RATE
    drawn = np.random.default_rng(0).binomial(runs, DELTA, 200_000)
    assert float((drawn > most).mean()) <= 1.1 * FALSE_ALARM_RATE
    assert most == 0 or float((drawn > most - 1).mean()) > 0.9 * FALSE_ALARM_RATE
