"""Actions in a context: by hand and in the loop every run is the same to the bit; one loop is compiled."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import play_both, same
from tests.simulation.test_learned import FRAME, PROBLEM, learned
from tests.simulation.test_learned import users as listed
from tests.sizes import in_lanes

import stagewise as sw

pytestmark = pytest.mark.long

K, D, SHARES = 4, 3, [0.5, 0.3, 0.2]
RNG = np.random.default_rng(4)
CLICKS = np.column_stack([[0.1, 0.2, 0.3, 0.25], RNG.uniform(-0.05, 0.05, (K, D - 1))])
COSTS = np.zeros((2, K, D))
COSTS[0, :, 0], COSTS[1, :, 0] = [0.05, 0.1, 0.3, 0.15], [0.02, 0.05, 0.1, 0.2]
OFFSETS = np.zeros((3, K, len(SHARES)))
OFFSETS[2] = [[0.0, 0.0, 0.01], [0.0, 0.02, 0.04], [0.0, 0.02, 0.1], [0.0, 0.0, 0.1]]
SAFE = sw.SafeAction(arm=0, reward=0.0, cost={"opt_out": 0.06, "complaint": 0.04})


def policy(**settings: Any) -> sw.SafeContextPosteriorSampling:
    options: dict[str, Any] = {"actions": K, "context": D - 1, "safe_action": SAFE}
    return sw.SafeContextPosteriorSampling(**options | {"threshold": {"opt_out": 0.2, "complaint": 0.15}} | settings)


def users(segmented: bool) -> sw.ContextWorld:
    options: dict[str, Any] = {"segments": SHARES, "segment_offsets": OFFSETS} if segmented else {}
    return sw.ContextWorld(reward=CLICKS, cost=COSTS, features="plain", **options)


MODELS: list[dict[str, Any]] = [
    {"segments": 1, "by": {"complaint": 0}},
    {"cost_model": "linear", "norm_bound": 0.5},
    {"cost_model": {"opt_out": "logistic"}},  # whose memory grows
]


@pytest.mark.parametrize("settings", in_lanes(MODELS, MODELS[:1], MODELS))
def test_a_run_is_the_same_by_hand_and_in_the_loop(settings: dict[str, Any]) -> None:
    result, world = policy(**settings), users("by" in settings)
    runs = play_both(result, world, rounds=300, audit=True)
    assert same(*runs)
    assert runs[0].violations.sum() == 0


def test_a_problem_is_simulated_as_its_policy_is() -> None:
    options: dict[str, Any] = {
        "action_names": list("abcd"),
        "safe_name": "a",
        "reward": sw.Reward("click"),
        "context": ["x", "y"],
    }
    limits = {
        "opt_out": sw.Limit(0.2, safe_bound=0.06, model="rates"),
        "complaint": sw.Limit(0.15, safe_bound=0.04, model="rates"),
    }
    plan: dict[str, Any] = {"rounds": 100, "runs": 1, "seed": 2, "audit": True}
    runs = [sw.simulate(each, users(False), **plan) for each in (sw.Problem(**options, limits=limits), policy())]
    assert np.array_equal(runs[0].regret, runs[1].regret)


@pytest.mark.parametrize(("drift", "lag"), [("0.005/30d", "1d"), ("jumps", 0)])
def test_a_run_in_a_world_that_moves_is_the_same_by_hand_and_compiled(drift: str, lag: Any) -> None:
    still = sw.ContextWorld(reward=[[0.0], [0.1], [0.05]], cost=[[[0.0], [0.004], [0.01]]], features="plain")
    season = sw.Move(kind="season", signal="cost 1", action=1, amount=0.01, length="5d")
    path = sw.Move(kind="path", signal="reward", action=2, amount=2.0, values=[0.0, 0.02, -0.01], length="3d")
    world = sw.MovingWorld(still, moves=[season, path], per_day=20, lag=lag, start=1.7e9)
    limits = {"opt_out": sw.Limit(0.05, safe_bound=0.0, drift=drift)}
    problem = sw.Problem(action_names=list("abc"), safe_name="a", reward=sw.Reward("click"), limits=limits)
    plan: dict[str, Any] = {"rounds": 600, "runs": [3], "seed": 11, "audit": True}
    assert same(*(sw.simulate(problem, world, **plan, backend=backend) for backend in ("cpu", "python")))


def test_a_problem_goes_on_from_an_agent_and_from_a_log_among_listed_users() -> None:
    plan: dict[str, Any] = {"rounds": 200, "runs": [0, 3], "seed": 5, "record_points": 40}
    agent = learned()
    runs = [
        sw.simulate(PROBLEM, listed(), warm_start=started, backend=backend, **plan)
        for started, backend in ((agent, "cpu"), (agent, "python"), (FRAME, "cpu"))
    ]
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])
    assert not np.array_equal(runs[0].reward, sw.simulate(PROBLEM, listed(), **plan).reward)
