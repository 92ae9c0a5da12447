"""d√T/8e² and B: on average over their instances every policy that keeps its limit regrets as much; others need not."""

import math

import numpy as np
import pytest

import stagewise as sw
from stagewise_reproduction.beyond.lower_bound import arms, linear
from stagewise_reproduction.beyond.lower_bound.informed import FIRST, SECOND, TEST, InformedPolicy
from stagewise_reproduction.beyond.lower_bound.plan import (
    ARMS,
    GAPS,
    SAFE_COST,
    SAFE_REWARD,
    build_instance,
    compute_bound,
    compute_horizon,
)
from stagewise_reproduction.instances import at_zero, compute_optimum


def test_the_instances_are_the_theorem_s() -> None:
    rounds = 400
    signs = [tuple(linear.get_signs(3, run).tolist()) for run in range(8)]
    assert len(set(signs)) == 8, "eight runs go through all θ*"
    policy = sw.LCLUCB(safe_action=at_zero(3), threshold=1.0, noise=1.0, mean_cost_bound=None)
    for one in signs:
        world = linear.build_instance(one, rounds)
        assert np.abs(world.parameters[0]).tolist() == [0.05] * 3
        assert compute_optimum(policy, world) == pytest.approx(3 / 20), "the corner with the signs of θ*, worth d/√T"
    assert linear.compute_bound(3, rounds) == pytest.approx(3 * 20 / (8 * math.e**2))


class Told:
    """Plays the corner that is best for one θ*, whatever it sees."""

    safe_action, threshold = at_zero(2), 1.0

    def start(self) -> None:
        return None

    def decide(self, state: None, actions: sw.RaySet, draw: sw.RandomKey) -> sw.Decision:
        nothing = np.zeros(1)
        return sw.Decision(actions.features[3].copy(), 3, 1.0, None, 1.0, nothing, nothing, None, draw.round)

    def learn(self, state: None, decision: sw.Decision, outcome: sw.Outcome) -> None:
        return None


def test_who_is_told_one_parameter_beats_the_bound_there_and_pays_on_the_others() -> None:
    rounds = 64
    regrets = []
    for run in range(4):
        world = linear.build_instance(linear.get_signs(2, run), rounds)
        regrets.append(float(sw.simulate(Told(), world, rounds=rounds, runs=1, progress=False).regret[0, -1]))
    assert min(regrets) == pytest.approx(0.0)
    assert min(regrets) < linear.compute_bound(2, rounds)
    assert np.mean(regrets) >= linear.compute_bound(2, rounds)


def test_a_learner_is_above_the_bound_on_average() -> None:
    rounds, dimension = 100, 2
    settings = {"threshold": linear.THRESHOLD, "mean_cost_bound": None, "noise": 1.0, "norm_bound": 0.2}
    policy = sw.LCLUCB(safe_action=at_zero(dimension), ridge=1.0, **settings)
    regrets = [
        sw.simulate(policy, linear.build_instance(linear.get_signs(dimension, run), rounds), rounds=rounds, runs=[run],
                    progress=False).regret[0, -1]
        for run in range(4)
    ]  # fmt: skip
    assert np.mean(regrets) >= linear.compute_bound(dimension, rounds)


def test_at_its_shortest_horizon_the_constrained_term_is_the_larger_one() -> None:
    for gap in GAPS:
        rounds, least = compute_horizon(gap), compute_bound(gap)
        assert rounds >= 168 * math.e * least / (1.0 - SAFE_REWARD) > rounds - 2
        assert least > arms.compute_bound(ARMS, rounds)
    assert compute_bound(0.2) < arms.compute_bound(ARMS, compute_horizon(0.2)), "with a wide gap the other term is"


def test_who_knows_both_instances_tests_within_the_limit() -> None:
    gap = GAPS[-1]
    for which in ("ν", "ν'"):
        table = np.asarray(build_instance(gap, which).table)
        assert table[1] @ TEST[:-1] <= SAFE_COST + gap + 1e-12
    first, second = (np.asarray(build_instance(gap, which).table) for which in ("ν", "ν'"))
    assert first[1] @ FIRST[:-1] == pytest.approx(SAFE_COST + gap) == second[1] @ SECOND[:-1]
    safe = sw.SafeAction(arm=0, reward=SAFE_REWARD, cost=SAFE_COST)
    player = InformedPolicy(safe_action=safe, threshold=SAFE_COST + gap, delta=0.01)
    policy = sw.OPB(arms=4, safe_action=safe, threshold=SAFE_COST + gap, noise=1.0)
    assert compute_optimum(policy, build_instance(gap, "ν'")) == pytest.approx(second[0] @ SECOND[:-1])
    state = player.start()
    for cost, mixture in ((SAFE_COST, SECOND), (SAFE_COST + 3 * gap, FIRST)):
        state = player.start()
        for _ in range(2_000):
            decision = player.decide(state, None)._replace(action=3)
            state = player.learn(state, decision, sw.Outcome(0.5, cost))
        assert player.decide(state, None).probabilities.tolist() == mixture.tolist()
