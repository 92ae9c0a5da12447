"""Limits: what is refused, and what those from below and those relative to the safe action mean."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    AlwaysSafe,
    AtLeast,
    InvalidProblem,
    Limit,
    Problem,
    Reward,
    SafeAction,
    TimesSafe,
)
from stagewise.launch.forecast.case_forecast import build_cases
from stagewise.problem.errors import ErrorCode
from stagewise.problem.thresholds import parse_threshold, resolve_thresholds

NAN, INF = math.nan, math.inf


def at(cost: Any) -> SafeAction:
    return SafeAction(features=[0.5, 0.5], cost=cost)


BAD_THRESHOLDS = {
    "missing": (None, [ErrorCode.MISSING_VALUE]),
    "an empty mapping": ({}, [ErrorCode.MISSING_VALUE]),
    "an empty list": ([], [ErrorCode.MISSING_VALUE]),
    "an empty tuple": ((), [ErrorCode.MISSING_VALUE]),
    "an empty array": (np.empty(0), [ErrorCode.MISSING_VALUE]),
    "text": ("x", [ErrorCode.WRONG_TYPE]),
    "bytes": (b"x", [ErrorCode.WRONG_TYPE]),
    "digits as text": ("0.5", [ErrorCode.WRONG_TYPE]),
    "a truth value": (True, [ErrorCode.WRONG_TYPE]),
    "complex": (0.5j, [ErrorCode.WRONG_TYPE]),
    "complex of numpy": (np.complex128(0.5 + 1j), [ErrorCode.WRONG_TYPE]),
    "an object": (object(), [ErrorCode.WRONG_TYPE]),
    "nan": (NAN, [ErrorCode.NOT_FINITE]),
    "infinity": (INF, [ErrorCode.NOT_FINITE]),
    "minus infinity": (-INF, [ErrorCode.NOT_FINITE]),
    "text in a list": ([0.5, "x"], [ErrorCode.WRONG_TYPE]),
    "nan in a list": ([NAN, 0.5], [ErrorCode.NOT_FINITE]),
    "nothing in a list": ([None], [ErrorCode.WRONG_TYPE]),
    "a list in a list": ([[0.5]], [ErrorCode.WRONG_TYPE]),
    "a table": (np.full((2, 2), 0.5), ["a number"]),
    "a table of one": (np.array([[0.5]]), ["a number"]),
    "nan in a mapping": ({"spend": NAN}, [ErrorCode.NOT_FINITE]),
    "nothing in a mapping": ({"spend": None}, [ErrorCode.WRONG_TYPE]),
    "a number for a name": ({1: 0.5}, [ErrorCode.INVALID_NAME]),
    "at least nothing": (AtLeast(None), [ErrorCode.WRONG_TYPE]),
    "at least nan": (AtLeast(NAN), [ErrorCode.NOT_FINITE]),
    "at least at least": (AtLeast(AtLeast(0.1)), [ErrorCode.WRONG_TYPE]),
    "relative to nan": (TimesSafe(NAN), [ErrorCode.NOT_FINITE]),
    "relative to text": (TimesSafe("1.1"), [ErrorCode.WRONG_TYPE]),
    "relative to relative": (TimesSafe(TimesSafe(1.1)), [ErrorCode.WRONG_TYPE]),
}


@pytest.mark.parametrize(("threshold", "parts"), BAD_THRESHOLDS.values(), ids=BAD_THRESHOLDS)
def test_a_threshold_that_is_none_is_refused(threshold: Any, parts: list[object]) -> None:
    cost = [0.1, 0.1] if isinstance(threshold, list) and len(threshold) == 2 else 0.1
    for kind in (LCLUCB, OPLB):
        with refused(InvalidProblem, *parts):
            kind(safe_action=at(cost), threshold=threshold, noise=0.1)
    with refused(InvalidProblem, *parts):
        AlwaysSafe(safe_action=at(cost), threshold=threshold)
    with refused(InvalidProblem, *parts):
        OPB(arms=2, safe_action=SafeAction(arm=0, cost=cost), threshold=threshold)


NO_SLACK = {
    "at the threshold": (0.5, 0.5, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "above the threshold": (0.5, 0.7, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "within rounding": (0.5, math.nextafter(0.5, 0.0), [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "the second of two": ([0.5, 0.1], [0.1, 0.2], [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "by name": ({"spend": 0.5, "wait": 0.1}, {"wait": 0.2, "spend": 0.1}, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "from below, at it": (AtLeast(0.5), 0.5, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "from below, under it": (AtLeast(0.5), 0.3, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "relative, same": (TimesSafe(1.0), 0.3, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "relative, less": (TimesSafe(0.9), 0.3, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "relative to nothing": (TimesSafe(1.1), 0.0, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "relative to a gain": (TimesSafe(1.1), -0.3, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "relative, from below, same": (AtLeast(TimesSafe(1.0)), 0.3, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
    "relative, from below, more": (AtLeast(TimesSafe(1.1)), 0.3, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
}


@pytest.mark.parametrize(("threshold", "cost", "parts"), NO_SLACK.values(), ids=NO_SLACK)
def test_a_safe_action_without_slack_is_refused(threshold: Any, cost: Any, parts: list[object]) -> None:
    with refused(InvalidProblem, *parts):
        LCLUCB(safe_action=at(cost), threshold=threshold, noise=0.1)


def test_a_known_cost_without_slack_is_refused_even_where_another_is_unknown() -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        LCLUCB(safe_action=at([0.6, None]), threshold=[0.5, 0.5], noise=0.1)


BAD_COSTS = {
    "other names": ({"speed": 0.1}, {"spend": 0.5}, [ErrorCode.UNKNOWN_NAME]),
    "too many names": ({"spend": 0.1, "wait": 0.1}, {"spend": 0.5}, [ErrorCode.UNKNOWN_NAME]),
    "too few names": ({"spend": 0.1}, {"spend": 0.5, "wait": 0.5}, [ErrorCode.UNKNOWN_NAME]),
    "numbers for names": ({1: 0.1}, {"spend": 0.5}, [ErrorCode.UNKNOWN_NAME]),
    "names where there are none": ({"spend": 0.1}, 0.5, [ErrorCode.UNKNOWN_NAME]),
    "one for two": (0.1, [0.5, 0.5], [ErrorCode.WRONG_SHAPE]),
    "three for two": ([0.1] * 3, [0.5, 0.5], [ErrorCode.WRONG_SHAPE]),
    "an empty list": ([], 0.5, [ErrorCode.WRONG_SHAPE]),
    "text": ("x", 0.5, [ErrorCode.WRONG_TYPE]),
    "a truth value": (True, 0.5, [ErrorCode.WRONG_TYPE]),
    "nan": (NAN, 0.5, [ErrorCode.NOT_FINITE]),
    "infinity": ([INF], 0.5, [ErrorCode.NOT_FINITE]),
    "complex": (0.1j, 0.5, [ErrorCode.WRONG_TYPE]),
    "nan beside an unknown one": ([NAN, None], [0.5, 0.5], [ErrorCode.NOT_FINITE]),
    "text beside an unknown one": (["x", None], [0.5, 0.5], [ErrorCode.WRONG_TYPE]),
    "ragged": ([[0.1], [0.1, 0.2]], [0.5, 0.5], [ErrorCode.WRONG_TYPE]),
    "a table": (np.full((1, 2), 0.1), [0.5, 0.5], [ErrorCode.WRONG_SHAPE]),
}


@pytest.mark.parametrize(("cost", "threshold", "parts"), BAD_COSTS.values(), ids=BAD_COSTS)
def test_safe_costs_that_do_not_fit_are_refused(cost: Any, threshold: Any, parts: list[object]) -> None:
    with refused(InvalidProblem, "the safe action's cost", *parts):
        LCLUCB(safe_action=at(cost), threshold=threshold, noise=0.1)


@pytest.mark.parametrize("cost", [0.1, [0.1], {"cost": -0.2}], ids=repr)
def test_at_the_origin_nothing_has_a_cost(cost: Any) -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        LCLUCB(safe_action=SafeAction(features=[0.0, 0.0], cost=cost), threshold=0.5, noise=0.1)


def test_at_the_origin_nothing_has_a_reward() -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        LCLUCB(safe_action=SafeAction(features=[0.0, 0.0], reward=0.3), threshold=0.5, noise=0.1)


@pytest.mark.parametrize("threshold", [0.0, -0.1, AtLeast(0.0), AtLeast(0.2)], ids=repr)
def test_at_the_origin_a_threshold_must_leave_room_beside_zero(threshold: Any) -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        LCLUCB(safe_action=SafeAction(features=[0.0, 0.0]), threshold=threshold, noise=0.1)


@pytest.mark.parametrize("threshold", [TimesSafe(1.1), AtLeast(TimesSafe(0.9))], ids=repr)
def test_relative_to_an_unknown_cost_is_refused(threshold: Any) -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_COST_UNKNOWN):
        LCLUCB(safe_action=at(None), threshold=threshold, noise=0.1)


def test_relative_to_a_known_cost_is_taken_even_where_another_is_unknown() -> None:
    policy = LCLUCB(safe_action=at([0.2, None]), threshold=[TimesSafe(1.5), 0.5], noise=0.1)
    assert policy.thresholds.values.tolist() == pytest.approx([0.3, 0.5])


@pytest.mark.parametrize(
    ("threshold", "cost", "names", "values", "signs"),
    [
        (0.5, 0.1, ("cost",), [0.5], [1.0]),
        (np.float32(0.5), 0.1, ("cost",), [0.5], [1.0]),
        (np.array(0.5), np.array([0.1]), ("cost",), [0.5], [1.0]),
        ([1, 0.5], [0, 0.1], ("cost 1", "cost 2"), [1.0, 0.5], [1.0, 1.0]),
        (np.array([0.5, 0.5]), (0.1, 0.1), ("cost 1", "cost 2"), [0.5, 0.5], [1.0, 1.0]),
        ({"b": 0.5, "a": AtLeast(0.1)}, {"a": 0.2, "b": 0.3}, ("b", "a"), [0.5, 0.1], [1.0, -1.0]),
        ({"b": 0.5, "a": AtLeast(0.1)}, [0.3, 0.2], ("b", "a"), [0.5, 0.1], [1.0, -1.0]),
        (TimesSafe(2), 0.1, ("cost",), [0.2], [1.0]),
        (TimesSafe(0.5), -0.2, ("cost",), [-0.1], [1.0]),
        (AtLeast(TimesSafe(0.5)), 0.2, ("cost",), [0.1], [-1.0]),
        ([TimesSafe(2), AtLeast(-1)], [0.1, 0.2], ("cost 1", "cost 2"), [0.2, -1.0], [1.0, -1.0]),
    ],
    ids=lambda value: repr(value) if not isinstance(value, tuple) else None,
)
def test_a_threshold_means_what_it_says(threshold: Any, cost: Any, names: Any, values: Any, signs: Any) -> None:
    thresholds = resolve_thresholds(threshold, at(cost))
    assert thresholds.names == names
    assert thresholds.values.tolist() == pytest.approx(values)
    assert thresholds.signs.tolist() == signs


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_either_there_is_slack_or_the_problem_is_refused(threshold: float, cost: float) -> None:
    """The limit that the arithmetic aims at lies strictly between the safe cost and the threshold, or at the latter."""
    try:
        thresholds = resolve_thresholds(threshold, at(cost))
    except InvalidProblem:
        assert cost >= threshold - 1e-13 * max(abs(cost), abs(threshold))
    else:
        assert cost < thresholds.limits[0] <= threshold


def test_thresholds_do_not_follow_what_they_were_made_of() -> None:
    """Whoever keeps the mapping cannot move the limits of a policy by it."""
    threshold, cost = {"spend": 0.5}, {"spend": 0.1}
    policy = LCLUCB(safe_action=at(cost), threshold=threshold, noise=0.1)
    threshold["spend"], cost["spend"] = 0.9, 0.8
    assert policy.thresholds.values.tolist() == [0.5]
    with pytest.raises(ValueError, match="read-only"):
        policy.thresholds.values[0] = 0.9


@pytest.mark.parametrize("threshold", [0.3, AtLeast(0.3), TimesSafe(0.3), AtLeast(TimesSafe(0.3))], ids=repr)
def test_a_threshold_with_another_number_stays_of_its_kind(threshold: Any) -> None:
    parts = parse_threshold(threshold)
    assert parts.number == 0.3
    assert parts.with_number(0.3) == threshold
    assert parse_threshold(parts.with_number(0.4)) == parts._replace(number=0.4)
    assert Limit(threshold, safe_bound=0.5).with_number(0.4) == Limit(parts.with_number(0.4), safe_bound=0.5)


def test_a_forecast_keeps_a_limit_from_below_relative_to_the_safe_action() -> None:
    stay = Limit(AtLeast(TimesSafe(0.9)), safe_bound=0.8)
    problem = Problem(action_names=["none", "mail"], safe_name="none", reward=Reward("click"), limits={"stay": stay})
    narrow, wide = (case.problem for case in build_cases(problem, {"stay": [0.5]}))
    assert narrow is not None
    assert wide is not None
    assert narrow.limits["stay"] == stay
    assert wide.limits["stay"] == Limit(AtLeast(TimesSafe(0.5)), safe_bound=0.8)
