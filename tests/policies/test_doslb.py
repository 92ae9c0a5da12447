"""DOSLB: ROFUL and the directional OPLB without their last step. It breaks limits, and that is what it is for."""

import numpy as np
import pytest
from tests.contracts.policy import Case, PolicyContract
from tests.contracts.test_policies import cases, linear_problems

import stagewise as sw
from stagewise import DOSLB, OPLB, ROFUL, FiniteSet, Outcome, RaySet, SafeAction
from stagewise_reproduction.instances import shifted


@cases(DOSLB, linear_problems(finite=False), (0, 3, 6, 9))
class TestDOSLBOnRays(PolicyContract):
    def test_the_action_is_the_step_on_its_ray(self, case: Case) -> None:
        for round_, one in enumerate(case.rounds):
            step, safe = one.decision.step_size, case.world.safe
            target = (
                case.world.targets(round_)[one.decision.action_index] if one.decision.action_index is not None else safe
            )
            assert np.array_equal(one.decision.action, (1.0 - step) * safe + step * target)

    def test_it_says_that_it_may_break_a_limit(self, case: Case) -> None:
        assert "can violate a limit" in case.rounds[50].decision.explain()


@cases(DOSLB, linear_problems(finite=True), (6, 9), mixes=True)
class TestDOSLBOnFiniteSets(PolicyContract):
    def test_it_says_that_it_may_break_a_limit(self, case: Case) -> None:
        assert any("can violate a limit" in one.decision.explain() for one in case.rounds)


def learned(policy: object, rounds: int = 30) -> object:
    random, state = np.random.default_rng(1), policy.start()
    for _ in range(rounds):
        decision = policy.decide(state, RaySet(random.normal(size=(4, 3)) / 2.0))
        state = policy.learn(state, decision, Outcome(random.normal() / 10.0, random.normal() / 10.0))
    return state


def test_it_chooses_what_roful_chooses_and_steps_no_less_far() -> None:
    settings = {"safe_action": SafeAction(features=np.zeros(3)), "threshold": 0.3, "noise": 0.1, "mean_cost_bound": 1.0}
    bold, careful = DOSLB(**settings), ROFUL(**settings)
    state, random, farther = learned(careful), np.random.default_rng(2), 0
    for _ in range(50):
        rays = RaySet(random.normal(size=(5, 3)))
        one, other = bold.decide(state, rays), careful.decide(state, rays)
        assert (one.action_index, one.optimistic_reward) == (other.action_index, other.optimistic_reward)
        assert one.step_size >= other.step_size
        farther += one.step_size > other.step_size
    assert farther > 25


def test_on_a_finite_set_it_is_the_directional_oplb_before_mixing_back() -> None:
    settings = {"safe_action": SafeAction(features=np.zeros(3)), "threshold": 0.3, "noise": 0.1, "mean_cost_bound": 1.0}
    bold, careful = DOSLB(**settings), OPLB(**settings, optimism="directional")
    state, random, farther = learned(bold), np.random.default_rng(2), 0
    for _ in range(50):
        listed = FiniteSet(random.normal(size=(5, 3)))
        one, other = bold.decide(state, listed).probabilities, careful.decide(state, listed).probabilities
        share = 1.0 - other[-1]
        if share > 0.0 and one[-1] < 1.0:
            weight = share / (1.0 - one[-1])
            np.testing.assert_allclose(weight * one[:-1], other[:-1], atol=1e-12)
            farther += weight < 1.0
    assert farther > 25


@pytest.mark.compiled
@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_it_breaks_its_limit_where_roful_does_not(threshold: float) -> None:
    settings = {"safe_action": SafeAction(features=np.zeros(5)), "threshold": threshold, "noise": 1.0, "delta": 0.01}
    bold, careful = (
        sw.simulate(kind(**settings), shifted(5), rounds=2000, runs=5, record_points=1) for kind in (DOSLB, ROFUL)
    )
    assert np.all(bold.violations > 100)
    assert careful.violations.sum() == 0
    assert bold.reward.mean() > careful.reward.mean()
