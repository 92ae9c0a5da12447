"""The sparse option: whatever is neglected, the bounds hold, because the radius pays for it."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.space_textbook import Signal, matrix
from tests.policies.kernel_reading import read_bounds, read_sums

from stagewise import RBF, Agent, KernelOPLB, Matern, SafeAction
from stagewise.engine.compile import Floats

SILENT = 1e-9  # noise that is declared where there is none: the radius is then its deterministic part
GRID = np.random.default_rng(0).uniform(-1.0, 1.0, size=(40, 2))


def function_of_norm(kernel: Any, norm: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return centres and weights of f = Σ w k(·, z) with ‖f‖ as given."""
    centres, weights = random.uniform(-1.0, 1.0, size=(5, 2)), random.normal(size=5)
    return centres, weights * (norm / math.sqrt(weights @ matrix(kernel, centres, centres) @ weights))


@pytest.mark.long
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    capacity=st.integers(1, 12),
    novelty=st.sampled_from([1e-10, 1e-4, 0.1, 0.9]),
    known=st.booleans(),
    smooth=st.booleans(),
    ridge=st.sampled_from([1e-3, 0.1, 1.0]),
    followed=st.booleans(),
)
def test_without_noise_the_truth_is_never_outside(
    seed: int, capacity: int, novelty: float, known: bool, smooth: bool, ridge: float, followed: bool
) -> None:
    """|f − f̂| ≤ β √(cᵀV⁻¹c + ρ/λ) with β = √λ B + B √Σρ, for any points in any order, whichever join the basis."""
    random = np.random.default_rng(seed)
    kernel: Any = RBF(lengthscale=0.7) if smooth else Matern(lengthscale=0.5, smoothness=0.5)
    signals = [function_of_norm(kernel, norm, random) for norm in (1.0, 1.7)]
    safe = GRID[0]

    def values(points: Floats) -> Floats:
        return np.array([weights @ matrix(kernel, centres, points) for centres, weights in signals])

    at_safe = values(safe[None])[:, 0]
    policy = KernelOPLB(
        kernel=kernel,
        safe_action=SafeAction(
            features=safe, reward=float(at_safe[0]) / 10.0 if known else None, cost=float(at_safe[1]) if known else None
        ),
        threshold=10.0,
        noise=SILENT,
        norm_bound=[1.0, 1.7],
        ridge=ridge,
        mean_cost_bound=None,
        max_points=capacity,
        novelty_threshold=novelty,
    )
    agent, actions = Agent(policy), GRID[random.integers(len(GRID), size=40)]
    if followed:
        agent.decide(GRID)
    seen = values(actions)
    agent.learn_log(actions, seen[0] / 10.0, seen[1])  # a tenth: rewards are at most 1
    told = read_bounds(policy, agent.state, GRID)
    truth = values(GRID) * np.array([[0.1], [1.0]])
    assert np.all(np.abs(told.estimates - truth) <= told.halves + 1e-7)
    assert np.all(np.abs(told.start - truth[:, 0]) <= told.start_halves + 1e-7)


def test_the_price_of_neglect_cannot_be_lowered() -> None:
    """A function that lives off the basis, seen often beside it, moves the estimate there as far as is allowed."""
    kernel, place, beside, safe = RBF(lengthscale=1.0), np.zeros(1), np.full(1, 0.8), np.full(1, 100.0)
    policy = KernelOPLB(
        kernel=kernel,
        safe_action=SafeAction(features=safe, reward=0.0, cost=0.0),
        threshold=0.9,
        noise=SILENT,
        norm_bound=1.0,
        ridge=0.1,
        max_points=1,
    )
    agent = Agent(policy)
    tie = math.exp(-0.32)
    off = math.sqrt(1.0 - tie**2)  # f = φ off the basis, normed: 0 at the basis point and √ρ beside it
    count = 10_000
    agent.learn_log(np.vstack([place, *[beside] * count]), np.zeros(count + 1), [0.0, *[off] * count])
    told = read_bounds(policy, agent.state, place[None])
    error, bound, neglected = told.estimates[1, 0], told.halves[1, 0], read_sums(policy, agent.state)[1]
    assert neglected == pytest.approx(count * off**2)
    assert error <= bound
    assert error > 0.99 * bound
    width = bound / (math.sqrt(0.1) + math.sqrt(neglected))
    assert error > 100.0 * math.sqrt(0.1) * width, "without the price the bound would be broken"


def test_a_capacity_that_is_never_reached_changes_nothing() -> None:
    random = np.random.default_rng(9)
    settings: dict[str, Any] = {
        "kernel": RBF(lengthscale=0.6),
        "safe_action": SafeAction(features=[0.0, 0.0], reward=0.1, cost=0.1),
        "threshold": 0.5,
        "noise": 0.1,
        "norm_bound": 1.0,
    }
    agents = [Agent(KernelOPLB(max_points=capacity, **settings)) for capacity in (31, 1000)]
    for _ in range(30):
        listed = random.uniform(-1.0, 1.0, size=(5, 2))
        decisions = [agent.decide(listed) for agent in agents]
        assert np.array_equal(decisions[0].probabilities, decisions[1].probabilities)
        assert decisions[0].optimistic_reward == decisions[1].optimistic_reward
        for agent, decision in zip(agents, decisions, strict=True):
            agent.learn(decision, reward=0.3, cost=0.2)


def test_smaller_capacity_means_wider_bounds() -> None:
    random = np.random.default_rng(10)
    kernel, safe = RBF(lengthscale=0.5), np.zeros(2)
    actions, outcomes = random.uniform(-1.0, 1.0, size=(60, 2)), random.normal(size=60) / 10.0
    halves = []
    for capacity in (3, 10, 60):
        policy = KernelOPLB(
            kernel=kernel,
            safe_action=SafeAction(features=safe, reward=0.0, cost=0.0),
            threshold=0.5,
            noise=0.1,
            norm_bound=1.0,
            ridge=0.1,
            max_points=capacity,
        )
        agent = Agent(policy)
        agent.learn_log(actions, outcomes, outcomes)
        told = read_bounds(policy, agent.state, GRID)
        halves.append(float(np.mean(told.halves[1])))
    assert halves[0] > halves[1] > halves[2]


def test_known_part_and_unknown_part_share_the_norm() -> None:
    signal = Signal(RBF(lengthscale=1.0), np.zeros(1), 0.6, 0.1, 1.0, 0.05, 1.0)
    policy = KernelOPLB(
        kernel=signal.kernel,
        safe_action=SafeAction(features=[0.0], reward=0.6, cost=0.0),
        threshold=0.5,
        noise=SILENT,
        norm_bound=1.0,
        ridge=1.0,
    )
    told = read_bounds(policy, policy.start(), np.full((1, 1), 50.0))
    assert told.halves[:, 0] == pytest.approx([0.8, 1.0])
