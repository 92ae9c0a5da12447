"""The loops of the statistics play what the policies decide by hand, so that their counts speak of the policies."""

import math
from typing import Any

import numpy as np
import pytest
from tests.statistics.families import (
    SEED,
    Result,
    arm_policy,
    arm_world,
    linear_policy,
    linear_world,
    run_arms,
    run_linear,
)

from stagewise import LCLUCB, OPLB, ROFUL, ArmSet, FiniteSet, Outcome, RandomKey, RaySet, SafeLTS
from stagewise.engine.compile import Floats
from stagewise.engine.random import OUTCOME, normal, uniform

pytestmark = [pytest.mark.compiled, pytest.mark.slow]  # minutes of compiling

ROUNDS = 120


def by_hand(policy: Any, actions: Any, truth: Floats, thresholds: Floats, run: int, draw: Any, means: Any) -> Result:
    """Play a policy through its three verbs; `draw` makes an outcome of a mean and a random number's address."""
    state, excess, dared = policy.start(), -math.inf, 0
    for t in range(ROUNDS):
        decision = policy.decide(state, actions, RandomKey(SEED, run, t))
        costs = truth[1:] @ means(decision)
        excess, dared = (
            max(excess, float(np.max(costs - thresholds))),
            dared + (decision.action_index != home_of(policy)),
        )
        data = [draw(k, t, decision.action) for k in range(len(truth))]
        state = policy.learn(state, decision, Outcome(data[0], data[1:]))
    return Result(excess, dared)


def home_of(policy: Any) -> int:
    return policy.safe_action.arm if policy.safe_action.features is None else -1


@pytest.mark.parametrize("kind", [LCLUCB, ROFUL, SafeLTS, OPLB])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("run", [0, 1])
def test_a_linear_loop_plays_what_is_decided_by_hand(kind: Any, known: bool, run: int) -> None:
    world = linear_world(run, known)

    def observed(signal: int, t: int, action: Floats) -> float:
        stream, position = OUTCOME, signal
        return float(world.truth[signal] @ action + world.noise[signal] * normal(SEED, run, t, stream, position))

    def mean_action(decision: Any) -> Floats:
        if decision.probabilities is None:
            return decision.action
        return decision.probabilities @ np.vstack([world.features, world.safe])

    policy = linear_policy(kind, world, known)
    actions = FiniteSet(world.features) if kind is OPLB else RaySet(world.features)
    hand = by_hand(policy, actions, world.truth, world.thresholds, run, observed, mean_action)
    looped = run_linear(kind, world, run, ROUNDS, known)
    assert looped.excess == pytest.approx(hand.excess, abs=1e-9)
    assert looped.dared == hand.dared


@pytest.mark.parametrize("optimism", ["inflated", "directional"])
@pytest.mark.parametrize("run", [0, 1, 2])
def test_a_loop_over_arms_plays_what_is_decided_by_hand(optimism: str, run: int) -> None:
    world = arm_world(run, True)

    def observed(signal: int, t: int, arm: int) -> float:
        stream, position = OUTCOME, signal
        return float(uniform(SEED, run, t, stream, position) < world.truth[signal, arm])

    policy = arm_policy(world, True, optimism=optimism)
    arms = ArmSet(world.truth.shape[1])
    hand = by_hand(policy, arms, world.truth, world.thresholds, run, observed, lambda d: d.probabilities[:-1])
    looped = run_arms(world, run, ROUNDS, True, optimism=optimism)
    assert looped.excess == pytest.approx(hand.excess, abs=1e-9)
    assert looped.dared == hand.dared
