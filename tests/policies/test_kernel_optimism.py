"""Optimism and safety of the kernel policy where the truth lies anywhere within its bounds, also at their ends."""

from typing import Any

import numpy as np
import pytest
from tests.policies.kernel_reading import read_bounds
from tests.policies.witness import best_mixture

from stagewise import RBF, Agent, KernelOPLB, Matern, SafeAction
from stagewise.engine.compile import Floats

pytestmark = pytest.mark.long

INSTANCES = 8
ROUNDING = 1e-9
KNOWN = {
    "known": (True, True),
    "reward unknown": (False, True),
    "cost unknown": (True, False),
    "unknown": (False, False),
}


def instance(random: np.random.Generator, known: tuple[bool, bool], m: int, **changed: Any) -> tuple[Agent, Floats]:
    """Return an agent that has seen a few outcomes, and what it is offered."""
    kernel: Any = RBF(lengthscale=0.7) if random.random() < 0.5 else Matern(lengthscale=0.6, smoothness=1.5)
    safe, listed = random.uniform(size=2), random.uniform(size=(6, 2))
    agent = Agent(
        KernelOPLB(
            **{
                "kernel": kernel,
                "safe_action": SafeAction(
                    features=safe, reward=0.2 if known[0] else None, cost=[0.1] * m if known[1] else None
                ),
                "threshold": [0.5] * m,
                "noise": [0.02, *[0.05] * m],
                "norm_bound": [0.5, *[0.8] * m],
                "ridge": 0.05,
                "mean_cost_bound": None,
                "check_assumptions": False,  # the data are made up
                "novelty_threshold": float(random.choice([1e-10, 0.01])),
                **changed,
            }
        )
    )
    centres = np.vstack([listed, np.tile(safe, (10, 1))])
    actions = centres[random.integers(len(centres), size=80)]
    means = np.where(np.all(actions == safe, axis=1)[:, None], [0.2, *[0.1] * m], [0.6, *[0.5] * m])
    outcomes = means + random.normal(size=(80, 1 + m)) * 0.05
    agent.learn_log(actions, outcomes[:, 0], outcomes[:, 1:])
    return agent, listed


def ends(agent: Agent, listed: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest values (1 + m, K + 1) within the bounds; the safe action stands last."""
    seen = read_bounds(agent.policy, agent.state, listed)  # type: ignore[arg-type]
    middle = np.column_stack([seen.estimates, seen.start])
    half = np.column_stack([seen.halves, seen.start_halves])
    return middle - half, middle + half


def optimum(low: Floats, high: Floats, limits: Floats, share: Floats) -> float:
    """Return the best that is possible where the truth stands at `share` of the way from low to high, at most 1."""
    truth = low + share * (high - low)
    truth[0] = np.minimum(truth[0], 1.0)
    return best_mixture(truth[0, :-1], truth[1:, :-1].copy(), truth[0, -1], truth[1:, -1], limits)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("known", KNOWN)
def test_hoped_is_at_least_the_best_mixture(known: str, m: int) -> None:
    random = np.random.default_rng([3, m, *map(ord, known)])
    excesses, bare = [], []
    for number in range(INSTANCES):
        agents = []
        for scale in (None, 1.0):
            again = np.random.default_rng([number, m, *map(ord, known)])
            agents.append(instance(again, KNOWN[known], m, reward_confidence_scale=scale))
        (agent, listed), (plain, _) = agents
        decision, other = agent.decide(listed), plain.decide(listed)
        if decision.message is not None and not KNOWN[known][1]:
            continue
        low, high = ends(agent, listed)
        limits = decision.thresholds
        shares = [np.vstack([np.ones(7), np.zeros((m, 7))]), random.uniform(size=(1 + m, 7))]
        shares[0][:, -1] = 0.5
        for share in shares:
            if np.all(low[0] <= 1.0) and np.all((low + share * (high - low))[1:, -1] < limits):
                best = optimum(low, high, limits, share)
                excesses.append(decision.optimistic_reward - best)
                bare.append(other.optimistic_reward - best)
    assert len(excesses) >= INSTANCES // 2
    assert min(excesses) >= -ROUNDING
    assert min(bare) < -1e-3, "without the lift some of these decisions hope for too little"


@pytest.mark.parametrize("optimism", ["inflated", "directional"])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("known", KNOWN)
def test_the_dearest_truth_within_the_bounds_is_safe(known: str, m: int, optimism: str) -> None:
    random, dared = np.random.default_rng([4, m, *map(ord, known)]), 0
    for _ in range(INSTANCES):
        agent, listed = instance(random, KNOWN[known], m, optimism=optimism)
        decision = agent.decide(listed)
        if decision.message is None:
            _, high = ends(agent, listed)
            assert np.all(high[1:] @ decision.probabilities <= decision.thresholds + ROUNDING)
            assert np.all(decision.pessimistic_cost <= decision.thresholds)
            dared += 1
    assert dared >= INSTANCES // 4
