"""Features beside which the ridge is lost in rounding are refused at every door; up to there every bound holds."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

LARGEST = 1e6  # in units of √ridge
UNKNOWN = sw.SafeAction(features=[0.3, 0.2])
BEYOND = [[0.0, 1.0], [1.5 * LARGEST, 0.0]]


def linear_policies(ridge: float) -> list[Any]:
    settings: dict[str, Any] = {
        "safe_action": UNKNOWN,
        "threshold": 0.5,
        "noise": 0.1,
        "ridge": ridge,
        "mean_cost_bound": None,
    }
    kernel = sw.KernelOPLB(kernel=sw.LinearKernel(), norm_bound=1.0, **settings)
    kinds = (sw.LCLUCB, sw.ROFUL, sw.SafeLTS, sw.OPLB, sw.DOSLB, sw.SafePosteriorSampling)
    return [*(kind(**settings) for kind in kinds), kernel, sw.LinUCB(noise=0.1, ridge=ridge)]


@pytest.mark.parametrize("ridge", [1.0, 0.01])
def test_actions_too_large_for_the_ridge_are_refused_by_hand_and_in_logs(ridge: float) -> None:
    scale = math.sqrt(ridge)
    beyond, within = scale * np.array(BEYOND), scale * np.array([[0.0, 1.0], [0.999 * LARGEST, 0.0]])
    for policy in linear_policies(ridge):
        agent = sw.Agent(policy)
        with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
            agent.decide(beyond)
        with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
            agent.learn_log(beyond, [0.1, 0.1], [0.1, 0.1])
        agent.learn_log(within, [0.1, 0.1], [0.1, 0.1])


def test_loops_refuse_what_play_by_hand_refuses() -> None:
    policy = sw.LCLUCB(safe_action=UNKNOWN, threshold=0.5, noise=0.1)
    world = sw.LinearWorld(reward=[1e-7, 0.0], cost=[1e-7, 0.0], actions=sw.RaySet(BEYOND), noise=0.1)
    for backend in ("cpu", "python"):
        with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
            sw.simulate(policy, world, rounds=3, backend=backend)


def test_kernel_loops_refuse_what_play_by_hand_refuses() -> None:
    settings: dict[str, Any] = {"safe_action": UNKNOWN, "threshold": 0.5, "noise": 0.1}
    policy = sw.KernelOPLB(kernel=sw.LinearKernel(), norm_bound=1.0, **settings)
    world = sw.FiniteSetWorld(features=[[0.3, 0.2], *BEYOND], reward=[0.1, 0.2, 0.3], cost=[0.1, 0.2, 0.3], noise=0.1)
    for backend in ("cpu", "python"):
        with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
            sw.simulate(policy, world, rounds=3, backend=backend)


def test_a_convex_set_and_a_safe_action_that_are_too_large_are_refused() -> None:
    with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
        sw.Agent(sw.LCLUCB(safe_action=UNKNOWN, threshold=0.5, noise=0.1)).decide(sw.BallSet(2.0 * LARGEST))
    far = sw.SafeAction(features=[2.0 * LARGEST, 0.0])
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        sw.LCLUCB(safe_action=far, threshold=0.5, noise=0.1)
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        sw.KernelOPLB(kernel=sw.LinearKernel(), safe_action=far, threshold=0.5, noise=0.1, norm_bound=1.0)
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):  # k(x, x) = 1 everywhere
        sw.KernelOPLB(
            kernel=sw.RBF(lengthscale=1.0), safe_action=UNKNOWN, threshold=0.5, noise=0.1, norm_bound=1.0, ridge=1e-13
        )


def violations(random: np.random.Generator, kind: Any, scale: float, ridge: float | None, rounds: int) -> int:
    """Play a random problem with an unknown baseline at this scale of the features; return the rounds over the limit.

    Costs are of size 1 at every scale, and the noise is told truthfully with δ = 1e-6: none is due to chance.
    """
    d, count = int(random.integers(2, 5)), int(random.integers(2, 6))
    rows = random.normal(size=(count + 3, d))
    safe, theta, mu, *targets = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    limit, noise = float(mu @ safe) + random.uniform(0.02, 0.3), 10.0 ** random.uniform(-3.0, -1.0)
    policy = kind(
        safe_action=sw.SafeAction(features=scale * safe),
        threshold=limit,
        noise=noise,
        delta=1e-6,
        norm_bound=1.0001 / scale,
        ridge=ridge,
        mean_cost_bound=None,
    )
    agent, over = sw.Agent(policy, seed=int(random.integers(2**31))), 0
    for _ in range(rounds):
        decision = agent.decide(scale * np.array(targets)[random.permutation(count)])
        cost = float(mu @ decision.action) / scale
        over += cost > limit + 1e-9
        outcome = float(theta @ decision.action) / scale + noise * random.normal(), cost + noise * random.normal()
        agent.learn(decision, *outcome)
    return over


@pytest.mark.long
@pytest.mark.parametrize(("ridge", "fewest", "most"), [(1.0, 50, 140), (None, 0, 0)])
def test_no_limit_is_broken_at_any_scale_that_is_accepted(ridge: float | None, fewest: int, most: int) -> None:
    """A ridge that is chosen for the user grows with the features, so that none of these scales is refused."""
    random, refusals, over = np.random.default_rng(20), 0, 0
    for _ in range(150):
        scale, kind = 10.0 ** random.uniform(0.0, 24.0), (sw.LCLUCB, sw.ROFUL)[int(random.integers(2))]
        try:
            over += violations(random, kind, scale, ridge, rounds=25)
        except sw.StagewiseError:
            assert scale > LARGEST / 2.0
            refusals += 1
    assert over == 0
    assert fewest <= refusals <= most


@pytest.mark.parametrize("kind", [sw.LCLUCB, sw.ROFUL, sw.SafePosteriorSampling])
@pytest.mark.parametrize("known", [True, False])
def test_the_unit_of_the_features_decides_nothing(kind: Any, known: bool) -> None:
    """With a ridge of d R²/S²: features twice as long whose parameters are half as long make the same decisions."""
    steps = []
    for scale in (1.0, 2.0**-3, 2.0**9):
        random, index = np.random.default_rng(4), scale * np.array([0.2, 0.1, 0.0])
        safe = sw.SafeAction(features=index, reward=0.05, cost=0.1) if known else sw.SafeAction(features=index)
        values: dict[str, Any] = {"threshold": 0.3, "noise": 0.02, "norm_bound": 0.8 / scale, "mean_cost_bound": 1.0}
        agent, taken = sw.Agent(kind(safe_action=safe, **values), seed=1), []
        for _ in range(40):
            decision = agent.decide(sw.RaySet(scale * np.eye(3)))
            cost = float(np.asarray(decision.action) @ [0.3, 0.4, 0.1]) / scale
            agent.learn(decision, reward=0.5 * cost + 0.02 * random.normal(), cost=cost + 0.02 * random.normal())
            taken.append((-1 if decision.action_index is None else decision.action_index, decision.step_size))
        steps.append(taken)
    assert steps[1] == pytest.approx(np.array(steps[0]), rel=1e-6)
    assert steps[2] == pytest.approx(np.array(steps[0]), rel=1e-6)
    assert len({round(step, 6) for _, step in steps[0]}) > 3
