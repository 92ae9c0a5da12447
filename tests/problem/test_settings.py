"""Settings of the policies: each bad one is refused in a sentence with its name, its value and the rule."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

from stagewise import (
    LCLUCB,
    OPB,
    OPLB,
    ROFUL,
    UCB,
    Agent,
    AlwaysSafe,
    InvalidProblem,
    KernelOPLB,
    LinearKernel,
    LinUCB,
    SafeAction,
    SafeLTS,
    SafePosteriorSampling,
)
from stagewise.problem.errors import ErrorCode

NAN, INF = math.nan, math.inf

LINEAR = {"LCLUCB": LCLUCB, "ROFUL": ROFUL, "SafeLTS": SafeLTS, "OPLB": OPLB}
ALL_LINEAR = {**LINEAR, "CAPS": SafePosteriorSampling}
LINEAR_SETTINGS = {"safe_action": SafeAction(features=[0.5, 0.5], reward=0.2, cost=0.1), "threshold": 0.5, "noise": 0.1}
ARM_SETTINGS = {"arms": 3, "safe_action": SafeAction(arm=0, reward=0.2, cost=0.1), "threshold": 0.5}

POSITIVE = [(0.0, ErrorCode.OUT_OF_RANGE), (NAN, ErrorCode.NOT_FINITE), ("0.1", ErrorCode.WRONG_TYPE)]
PROBABILITY = [*POSITIVE, (1.0, ErrorCode.OUT_OF_RANGE), (None, ErrorCode.WRONG_TYPE)]
SCALE = [(0.99, ErrorCode.OUT_OF_RANGE), (INF, ErrorCode.NOT_FINITE), (True, ErrorCode.WRONG_TYPE)]
NAME = [("best", ErrorCode.INVALID_CHOICE), (1, ErrorCode.INVALID_CHOICE), (["joint"], ErrorCode.INVALID_CHOICE)]
COUNT = [(0, ErrorCode.OUT_OF_RANGE), (100.0, ErrorCode.WRONG_TYPE), (True, ErrorCode.WRONG_TYPE)]
BAD_VALUES: dict[str, list[tuple[Any, ErrorCode]]] = {
    **dict.fromkeys(("noise", "norm_bound", "action_bound", "ridge", "mean_cost_bound"), POSITIVE),
    "delta": PROBABILITY,
    **dict.fromkeys(("reward_confidence_scale", "cost_confidence_scale"), SCALE),
    **dict.fromkeys(("radius", "interval", "optimism", "inflation"), NAME),
    "horizon": COUNT,
}
NUMBERS = [
    "noise",
    "norm_bound",
    "action_bound",
    "ridge",
    "mean_cost_bound",
    "delta",
    "cost_confidence_scale",
    "radius",
]
CHECKED: list[tuple[Any, dict[str, Any], list[str]]] = [
    (LCLUCB, LINEAR_SETTINGS, [*NUMBERS, "optimism", "reward_confidence_scale"]),
    (OPLB, LINEAR_SETTINGS, [*NUMBERS, "optimism", "reward_confidence_scale"]),
    (ROFUL, LINEAR_SETTINGS, NUMBERS),
    (SafeLTS, LINEAR_SETTINGS, [*NUMBERS, "inflation"]),
    (
        OPB,
        ARM_SETTINGS,
        ["noise", "mean_cost_bound", "delta", "cost_confidence_scale", "interval", "optimism", "horizon"],
    ),
    (UCB, {"arms": 3}, ["noise", "delta", "interval", "horizon"]),
    (LinUCB, {"noise": 0.1}, ["noise", "norm_bound", "action_bound", "ridge", "delta", "radius"]),
]


@pytest.mark.parametrize(("kind", "settings", "names"), CHECKED, ids=[row[0].__name__ for row in CHECKED])
def test_a_bad_setting_is_refused(kind: Any, settings: dict[str, Any], names: list[str]) -> None:
    kind(**settings)
    for name in names:
        for value, code in BAD_VALUES[name]:
            with refused(InvalidProblem, code, name):
                kind(**settings | {name: value})


@pytest.mark.parametrize("name", ["noise", "norm_bound", "action_bound", "cost_confidence_scale"])
def test_a_number_that_is_needed_is_not_none(name: str) -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE, name):
        LCLUCB(**LINEAR_SETTINGS | {name: None})


def test_safe_lts_has_no_directional_optimism() -> None:
    with pytest.raises(TypeError, match="optimism"):
        SafeLTS(**LINEAR_SETTINGS, optimism="directional")


@pytest.mark.parametrize("threshold", [0.0, {"a": 0.5, "b": 0.0}], ids=repr)
def test_the_authors_inflation_divides_by_the_threshold_so_none_may_be_zero_or_less(threshold: Any) -> None:
    """With √n/min(1, τ) at τ = 0 every bound is infinite, and the safe action would be played for ever."""
    cost = [-0.1, -0.1] if isinstance(threshold, dict) else -0.1
    safe = SafeAction(features=[0.5, 0.5], reward=0.2, cost=cost)
    with refused(InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        SafeLTS(safe_action=safe, threshold=threshold, noise=0.1, inflation="authors")


def test_roful_has_one_optimism() -> None:
    with pytest.raises(TypeError, match="optimism"):
        ROFUL(**LINEAR_SETTINGS, optimism="inflated")


@pytest.mark.parametrize("name", ["noise", "norm_bound"])
@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ([0.5], [ErrorCode.WRONG_SHAPE]),
        ([0.5, 0.5, 0.5], [ErrorCode.WRONG_SHAPE]),
        ([], [ErrorCode.WRONG_SHAPE]),
        ([0.5, -0.5], [ErrorCode.OUT_OF_RANGE]),
        ([NAN, 0.5], [ErrorCode.NOT_FINITE]),
        (["a", 0.5], [ErrorCode.WRONG_TYPE]),
        ([0.5, None], [ErrorCode.WRONG_TYPE]),
        ([[0.5], [0.5]], [ErrorCode.WRONG_TYPE]),
        (np.full((2, 1), 0.5), [ErrorCode.WRONG_SHAPE]),
        ([[0.5], [0.5, 0.5]], [ErrorCode.WRONG_TYPE]),
        ({"reward": 0.5, "cost": 0.5}, [ErrorCode.WRONG_TYPE]),
    ],
    ids=["one", "three", "none", "negative", "nan", "text", "None", "lists", "column", "ragged", "mapping"],
)
def test_one_number_per_signal_is_needed(name: str, value: Any, parts: list[object]) -> None:
    with refused(InvalidProblem, name, *parts):
        LCLUCB(**LINEAR_SETTINGS | {name: value})


@pytest.mark.parametrize("noise", [[0.1, 0.2], (0.1, 0.2), np.array([0.1, 0.2])], ids=["list", "tuple", "array"])
def test_one_number_per_signal_is_taken(noise: Any) -> None:
    assert Agent(LCLUCB(**LINEAR_SETTINGS | {"noise": noise})).decide(np.eye(2)).message is None


@pytest.mark.parametrize("safe_action", [None, "safe", 0, [0.5, 0.5], SafeAction], ids=repr)
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL, SafeLTS, OPLB, SafePosteriorSampling, OPB, AlwaysSafe])
def test_a_safe_action_that_is_none_is_refused(kind: Any, safe_action: Any) -> None:
    settings = ARM_SETTINGS if kind is OPB else LINEAR_SETTINGS
    if kind is AlwaysSafe:
        settings = {"threshold": 0.5}
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE, repr(safe_action)):
        kind(**settings | {"safe_action": safe_action})


@pytest.mark.parametrize("make", [lambda s: LinUCB(noise=0.1, **s), lambda s: UCB(arms=3, **s)], ids=["LinUCB", "UCB"])
def test_a_safe_action_that_is_none_is_refused_where_it_is_only_watched(make: Any) -> None:
    with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
        make({"safe_action": "x", "threshold": 0.5})


@pytest.mark.parametrize("kind", ALL_LINEAR.values(), ids=ALL_LINEAR)
def test_linear_policies_need_features(kind: Any) -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        kind(**LINEAR_SETTINGS | {"safe_action": SafeAction(arm=0, cost=0.1)})


def test_policies_on_arms_need_an_arm() -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        OPB(**ARM_SETTINGS | {"safe_action": SafeAction(features=[0.5], cost=0.1)})


@pytest.mark.parametrize("arm", [3, 10])
def test_the_safe_arm_must_be_one_of_the_arms(arm: int) -> None:
    with refused(InvalidProblem, ErrorCode.SAFE_ACTION_INVALID, arm):
        OPB(**ARM_SETTINGS | {"safe_action": SafeAction(arm=arm, cost=0.1)})


@pytest.mark.parametrize("arms", [0, 2.5], ids=repr)
@pytest.mark.parametrize(("kind", "settings"), [(OPB, ARM_SETTINGS), (UCB, {})], ids=["OPB", "UCB"])
def test_a_number_of_arms_is_a_setting_like_others(kind: Any, settings: dict[str, Any], arms: Any) -> None:
    code = ErrorCode.OUT_OF_RANGE if arms == 0 else ErrorCode.WRONG_TYPE
    with refused(InvalidProblem, code, repr(arms)):
        kind(**settings | {"arms": arms})


def test_an_arm_never_pulled_needs_a_bound() -> None:
    with refused(InvalidProblem, ErrorCode.MISSING_VALUE):
        OPB(**ARM_SETTINGS, mean_cost_bound=None)


@pytest.mark.parametrize(
    ("what", "value"), [("reward", 0.9), ("cost", 0.8), ("cost", -0.8)], ids=["reward", "cost", "negative cost"]
)
def test_a_norm_bound_must_allow_the_safe_action(what: str, value: float) -> None:
    known = {"reward": 0.1, "cost": 0.1, what: value}
    safe = SafeAction(features=[0.3, 0.4], **known)
    with refused(InvalidProblem, ErrorCode.BOUND_EXCEEDED, what, value):
        LCLUCB(safe_action=safe, threshold=0.95, noise=0.1)
    LCLUCB(safe_action=safe, threshold=0.95, noise=0.1, norm_bound=abs(value) / 0.5)


@pytest.mark.parametrize("cost", [1.2, -1.2])
def test_a_mean_cost_bound_must_allow_the_safe_action(cost: float) -> None:
    safe = SafeAction(features=[0.6, 0.8], reward=0.1, cost=cost)
    settings = {"safe_action": safe, "threshold": 1.5, "noise": 0.1, "norm_bound": 2.0}
    with refused(InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        LCLUCB(**settings)
    LCLUCB(**settings, mean_cost_bound=1.6)
    LCLUCB(**settings, mean_cost_bound=None)


@pytest.mark.parametrize(
    "known", [{"reward": 0.2, "cost": -0.1}, {"reward": -0.2, "cost": 0.1}], ids=["cost", "reward"]
)
def test_a_safe_arm_outside_the_range_of_all_outcomes_is_refused(known: dict[str, float]) -> None:
    """Without `noise` all outcomes are promised to lie in [0, 1]; a mean outside breaks that promise."""
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        OPB(arms=3, safe_action=SafeAction(arm=0, **known), threshold=0.5)
    settings = {"safe_action": SafeAction(features=[0.5, 0.0], **known), "threshold": 0.5, "noise": 0.5}
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        SafePosteriorSampling(**settings, bounded_outcomes=True)
    SafePosteriorSampling(**settings)


@pytest.mark.parametrize("kind", ALL_LINEAR.values(), ids=ALL_LINEAR)
@pytest.mark.parametrize("features", [[0.0], [0.5], [0.3, 0.4]], ids=["origin", "line", "plane"])
def test_the_papers_radius_needs_two_unknown_directions(kind: Any, features: list[float]) -> None:
    safe = SafeAction(features=features, reward=0.0, cost=0.0)
    with refused(InvalidProblem, ErrorCode.UNSUPPORTED):
        kind(safe_action=safe, threshold=0.5, noise=0.1, radius="paper")


def test_the_papers_radius_needs_a_safe_action_within_its_bound() -> None:
    """Where nothing is known of the safe action it is played and learned from like any other."""
    settings = {"safe_action": SafeAction(features=[3.0, 0.0]), "threshold": 0.5, "noise": 0.1, "radius": "paper"}
    with refused(InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        LCLUCB(**settings)
    LCLUCB(**settings, action_bound=3.0, mean_cost_bound=None)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-170, 1e-155])
@pytest.mark.parametrize("kind", [LCLUCB, OPLB])
def test_a_safe_action_almost_at_the_origin_hides_no_direction(kind: Any, size: float) -> None:
    """Its squared norm underflows. Either it is refused, or a target orthogonal to it is as dear as any other."""
    try:
        policy = kind(safe_action=SafeAction(features=[size, 0.0], reward=0.0, cost=0.0), threshold=0.5, noise=0.1)
    except InvalidProblem:
        return
    for target in ([[0.0, 1.0]], [[0.6, 0.8]]):
        decision = Agent(policy).decide(target)
        share = decision.step_size if decision.probabilities is None else decision.probabilities[0]
        assert share <= 0.7


def test_a_safe_action_too_long_to_measure_is_refused() -> None:
    with refused(InvalidProblem, ErrorCode.NOT_FINITE):
        LCLUCB(safe_action=SafeAction(features=[1e200, 1e200], reward=0.0, cost=0.0), threshold=0.5, noise=0.1)


@pytest.mark.parametrize("make", [lambda t: LinUCB(noise=0.1, threshold=t), lambda t: UCB(arms=3, threshold=t)])
@pytest.mark.parametrize(
    ("threshold", "code"),
    [
        (NAN, ErrorCode.NOT_FINITE),
        ("x", ErrorCode.WRONG_TYPE),
        ([], ErrorCode.MISSING_VALUE),
        ({}, ErrorCode.MISSING_VALUE),
    ],
    ids=repr,
)
def test_thresholds_that_are_only_watched_are_checked_too(make: Any, threshold: Any, code: ErrorCode) -> None:
    with refused(InvalidProblem, code):
        make(threshold)


@pytest.mark.parametrize("value", [None, "False", 1, 0.0])
def test_a_switch_is_true_or_false(value: Any) -> None:
    linear: dict[str, Any] = {"safe_action": SafeAction(features=[0.0]), "threshold": 0.3, "noise": 0.1}
    arm = SafeAction(arm=0, reward=0.1, cost=0.0)
    for make in (
        lambda: LCLUCB(**linear, split_delta=value),
        lambda: KernelOPLB(**linear, kernel=LinearKernel(), norm_bound=1.0, split_delta=value),
        lambda: OPB(arms=2, safe_action=arm, threshold=0.3, split_delta=value),
    ):
        with refused(InvalidProblem, ErrorCode.WRONG_TYPE):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: UCB(arms=10, noise=1e308),
        lambda: LinUCB(noise=1e308),
        lambda: LinUCB(noise=0.1, norm_bound=1e200),
        lambda: LCLUCB(safe_action=SafeAction(features=[0.0]), threshold=0.5, noise=1e300),
    ],
)
def test_settings_whose_squares_overflow_are_refused(make: Any) -> None:
    """UCB has no safe arm to fall back on, and played arm -4."""
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        make()
