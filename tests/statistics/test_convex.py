"""Safety in convex sets as a statistic: among many seeded runs, those that ever violate are no more than δ allows.

The set is a segment in the tight world, where a run violates exactly when the cost's interval fails, and a ball, a box
or a polytope among random worlds.
"""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.statistics.counting import ROUNDING, TIGHT
from tests.statistics.families import DELTA, SEED, LinearWorld, directions, linear_policy, tight_world

from stagewise import LCLUCB, ROFUL, BallSet, BoxSet, PolicyState, PolytopeSet
from stagewise.policies.policy import PlayedAction

pytestmark = pytest.mark.compiled

DIRECTIONS = 8


def world_of(run: int) -> tuple[LinearWorld, Any]:
    """Draw a world in which what is good tends to cost, and a set in it with every mean cost at most 1."""
    random = np.random.default_rng([SEED, run, 7])
    d, m = 2, int(random.integers(1, 3))
    safe = np.zeros(d) if run % 2 else directions(random, 1, d)[0] * random.uniform(0.2, 0.4)
    reward = directions(random, 1, d)
    reward *= -1.0 if reward[0] @ safe < 0.0 else 1.0
    costs = reward + directions(random, m, d)
    truth = np.vstack([reward, costs / np.linalg.norm(costs, axis=1, keepdims=True)])
    sets = [BallSet(1.0), BoxSet(np.full(d, -0.7), np.full(d, 0.7)), PolytopeSet(np.vstack([np.eye(d), -np.eye(d)]))]
    slack, noise = random.uniform(0.05, 0.5, size=m), random.uniform(0.05, 1.0, size=1 + m)
    return LinearWorld(safe, truth, truth[:0], truth[1:] @ safe + slack, noise), sets[run % 3]


def excess(kind: Any, world: LinearWorld, actions: Any, run: int, rounds: int, declared: float, **more: Any) -> float:
    """Return the largest excess of a true cost over its threshold in a run."""
    settings = {
        "noise": declared * world.noise,
        "check_assumptions": declared == 1.0,
        "bounds_solver_gap": False,
        "directions": DIRECTIONS,
        **more,
    }
    policy = linear_policy(kind, world, True, **settings)
    random = np.random.default_rng([SEED, run, 8])
    state, worst = PolicyState(policy.start().memory.copy()), -np.inf
    for _ in range(rounds):
        decision = policy.decide(state, actions)
        means = world.truth @ decision.action
        worst = max(worst, float(np.max(means[1:] - world.thresholds)))
        observed = means + world.noise * random.normal(size=means.size)
        state = policy.learn_in_place(state, PlayedAction(decision.action), observed)
    return worst


def violating(kind: Any, runs: int, rounds: int, tight: bool, declared: float = 1.0) -> int:
    count = 0
    for run in range(runs):
        world, actions = (tight_world(run, True), BoxSet([-1.0], [1.0])) if tight else world_of(run)
        count += excess(kind, world, actions, run, rounds, declared, **(TIGHT if tight else {})) > ROUNDING
    return count


def test_of_a_hundred_runs_few_violate() -> None:
    assert violating(ROFUL, 100, 12, False) <= allowed(100, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
def test_of_two_thousand_runs_no_more_violate_than_delta_allows(kind: Any, tight: bool) -> None:
    count = violating(kind, 2000, 12, tight)
    most = allowed(2000, DELTA)
    print(f"{kind.__name__}, tight {tight}: {count} of 2000 runs violate, {most} may")  # pytest -rP shows it
    assert count <= most


def test_a_policy_that_is_told_too_little_noise_violates_in_too_many_runs() -> None:
    assert violating(ROFUL, 100, 12, False, declared=0.1) > allowed(100, DELTA)
