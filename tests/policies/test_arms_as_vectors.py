"""Arms are unit vectors: the linear problem with mixtures holds the problem of arms (the paper's remark in 5.2; E)."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.simulation.oracle import build_oracle

ARMS, RIDGE, DELTA, ROUNDS = 4, 1e-8, 0.05, 1000
REWARDS, COSTS, LIMIT = np.array([0.2, 0.5, 0.7, 0.9]), np.array([0.1, 0.25, 0.35, 0.6]), 0.3
KNOWN = {"reward": float(REWARDS[0]), "cost": float(COSTS[0])}
COUNTS = [(0, 40, 30, 20), (50, 400, 30, 7), (3, 5, 5, 200)]


def log(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return so many pulls of every arm, coins all of them."""
    random, arms = np.random.default_rng([7, *counts]), np.repeat(np.arange(ARMS), counts)
    return arms, *(random.uniform(size=(2, arms.size)) < [REWARDS[arms], COSTS[arms]]).astype(float)


def linear_policy() -> sw.OPLB:
    """Return OPLB on the unit vectors; without a ridge to speak of, so that estimates are means."""
    safe = sw.SafeAction(features=np.eye(ARMS)[0], **KNOWN)
    told: dict[str, Any] = {"noise": 0.5, "delta": DELTA, "ridge": RIDGE, "check_assumptions": False}
    return sw.OPLB(safe_action=safe, threshold=LIMIT, **told)


def bounds_of(policy: Any, state: sw.PolicyState, listed: np.ndarray) -> np.ndarray:
    """Return the bounds of every candidate, the safe one last."""
    result = policy.rounds.play(state.memory, listed, np.empty(0, bool), sw.RandomKey())
    return np.array(result.workspace.bounds)


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_the_ellipsoid_of_unit_vectors_has_an_interval_for_every_arm_as_wide_as_one_over_root_n(counts: Any) -> None:
    policy, (arms, rewards, costs) = linear_policy(), log(counts)
    agent = sw.Agent(policy)
    agent.learn_log(np.eye(ARMS)[arms], rewards, costs)
    bounds = bounds_of(policy, agent._learned.state, np.eye(ARMS))
    for signal, values in enumerate((rewards, costs)):
        means = [values[arms == arm].mean() for arm in range(1, ARMS)]
        np.testing.assert_allclose(bounds[signal, CENTRE, 1:ARMS], means, atol=1e-6)
        roots = bounds[signal, HALF, 1:ARMS] * np.sqrt(counts[1:])
        np.testing.assert_allclose(roots, roots[0], rtol=1e-6)  # the one radius of the ellipsoid
        assert bounds[signal, HALF, 0] == pytest.approx(0.0, abs=1e-9)  # known
        assert bounds[signal, CENTRE, 0] == pytest.approx(tuple(KNOWN.values())[signal])


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("optimism", ["inflated", "directional"])
def test_with_intervals_as_wide_as_the_ellipsoid_s_both_play_the_same_mixture(counts: Any, optimism: Any) -> None:
    """OPB with a horizon has R √(2 log(2(m+1)KT/δ)/n): with R such that this is the ellipsoid's, it is OPLB."""
    arms, rewards, costs = log(counts)
    safe = sw.SafeAction(features=np.eye(ARMS)[0], **KNOWN)
    told: dict[str, Any] = {"delta": DELTA, "check_assumptions": False, "optimism": optimism, "threshold": LIMIT}
    linear = sw.Agent(sw.OPLB(safe_action=safe, noise=0.5, ridge=RIDGE, **told))
    linear.learn_log(np.eye(ARMS)[arms], rewards, costs)
    half = bounds_of(linear.policy, linear._learned.state, np.eye(ARMS))[:, HALF, 1]
    unit = np.sqrt(2.0 * np.log(2.0 * 2 * ARMS * ROUNDS / DELTA) / counts[1])
    noise = {"noise": (half / unit).tolist(), "horizon": ROUNDS, "interval": "hoeffding"}
    pulled = sw.Agent(sw.OPB(arms=ARMS, safe_action=sw.SafeAction(arm=0, **KNOWN), **told, **noise))
    pulled.learn_log(arms, rewards, costs)
    one, other = linear.decide(sw.FiniteSet(np.eye(ARMS)[1:])), pulled.decide(sw.ArmSet(ARMS))
    np.testing.assert_allclose(one.probabilities[:3], other.probabilities[1:ARMS], atol=1e-5)
    assert one.probabilities[3] == pytest.approx(other.probabilities[[0, ARMS]].sum(), abs=1e-5)
    assert one.optimistic_reward == pytest.approx(other.optimistic_reward, rel=1e-5)
    np.testing.assert_allclose(one.pessimistic_cost, other.pessimistic_cost, atol=1e-6)
    assert 0.0 < one.probabilities[3] < 1.0


def test_the_best_mixture_is_worth_the_same() -> None:
    features = sw.LinearWorld(reward=REWARDS, cost=COSTS, actions=sw.FiniteSet(np.eye(ARMS)), noise=0.5)
    arms = sw.ArmsWorld(reward=REWARDS, cost=COSTS)
    policy = sw.OPB(arms=ARMS, safe_action=sw.SafeAction(arm=0, **KNOWN), threshold=LIMIT)
    best = build_oracle(policy, arms).best(arms.actions)
    assert build_oracle(linear_policy(), features).best(features.actions) == pytest.approx(best, rel=1e-12)
    assert best == pytest.approx(0.5 * 0.5 + 0.5 * 0.7)  # half of the second arm, half of the third


@pytest.mark.parametrize("mixture", [(0.7, 0.1, 0.1, 0.1), (0.0, 0.0, 0.5, 0.5)])
def test_a_draw_from_a_mixture_of_coins_is_the_coin_of_its_mean(mixture: tuple[float, ...]) -> None:
    """R = <X, θ> + ξ with ξ centred: an arm drawn from X and then its coin is a coin, so ξ is ½-sub-Gaussian."""
    shares = np.array(mixture)
    ones = float(shares @ REWARDS)  # P(R = 1) = Σ_a X(a) r_a
    xi = np.array([1.0 - ones, -ones])
    chance = np.array([ones, 1.0 - ones])
    assert float(chance @ xi) == pytest.approx(0.0, abs=1e-15)
    for slope in np.linspace(-8.0, 8.0, 33):
        assert float(chance @ np.exp(slope * xi)) <= np.exp(slope**2 / 8.0) * (1.0 + 1e-12)
