"""ExactOPNLB: the paper's maximum and the paper's sets, safe and optimistic wherever the truth is plausible."""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.contracts.policy import Case, MixtureContract
from tests.contracts.test_opnlb import arms_problems, cases, linear_problems
from tests.policies.class_instances import instances
from tests.policies.classes import BASE, COSTS, FEATURED, GRID, REWARDS, half, root
from tests.policies.test_opnlb import KNOWN, ROUNDING, assert_safe_and_optimistic
from tests.policies.test_opnlb_log import learned
from tests.problem.refusal import refused
from tests.statistics.counting import violating
from tests.statistics.families import DELTA
from tests.statistics.test_opnlb_safety import played, random_world

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise_reproduction.exact.opnlb import ExactOPNLB


@cases([*list(arms_problems())[3:4], *list(linear_problems())[:1]], ExactOPNLB)
class TestContract(MixtureContract):
    def test_an_agent_saved_and_loaded_goes_on_as_if_it_had_never_stopped(self, case: Case, tmp_path: Any) -> None:
        """Files know what stagewise exports."""
        with pytest.raises(sw.InvalidProblem, match="ExactOPNLB cannot be saved"):
            sw.Agent(case.make()).save(tmp_path / "agent.json")


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("constraints", [1, 2])
def test_where_the_truth_is_plausible_decisions_are_safe_and_optimistic(
    constraints: int, known: tuple[bool, bool]
) -> None:
    assert_safe_and_optimistic(ExactOPNLB, "exact", constraints, known, 15)


@pytest.mark.parametrize("constraints", [1, 2])
def test_it_hopes_for_less_than_row_by_row(constraints: int) -> None:
    less = 0
    for instance in instances(constraints):
        rows, exact = instance.decided(method="rows"), instance.decided(ExactOPNLB)
        assert exact.optimistic_reward <= rows.optimistic_reward + ROUNDING
        assert 0.0 <= exact.solver_gap < ROUNDING
        less += exact.optimistic_reward < rows.optimistic_reward - 1e-3
    assert less >= 5


def test_simulations_find_the_best_mixture() -> None:
    points = np.array(GRID)
    world = sw.FiniteSetWorld(
        features=GRID, reward=[root(x) for x in points], cost=[half(x) for x in points], noise=0.1
    )
    result = sw.simulate(ExactOPNLB(**FEATURED), world, rounds=200, runs=2)
    assert result.violations.sum() == 0
    late = result.regret[:, -1] - result.regret[:, result.rounds.searchsorted(150)]
    assert np.all(late < 1e-9), "soon one function of each class is left, and the mixture is the best"
    arms = sw.simulate(ExactOPNLB(**BASE), sw.ArmsWorld(reward=REWARDS[1], cost=COSTS[0]), rounds=300, runs=2)
    assert arms.violations.sum() == 0
    assert np.all(arms.regret[:, -1] < 0.3 * arms.optimum[:, -1] * 300)


def test_where_only_the_safe_arm_is_eligible_it_is_played() -> None:
    policy = ExactOPNLB(**BASE)
    decision = policy.decide(policy.start(), sw.ArmSet(3).only([0]))
    assert decision.probabilities.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert (decision.action, decision.optimistic_reward, decision.solver_gap) == (0, 0.1, 0.0)


@pytest.mark.parametrize("order", ["reversed", 1, 2, 3])
def test_the_papers_sets_take_a_log_in_any_order(order: Any) -> None:
    plausible, sums = learned("sorted", kind=ExactOPNLB, sets="paper")
    other, others = learned(order, kind=ExactOPNLB, sets="paper")
    assert np.array_equal(plausible, other)
    assert sums == pytest.approx(others, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"sets": "ellipsoid"}, ErrorCode.INVALID_CHOICE),
        ({"method": "magic"}, ErrorCode.INVALID_CHOICE),
        ({"optimism": "directional"}, ErrorCode.CONFLICTING_SETTINGS),
        ({"sets": "paper", "noise": 0.1}, ErrorCode.CONFLICTING_SETTINGS),
        ({"sets": "paper", "reward_class": [[0.1, 1.5, 0.0]]}, ErrorCode.OUT_OF_RANGE),
        ({"search": 0}, ErrorCode.OUT_OF_RANGE),
        ({"search": True}, ErrorCode.WRONG_TYPE),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes: dict[str, Any], part: object) -> None:
    with refused(sw.InvalidProblem, part):
        ExactOPNLB(**{**BASE, **changes})


def test_the_papers_sets_refuse_actions_where_functions_leave_their_range() -> None:
    policy = ExactOPNLB(**{**FEATURED, "noise": None, "sets": "paper"})
    with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
        policy.decide(policy.start(), [[2.0]])
    with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
        sw.Agent(policy).learn_log([[2.0]], [0.5], [0.1])


@pytest.mark.compiled
def test_with_the_papers_sets_few_of_a_hundred_runs_violate() -> None:
    play = played(random_world, ExactOPNLB, method="pointwise", sets="paper")
    assert violating(play, 100, 40) <= allowed(100, DELTA)
