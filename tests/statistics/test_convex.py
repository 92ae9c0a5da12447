"""Safety in convex sets as a statistic: among many seeded runs, those that ever violate are no more than δ allows.

The set is a segment in the tight world, where a run violates exactly when the cost's interval fails, and a ball, a box
or a polytope among random worlds.
"""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.statistics.counting import DELTA, SEED, TIGHT, violating
from tests.statistics.families import LinearWorld, among, directions, tight_world

from stagewise import LCLUCB, ROFUL, BallSet, BoxSet, PolytopeSet

pytestmark = pytest.mark.compiled


def world_of(run: int, known: bool) -> LinearWorld:
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
    return LinearWorld(safe, truth, sets[run % 3], truth[1:] @ safe + slack, noise)


def tight_segment(run: int, known: bool) -> LinearWorld:
    return tight_world(run, known)._replace(features=BoxSet([-1.0], [1.0]))


def count(kind: Any, runs: int, tight: bool = False, declared: float = 1.0) -> int:
    settings = {"bounds_solver_gap": False, "directions": 8, **(TIGHT if tight else {})}
    return violating(among(tight_segment if tight else world_of, kind, declared=declared, **settings), runs, 12)


def test_of_a_hundred_runs_few_violate() -> None:
    assert count(ROFUL, 100) <= allowed(100, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("kind", [LCLUCB, ROFUL])
def test_of_two_thousand_runs_no_more_violate_than_delta_allows(kind: Any, tight: bool) -> None:
    found, most = count(kind, 2000, tight), allowed(2000, DELTA)
    print(f"{kind.__name__}, tight {tight}: {found} of 2000 runs violate, {most} may")  # pytest -rP shows it
    assert found <= most


def test_a_policy_that_is_told_too_little_noise_violates_in_too_many_runs() -> None:
    assert count(ROFUL, 100, declared=0.1) > allowed(100, DELTA)
