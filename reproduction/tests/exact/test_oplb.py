"""ExactOPLB: what it is worth, what it may miss, and that it is never over a threshold."""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.contracts.policy import Case, MixtureContract
from tests.contracts.test_grades import cases
from tests.policies.test_grades import (
    CASES,
    ROUNDING,
    SEARCHED,
    assert_played_in_python,
    assert_small_problems_are_no_trouble,
    assert_stays_linear,
    broken,
    checked_costs,
    instances,
    missed_without_the_lift,
    searched,
    textbook,
    trained,
    worse_in_a_hurry,
)
from tests.policies.test_watch import ENDS, ZERO, assert_stays
from tests.statistics.counting import violating
from tests.statistics.families import DELTA, linear_world
from tests.statistics.test_grades import among

import stagewise as sw
from stagewise_reproduction.exact.oplb import ExactOPLB

QUICK = {"kind": ExactOPLB, "tolerance": 0.1, "budget": 2}


@cases((6,), ExactOPLB, tolerance=0.05, budget=4)
class TestContract(MixtureContract):
    def test_an_agent_saved_and_loaded_goes_on_as_if_it_had_never_stopped(self, case: Case, tmp_path: Any) -> None:
        """Files know what stagewise exports."""
        with pytest.raises(sw.InvalidProblem, match="ExactOPLB cannot be saved"):
            sw.Agent(case.make()).save(tmp_path / "agent.json")


@pytest.mark.parametrize("name", CASES)
def test_it_is_safe_and_optimistic_and_hopes_for_no_more_than_the_cone_program(name: str) -> None:
    case, dared = CASES[name], 0
    for instance in instances(name, 8):
        socp = instance.decided(sw.OPLB, sw.FiniteSet, method="socp")
        exact = instance.decided(ExactOPLB, sw.FiniteSet, budget=60, tolerance=1e-2)
        assert np.all(exact.pessimistic_cost <= exact.thresholds) or exact.message is not None
        if exact.message is None or case.cost_known:
            assert exact.optimistic_reward + exact.solver_gap >= instance.best_mixture() - ROUNDING
        assert exact.optimistic_reward <= socp.optimistic_reward + socp.solver_gap + ROUNDING
        dared += checked_costs(instance, case, exact)
    assert dared >= 3


def test_without_the_lift_the_same_data_defeat_optimism() -> None:
    assert missed_without_the_lift(ExactOPLB, 60, budget=30, tolerance=1e-2) >= 1


@pytest.mark.parametrize("name", SEARCHED)
def test_it_is_worth_what_a_search_over_mixtures_finds(name: str) -> None:
    random, compared = np.random.default_rng(11), 0
    for instance in instances(name, 5):
        options = textbook(instance, CASES[name])
        settings = {"mean_cost_bound": None, "reward_confidence_scale": 1.5, "tolerance": 1e-4, "budget": 3000}
        decided = instance.decided(ExactOPLB, sw.FiniteSet, **settings)
        if decided.message is None:
            found = searched(options.paper, options.slack, options.single.size, random)
            assert decided.optimistic_reward == pytest.approx(options.paper(decided.probabilities), abs=1e-9)
            assert decided.solver_gap <= 1e-4
            assert decided.optimistic_reward + decided.solver_gap >= found - 1e-6
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize("m", [1, 3])
def test_a_solver_in_a_hurry_breaks_no_limit(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert worse_in_a_hurry(m, monkeypatch, kind=ExactOPLB, budget=40) > 0


def test_a_solver_that_fails_leaves_the_linear_programs_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, state, table = trained(2, kind=ExactOPLB)
    monkeypatch.setattr("stagewise_reproduction.exact.box.solve_conic", broken)
    assert_stays_linear(policy, state, table)


def test_an_early_end_of_the_search_is_told() -> None:
    for rounds in (0, 10, 40):
        policies = [trained(rounds, kind=ExactOPLB, budget=budget) for budget in (1, 5, 30, 1000)]
        *short, long = [policy.decide(state, table) for policy, state, table in policies]
        for decision in short:
            assert decision.optimistic_reward <= long.optimistic_reward + long.solver_gap + ROUNDING
            assert decision.optimistic_reward + decision.solver_gap >= long.optimistic_reward - ROUNDING
        assert long.solver_gap <= 1e-3


def test_where_everything_is_safe_nothing_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewise.rules.cone_program.solve_conic", None)
    policy, state, table = trained(kind=ExactOPLB, threshold=15.0, mean_cost_bound=16.0)
    decision = policy.decide(state, table)
    assert (
        decision.optimistic_reward
        == trained(threshold=15.0, mean_cost_bound=16.0)[0].decide(state, table).optimistic_reward
    )
    assert decision.solver_gap == pytest.approx(0.0, abs=1e-8)


def test_small_problems_are_no_trouble() -> None:
    assert_small_problems_are_no_trouble(ExactOPLB)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"optimism": "directional"}, "method"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"tolerance": np.inf}, "tolerance"),
        ({"tolerance": "small"}, "tolerance"),
        ({"budget": 0}, "budget"),
        ({"budget": -3}, "budget"),
        ({"budget": 2.5}, "budget"),
        ({"budget": True}, "budget"),
        ({"budget": None}, "budget"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(sw.InvalidProblem) as caught:
        ExactOPLB(safe_action=sw.SafeAction(features=[0.0]), threshold=0.3, noise=0.1, **settings)
    assert caught.value.details["subject"] == name


def test_simulations_play_it_in_python_and_the_compiled_loop_refuses_it() -> None:
    safe = sw.SafeAction(features=[0.0, 0.0])
    assert_played_in_python(ExactOPLB(safe_action=safe, threshold=0.3, noise=0.1, tolerance=0.05))


def test_it_stops_where_what_was_declared_is_contradicted() -> None:
    settings: dict[str, Any] = {"threshold": 3.0, "noise": 0.1, "norm_bound": 12.0, "mean_cost_bound": 4.0}
    agent = sw.Agent(ExactOPLB(safe_action=ZERO, **settings))
    agent.learn_log(np.tile(ENDS, (20, 1)), np.zeros(40), np.full(40, 8.0))
    assert_stays(agent, ENDS, "a mean of 'cost' above", "bound 4 ")


@pytest.mark.compiled
def test_of_a_hundred_runs_few_violate() -> None:
    assert violating(among(linear_world, **QUICK), 100, 20) <= allowed(100, DELTA)


@pytest.mark.slow
def test_of_two_thousand_runs_few_violate() -> None:
    assert violating(among(linear_world, **QUICK), 2000, 20) <= allowed(2000, DELTA)


@pytest.mark.compiled
def test_with_too_little_noise_declared_too_many_violate() -> None:
    assert violating(among(linear_world, declared=0.1, **QUICK), 100, 30) > allowed(100, DELTA)
