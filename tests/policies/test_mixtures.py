"""OPLB and OPB choose the best safe mixture: worth what HiGHS finds, on few actions, never over a threshold."""

from typing import Any

import numpy as np
import pytest
from tests.engine.highs import Program, best_value, quiet_solver

import stagewise as sw
from stagewise.engine.workspace import COSTS, OPTIMISTIC_REWARDS


def check(decision: sw.Decision) -> None:
    """Hold it against HiGHS, on the bounds that it was made on."""
    rule, m = decision._table.result.workspace.rule, decision.thresholds.size
    hoped, dearest = rule[OPTIMISTIC_REWARDS], rule[COSTS : COSTS + m]
    listed = np.flatnonzero(np.isfinite(hoped[:-1]))
    limits = decision.thresholds * (1.0 - 1e-14)
    costs, safe = np.ascontiguousarray(dearest[:, listed]), float(hoped[-1])
    best = best_value(quiet_solver(), Program(hoped[listed], costs, safe, dearest[:, -1].copy(), limits))
    assert decision.optimistic_reward == pytest.approx(best, rel=2e-9)
    assert np.count_nonzero(decision.probabilities) <= m + 1
    assert (decision.pessimistic_cost <= decision.thresholds).all()


@pytest.mark.long
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 10, 300, 2000])
@pytest.mark.parametrize("seen", [0, 5, 400])
def test_oplb_is_worth_what_highs_finds(m: int, count: int, seen: int) -> None:
    rng = np.random.default_rng([m, count, seen])
    d = 6
    policy = sw.OPLB(
        safe_action=sw.SafeAction(features=np.zeros(d)),
        threshold=rng.uniform(0.1, 0.6, m),
        noise=0.1,
        ridge=0.1,
        mean_cost_bound=1.0,
        check_assumptions=False,
    )
    agent = sw.Agent(policy, seed=1)
    truth = rng.normal(size=(1 + m, d)) / np.sqrt(d)
    if seen:
        played = rng.normal(size=(seen, d)) / np.sqrt(d)
        means = played @ truth.T
        agent.learn_log(played, means[:, 0], means[:, 1:])
    check(agent.decide(rng.normal(size=(count, d)) / np.sqrt(d)))


@pytest.mark.long
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("arms", [2, 10, 300, 2000])
@pytest.mark.parametrize("seen", [0, 5, 800])
def test_opb_is_worth_what_highs_finds(m: int, arms: int, seen: int) -> None:
    rng = np.random.default_rng([m, arms, seen])
    safe = sw.SafeAction(arm=0, reward=0.1, cost=[0.05] * m)
    policy = sw.OPB(arms=arms, safe_action=safe, threshold=rng.uniform(0.1, 0.6, m), check_assumptions=False)
    agent, means = sw.Agent(policy, seed=1), rng.uniform(size=(1 + m, arms))
    if seen:
        pulled = rng.integers(arms, size=seen)
        outcome = (rng.uniform(size=(1 + m, seen)) < means[:, pulled]).astype(float)
        agent.learn_log(pulled, outcome[0], outcome[1:].T)
    check(agent.decide(sw.ArmSet(arms)))


def test_only_eligible_actions_are_mixed() -> None:
    rng = np.random.default_rng(0)
    table: Any = sw.FiniteSet(rng.normal(size=(20, 4)) / 2.0)
    policy = sw.OPLB(safe_action=sw.SafeAction(features=np.zeros(4)), threshold=0.3, noise=0.1, mean_cost_bound=1.0)
    mask = rng.uniform(size=20) < 0.3
    decision = sw.Agent(policy).decide(table.only(mask))
    assert not decision.probabilities[:-1][~mask].any()


@pytest.mark.parametrize("slack", [2e-14, 5e-14, 1e-9])
@pytest.mark.parametrize("base", [0.0, 0.5])
def test_a_slack_too_small_to_mix_with_is_the_reason_that_is_given(slack: float, base: float) -> None:
    """Beside two limits a share below 1e-13 is dropped as rounding; nobody then says that the safe action is better."""
    limits = {"threshold": [base + slack, base + 0.3], "mean_cost_bound": base + 1.0, "noise": 0.1}
    arms = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=[base, base]), **limits)
    safe = sw.SafeAction(features=[1.0, 0.0, 0.0], reward=0.0, cost=[base, base])
    listed = sw.OPLB(safe_action=safe, norm_bound=base + 1.0, **limits)
    for policy, actions in [(arms, sw.ArmSet(3)), (listed, sw.FiniteSet([[1.0, 0.5, 0.0], [1.0, 0.0, 0.5]]))]:
        decision = policy.decide(policy.start(), actions)
        best = decision.probabilities[0 if policy is arms else -1]
        assert decision.reason is (None if best < 1.0 else sw.FallbackReason.MIXTURE_WEIGHT_UNDERFLOW)
        assert (best < 1.0) == (slack > 1e-12)
