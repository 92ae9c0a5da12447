"""The bound on mean costs: given or left out, it can neither switch a limit off nor pass for a promise nobody made."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise import InvalidActions, InvalidProblem
from stagewise.problem.errors import ErrorCode

ZERO = sw.SafeAction(features=[0.0, 0.0])
ARM = sw.SafeAction(arm=0, reward=0.1, cost=0.05)
RBF = {"kernel": sw.RBF(lengthscale=0.5), "noise": 0.1}
POINT = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)

EVERYBODY: dict[str, Any] = {
    "LCLUCB": lambda **more: sw.LCLUCB(safe_action=ZERO, noise=0.1, **more),
    "ROFUL": lambda **more: sw.ROFUL(safe_action=ZERO, noise=0.1, **more),
    "SafeLTS": lambda **more: sw.SafeLTS(safe_action=ZERO, noise=0.1, **more),
    "CAPS": lambda **more: sw.SafePosteriorSampling(safe_action=ZERO, noise=0.1, **more),
    "OPLB": lambda **more: sw.OPLB(safe_action=ZERO, noise=0.1, **more),
    "KernelOPLB": lambda **more: sw.KernelOPLB(**RBF, safe_action=POINT, **{"norm_bound": 1.0, **more}),
    "OPB": lambda **more: sw.OPB(arms=3, safe_action=ARM, **more),
    "OPB with noise": lambda **more: sw.OPB(arms=3, safe_action=ARM, noise=1.0, **more),
}
each = pytest.mark.parametrize("make", EVERYBODY.values(), ids=EVERYBODY)


@each
@pytest.mark.parametrize(
    "settings", [{}, {"mean_cost_bound": 1.0}, {"mean_cost_bound": 3.0}, {"mean_cost_bound": [3.0]}], ids=repr
)
def test_a_limit_that_can_never_bind_is_refused(make: Any, settings: dict[str, Any]) -> None:
    with refused(InvalidProblem, ErrorCode.LIMIT_NEVER_BINDS):
        make(threshold=3.0, **settings)
    assert make(threshold=3.0, mean_cost_bound=3.5).thresholds.values.tolist() == [3.0]


def test_percents_are_refused_by_name() -> None:
    safe = sw.SafeAction(arm=0, reward=0.1, cost={"opt_out": 0.01, "complaint": 0.001})
    with refused(InvalidProblem, ErrorCode.LIMIT_NEVER_BINDS):
        sw.OPB(arms=3, safe_action=safe, threshold={"opt_out": 2, "complaint": 0.5})


@pytest.mark.parametrize(
    ("settings", "least"), [({}, 0), ({"noise": 1.0}, -1), ({"noise": 1.0, "mean_cost_bound": 4}, -4)]
)
def test_a_limit_from_below_that_can_never_bind_is_refused(settings: dict[str, Any], least: float) -> None:
    with refused(InvalidProblem, ErrorCode.LIMIT_NEVER_BINDS):
        sw.OPB(arms=3, safe_action=ARM, threshold=sw.AtLeast(least), **settings)


def test_an_endless_limit_is_refused() -> None:
    safe = sw.SafeAction(arm=0, cost=10.0)
    with refused(InvalidProblem, ErrorCode.OUT_OF_RANGE):
        sw.OPB(arms=2, safe_action=safe, noise=1.0, mean_cost_bound=1e99, threshold=sw.TimesSafe(1e308))


LENGTHY: dict[str, Any] = {name: EVERYBODY[name] for name in ("LCLUCB", "ROFUL", "SafeLTS", "OPLB", "CAPS")}


@pytest.mark.parametrize("make", LENGTHY.values(), ids=LENGTHY)
def test_actions_that_may_cost_more_than_the_default_are_refused(make: Any) -> None:
    """The issue's own: S = 1, ‖x‖ = 3, τ = .5, where the first round cost 1.5."""
    agent = sw.Agent(make(threshold=0.5))
    for door in (lambda: agent.decide([[3.0, 0.0]]), lambda: agent.learn_log([[0.0, 3.0]], [0.0], [0.0])):
        with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
            door()
    agent.decide([[1.0, 0.0]])
    for bound in (1.0, 3.0, None, [3.0], {"cost": 3.0}):
        sw.Agent(make(threshold=0.5, mean_cost_bound=bound)).decide([[3.0, 0.0]])


def test_a_convex_set_and_a_simulated_world_pass_the_same_door() -> None:
    policy = EVERYBODY["LCLUCB"](threshold=0.5)
    with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
        policy.decide(policy.start(), sw.BallSet(2.0))
    world = sw.LinearWorld(reward=[0.1, 0.1], cost=[0.1, 0.1], actions=sw.RaySet([[2.0, 0.0]]), noise=0.1)
    with refused(InvalidActions, ErrorCode.BOUND_EXCEEDED):
        sw.simulate(policy, world, rounds=1, backend="cpu")


def test_a_safe_action_of_unknown_cost_and_a_kernel_pass_it_too() -> None:
    with refused(InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        sw.LCLUCB(safe_action=sw.SafeAction(features=[2.0, 0.0]), threshold=0.5, noise=0.1)
    with refused(InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        EVERYBODY["KernelOPLB"](threshold=0.5, norm_bound=2.0)
    EVERYBODY["KernelOPLB"](threshold=0.5, norm_bound=2.0, mean_cost_bound=1.0)


def test_each_cost_may_have_a_bound_of_its_own() -> None:
    limits = {"a": 3.0, "b": 40.0}
    by_name = sw.LCLUCB(safe_action=ZERO, noise=0.1, threshold=limits, mean_cost_bound={"b": None, "a": 4.0})
    by_place = sw.LCLUCB(safe_action=ZERO, noise=0.1, threshold=limits, mean_cost_bound=[4.0, None])
    without = sw.LCLUCB(safe_action=ZERO, noise=0.1, threshold=limits, mean_cost_bound=None)
    far = 5.0 * np.eye(ZERO.features.size)
    steps = [policy.decide(policy.start(), far).step_size for policy in (by_name, by_place, without)]
    assert steps[:2] == pytest.approx([3.0 / 4.0] * 2)
    assert steps[2] < 0.7
    for bad, code in (
        ({"a": 4.0}, ErrorCode.UNKNOWN_NAME),
        ([4.0], ErrorCode.WRONG_SHAPE),
        ("units", ErrorCode.WRONG_TYPE),
        ([4.0, -1.0], ErrorCode.OUT_OF_RANGE),
    ):
        with refused(InvalidProblem, code):
            sw.LCLUCB(safe_action=ZERO, noise=0.1, threshold=limits, mean_cost_bound=bad)
