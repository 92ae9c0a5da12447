"""By hand what is offered first is looked at afresh, in a loop it is followed: to the bit the same, always."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import play_both
from tests.sizes import LONG

import stagewise as sw

pytestmark = pytest.mark.long

PROBLEMS = 20
SOME = (2, 5, 8)  # less than a vector of the processor, one and a rest, whole ones
ROUNDS = 4
KINDS: list[tuple[Any, dict[str, Any]]] = [
    (sw.LCLUCB, {}),
    (sw.LCLUCB, {"mean_cost_bound": None}),
    (sw.ROFUL, {"mean_cost_bound": None}),
    (sw.SafeLTS, {"mean_cost_bound": None}),
    (sw.SafePosteriorSampling, {"mean_cost_bound": None}),
    (sw.SafePosteriorSampling, {"mixtures": True}),
    (sw.OPLB, {}),
    (sw.OPLB, {"mean_cost_bound": None}),
]


def random_world(random: np.random.Generator, d: int) -> tuple[sw.LinearWorld, dict[str, Any]]:
    """Return a world, and settings of a policy that fits it; quiet, so that an unknown safe action is soon left."""
    draws = random.normal(size=(3 + int(random.integers(2, 9)), d))
    safe, theta, mu, *targets = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    safe = np.zeros(d) if random.random() < 0.3 else 0.3 * safe
    known = not safe.any() or random.random() < 0.5
    theta, mu = 0.5 * theta, 0.2 * mu
    world = sw.LinearWorld(reward=theta, cost=mu, actions=sw.RaySet(np.array(targets)), noise=0.01)
    values = {"reward": float(theta @ safe), "cost": float(mu @ safe)} if known else {}
    return world, {
        "safe_action": sw.SafeAction(features=safe, **values),
        "threshold": float(mu @ safe) + random.uniform(0.05, 0.6),
        "noise": 0.01,
        "ridge": float(10.0 ** random.uniform(-2.0, 0.5)),
        "norm_bound": [0.5, 0.2],
    }


@pytest.mark.parametrize("d", [d if d in SOME else pytest.param(d, marks=LONG) for d in range(2, 9)])
@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_all_ways_to_play_agree_from_the_first_round(kind: Any, settings: dict[str, Any], d: int) -> None:
    random, differing, left = np.random.default_rng(d), [], 0
    for problem in range(PROBLEMS):
        world, given = random_world(random, d)
        policy = kind(**given, **settings)
        runs = play_both(policy, world, rounds=ROUNDS, runs=1, seed=problem, record_points=ROUNDS)
        ways = [(run.reward[0].tolist(), run.cost[0, :, 0].tolist()) for run in runs]
        if not policy.mixes:
            ways.append(by_agent(policy, world, problem))
        differing += [] if all(way == ways[0] for way in ways) else [problem]
        left += ways[0][0][0] != float(world.means(policy.safe_action.features)[0])
    assert left > PROBLEMS // 4  # the first decision is not always the safe action
    assert differing == []


def by_agent(policy: Any, world: sw.LinearWorld, seed: int) -> tuple[list[float], list[float]]:
    """Return the true rewards and costs of the actions that an agent plays."""
    agent, means = sw.Agent(policy, seed=seed), []
    for t in range(ROUNDS):
        decision = agent.decide(world.actions)
        means.append(world.means(decision.action).tolist())
        outcome = world.outcome(decision.action, sw.RandomKey(seed, 0, t))
        agent.learn(decision, reward=outcome.reward, cost=outcome.cost)
    return [reward for reward, _ in means], [cost for _, cost in means]
