"""Safety of OPLB's cone program as a statistic, as in `test_safety`; it calls a solver, so it is played by hand."""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.statistics.counting import TIGHT, Play, violating
from tests.statistics.families import DELTA, SEED, LinearWorld, Result, linear_policy, linear_world, tight_world

from stagewise import OPLB, Outcome, RandomKey

pytestmark = pytest.mark.compiled


def by_hand(
    kind: type[OPLB], world: LinearWorld, run: int, rounds: int, known: bool, declared: float, **settings: Any
) -> Result:
    """Play OPLB; what counts is the true expected cost of every round's mixture."""
    options = {"noise": declared * world.noise, "check_assumptions": declared == 1.0, **settings}
    policy = linear_policy(kind, world, known, **options)
    state, excess, dared = policy.start(), -np.inf, 0
    costs = world.truth[1:] @ np.vstack([world.features, world.safe]).T
    random = np.random.default_rng([SEED, run, 2])
    for round_ in range(rounds):
        decision = policy.decide(state, world.features, RandomKey(SEED, run, round_))
        excess = max(excess, float(np.max(costs @ decision.probabilities - world.thresholds)))
        dared += decision.action_index is not None
        observed = world.truth @ decision.action + world.noise * random.normal(size=world.noise.size)
        state = policy.learn(state, decision, Outcome(float(observed[0]), observed[1:].tolist()))
    return Result(excess, dared)


def among(world: Any, known: bool = True, declared: float = 1.0, kind: type[OPLB] = OPLB, **settings: Any) -> Play:
    return lambda run, rounds: by_hand(kind, world(run, known), run, rounds, known, declared, **settings)


PROMISED = {
    "cones": among(linear_world, method="socp"),
    "cones, unknown baseline": among(linear_world, known=False, method="socp"),
    "cones, tight": among(tight_world, method="socp", **TIGHT),
}
OVERCONFIDENT = {
    "cones told a tenth of the noise": among(linear_world, declared=0.1, method="socp"),
}


@pytest.mark.parametrize("name", ["cones", "cones, tight"])  # an unknown baseline takes 300 rounds to learn
def test_of_a_hundred_runs_few_violate(name: str) -> None:
    assert violating(PROMISED[name], 100, 20) <= allowed(100, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rounds"), [("cones", 40), ("cones, tight", 40), ("cones, unknown baseline", 300)])
def test_of_two_thousand_runs_few_violate(name: str, rounds: int) -> None:
    assert violating(PROMISED[name], 2000, rounds) <= allowed(2000, DELTA)


@pytest.mark.parametrize("name", OVERCONFIDENT)
def test_with_too_little_noise_declared_too_many_violate(name: str) -> None:
    assert violating(OVERCONFIDENT[name], 100, 30) > allowed(100, DELTA)
