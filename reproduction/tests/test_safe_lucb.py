"""Safe-LUCB: a seed set that every parameter within the norm bound keeps safe, then optimism without lift."""

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.instances import at_zero, shifted
from stagewise_reproduction.printed.lclucb import PrintedLCLUCB
from stagewise_reproduction.safe_lucb import SafeLUCB

SHARED = {"safe_action": at_zero(3), "threshold": 0.5, "noise": 0.1, "delta": 0.01, "ridge": 1.0}


def test_it_explores_at_random_for_two_thirds_of_the_exponent_and_stays_safe_for_any_parameter() -> None:
    policy = SafeLUCB(**SHARED, horizon=1_000, norm_bound=2.0)
    assert policy.exploration_rounds == 100
    rays, observed = sw.RaySet(3.0 * np.eye(3)), set()
    for round_ in range(60):
        decision = policy.decide(policy.start(), rays, sw.RandomKey(0, 0, round_))
        assert np.linalg.norm(decision.action) * 2.0 <= 0.5 + 1e-12, "⟨x, μ⟩ ≤ τ for every ‖μ‖ ≤ S"
        observed.add(decision.action_index)
    assert observed == {0, 1, 2}


def test_afterwards_it_is_lc_lucb_with_both_scales_one() -> None:
    policy, base = SafeLUCB(**SHARED, horizon=8), PrintedLCLUCB(**SHARED)
    state, rays = policy.start()._replace(rounds=policy.exploration_rounds), sw.RaySet(np.eye(3))
    decision, expected = (
        policy.decide(state, rays, sw.RandomKey()),
        base.choose_best(state, 1.0, 1.0, rays, sw.RandomKey()),
    )
    assert (decision.action_index, decision.step_size, decision.optimistic_reward) == (
        expected.action_index,
        expected.step_size,
        expected.optimistic_reward,
    )
    assert decision.optimistic_reward < base.decide(state, rays).optimistic_reward


def test_a_run_keeps_the_limit() -> None:
    result = sw.simulate(SafeLUCB(**SHARED, horizon=300), shifted(3, 0.1), rounds=300, runs=2, progress=False)
    assert result.violations.sum() == 0
    explored = SafeLUCB(**SHARED, horizon=300).exploration_rounds
    early = result.regret[:, result.rounds.searchsorted(explored)] / explored
    late = (result.regret[:, -1] - result.regret[:, result.rounds.searchsorted(200)]) / 100
    assert np.all(late < early)
    assert result.rounds[-1] == pytest.approx(300)
