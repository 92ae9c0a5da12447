"""OPNLB: how its methods compare, and what holds wherever the truth is plausible."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.class_instances import INSTANCES, instances
from tests.policies.classes import BASE, COSTS, FEATURED, GRID, REWARDS, half, root
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused
from tests.sizes import sized

from stagewise import (
    OPNLB,
    Agent,
    ArmSet,
    ArmsWorld,
    AtLeast,
    FallbackReason,
    FiniteFunctionClass,
    FiniteSet,
    FiniteSetWorld,
    InvalidActions,
    InvalidOutcome,
    InvalidProblem,
    PolicyState,
    RaySet,
    SafeAction,
    simulate,
)
from stagewise.problem.errors import ErrorCode

ROUNDING = 1e-9
KNOWN = [(True, True), (False, True), (True, False), (False, False)]


@pytest.mark.long
@sized(15, INSTANCES)
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize("method", ["pointwise", "rows"])
def test_where_the_truth_is_plausible_decisions_are_safe_and_optimistic(
    method: str, constraints: int, known: tuple[bool, bool], size: int
) -> None:
    assert_safe_and_optimistic(OPNLB, method, constraints, known, size)


def assert_safe_and_optimistic(
    kind: type[OPNLB], method: str, constraints: int, known: tuple[bool, bool], size: int
) -> None:
    """Assert it on random classes; without the costs' width the same hope would not be enough."""
    excesses, bare, dared = [], [], 0
    for instance in instances(constraints, known)[:size]:
        decision = instance.decided(kind, method=method)
        costs = instance.truth[1:] @ decision.probabilities[:-1]
        assert np.all(costs <= instance.thresholds + 1e-15)
        assert np.all(decision.pessimistic_cost <= instance.thresholds)
        dared += decision.message is None
        if decision.message is None or known[1]:
            excesses.append(decision.optimistic_reward + decision.solver_gap - instance.best)
            bare.append(
                instance.decided(kind, method=method, reward_confidence_scale=0.0).optimistic_reward - instance.best
            )
    assert dared >= size // 3
    assert min(excesses) >= -ROUNDING
    assert sum(excess < -1e-3 for excess in bare) >= size // 12, "without the costs' width hope would not be enough"


@pytest.mark.long
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("constraints", [1, 2])
def test_directional_mixtures_lose_no_more_than_their_theorem_says(constraints: int, known: tuple[bool, bool]) -> None:
    """r(π*) − r(π) ≤ E_π [w_r + max_j (r(π*) − r₀)/g_j w_j], with the slack g_j that is certain."""
    losses = []
    for instance in instances(constraints, known):
        decision = instance.decided(optimism="directional")
        if decision.message is not None and not known[1]:
            continue
        costs = [instance.plausible(1 + j) for j in range(constraints)]
        slack = np.array([limit - cost[:, 0].max() for cost, limit in zip(costs, instance.thresholds, strict=True)])
        widths = np.array([np.ptp(cost, axis=0) for cost in costs]) / slack[:, None]
        gain = instance.best - instance.truth[0, 0]
        bound = np.ptp(instance.plausible(0), axis=0) + gain * widths.max(axis=0)
        shares = decision.probabilities[:-1]
        losses.append(instance.best - instance.truth[0] @ shares)
        assert losses[-1] <= bound @ shares + ROUNDING
        assert np.all(decision.pessimistic_cost <= instance.thresholds)
    assert max(losses) > 0.1


@pytest.mark.parametrize("constraints", [1, 2])
def test_rows_allow_every_pointwise_mixture(constraints: int) -> None:
    more = 0
    for instance in instances(constraints):
        pointwise, rows = (instance.decided(method=method) for method in ("pointwise", "rows"))
        for j in range(constraints):
            table = instance.plausible(1 + j)
            assert np.max(table @ pointwise.probabilities[:-1]) <= pointwise.pessimistic_cost[j] + 1e-12
            assert rows.pessimistic_cost[j] == pytest.approx(np.max(table @ rows.probabilities[:-1]), abs=1e-14)
        assert rows.optimistic_reward >= pointwise.optimistic_reward - ROUNDING
        more += rows.optimistic_reward > pointwise.optimistic_reward + 1e-3
        assert pointwise.solver_gap == 0.0
        assert 0.0 <= rows.solver_gap < ROUNDING
    assert more >= 5


def test_pointwise_bounds_are_the_extremes_of_the_plausible_functions() -> None:
    policy = OPNLB(**BASE)
    table = policy.decide(policy.start(), ArmSet(3))._table()
    rows = {row.label: row for row in table.rows}
    lift = 0.9 / policy.thresholds.limits[0]
    assert rows["arm 1"].pessimistic_cost == (0.6,)
    assert rows["arm 1"].optimistic_reward == pytest.approx(0.9 + lift * 0.4)
    assert rows["safe action"].pessimistic_cost == (0.0,)
    assert rows["safe action"].optimistic_reward == 0.1


def test_functions_that_contradict_the_safe_action_are_left_out() -> None:
    policy = OPNLB(**{**BASE, "reward_class": [*REWARDS, [0.2, 1.0, 1.0]], "cost_class": [*COSTS, [0.05, 0.0, 0.0]]})
    assert policy.model.sizes == (3, 2)
    unknown = OPNLB(**{**BASE, "safe_action": SafeAction(arm=0), "cost_class": [*COSTS, [0.3, 0.0, 0.0], [0.1] * 3]})
    assert unknown.model.sizes == (3, 3), "a function at its limit would leave the safe action unsafe"


def test_an_unknown_safe_cost_is_learned_first() -> None:
    costs = [[0.0, 0.5, 0.1], [0.25, 0.5, 0.1]]
    agent = Agent(OPNLB(**{**BASE, "cost_class": costs, "safe_action": SafeAction(arm=0), "noise": 0.1}))
    first = agent.decide(ArmSet(3))
    assert first.reason is FallbackReason.SAFE_ACTION_COST_UNCERTAIN
    agent.drop_pending(agent.round)
    for _ in range(5):
        agent.learn(agent.decide(ArmSet(3)), reward=0.1, cost=0.0)
    assert agent.decide(ArmSet(3)).message is None


def test_a_class_that_lacks_the_truth_is_noticed_and_the_safe_action_played() -> None:
    """One log after another: each is judged by itself, and what the first spoke against does not come back."""
    agent = Agent(OPNLB(**{**BASE, "noise": 0.1, "check_assumptions": False}))
    agent.learn_log([1] * 20, [0.3] * 20, [0.2] * 20)
    agent.learn_log([1] * 40, [0.3] * 40, [0.6] * 40)
    decision = agent.decide(ArmSet(3))
    assert decision.reason is FallbackReason.NO_PLAUSIBLE_FUNCTION
    assert (decision.action, decision.probabilities[0], decision.pessimistic_cost[0]) == (0, 1.0, 0.0)
    assert "no table" in decision.explain()


def test_a_table_over_listed_features_decides_as_its_callables_do() -> None:
    tables = {name: FiniteFunctionClass(FEATURED[name], features=GRID) for name in ("reward_class", "cost_class")}
    asked, listed = OPNLB(**FEATURED), OPNLB(**{**FEATURED, **tables})
    for actions in (FiniteSet(GRID), GRID[1:], RaySet(GRID[2:]), FiniteSet(GRID).only([1, 3])):
        one, other = (policy.decide(policy.start(), actions) for policy in (asked, listed))
        assert np.array_equal(one.probabilities, other.probabilities)
        assert one.optimistic_reward == other.optimistic_reward
        assert np.array_equal(one.action, other.action)


@pytest.mark.parametrize("method", ["pointwise", "rows"])
def test_callables_are_simulated_and_find_the_best_mixture(method: str) -> None:
    points = np.array(GRID)
    means = {"reward": [root(x) for x in points], "cost": [half(x) for x in points]}
    world = FiniteSetWorld(features=GRID, **means, noise=0.1)
    result = simulate(OPNLB(**FEATURED, method=method), world, rounds=200)
    assert result.violations.sum() == 0
    late = result.regret[:, -1] - result.regret[:, result.rounds.searchsorted(150)]
    assert np.all(late < 1e-9), "soon one function of each class is left, and the mixture is the best"
    assert result.manifest["policy"]["kind"] == "OPNLB"


@pytest.mark.parametrize("method", ["pointwise", "rows"])
def test_arms_are_simulated(method: str) -> None:
    world = ArmsWorld(reward=REWARDS[1], cost=COSTS[0])
    result = simulate(OPNLB(**BASE, method=method), world, rounds=300, backend="python")
    assert result.violations.sum() == 0
    assert np.all(result.regret[:, -1] < 0.3 * result.optimum[:, -1] * 300)


@pytest.mark.parametrize("method", ["pointwise", "rows"])
def test_where_only_the_safe_arm_is_eligible_it_is_played(method: str) -> None:
    policy = OPNLB(**BASE, method=method)
    decision = policy.decide(policy.start(), ArmSet(3).only([0]))
    assert decision.probabilities.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert (decision.action, decision.optimistic_reward, decision.solver_gap) == (0, 0.1, 0.0)
    assert decision.reason is FallbackReason.NO_BETTER_ACTION


def test_callables_cannot_be_saved_and_their_table_can(tmp_path: Path) -> None:
    with refused(InvalidProblem, ErrorCode.NOT_SERIALIZABLE):
        Agent(OPNLB(**FEATURED)).save(tmp_path / "agent.json")
    assert not list(tmp_path.iterdir())
    tables = {name: FiniteFunctionClass(FEATURED[name], features=GRID) for name in ("reward_class", "cost_class")}
    agent = Agent(OPNLB(**{**FEATURED, **tables}))
    agent.learn(agent.decide(GRID), reward=0.5, cost=0.1)
    agent.save(tmp_path / "agent.json")
    loaded = Agent.load(tmp_path / "agent.json")
    assert np.array_equal(loaded.policy.reward_class.functions, tables["reward_class"].functions)
    assert loaded.state.memory.tobytes() == agent.state.memory.tobytes()
    # A memory goes over to the callables as well: the functions are the same, in the same order.
    state = PolicyState(agent.state.memory)
    assert OPNLB(**FEATURED).decide(state, GRID).optimistic_reward == agent.policy.decide(state, GRID).optimistic_reward


def test_a_log_is_learned_from() -> None:
    agent, by_hand = Agent(OPNLB(**BASE)), OPNLB(**BASE)
    agent.learn_log([1, 2, 1], [0.4, 0.8, 0.6], [0.1, 0.5, 0.3])
    losses = by_hand.model.get_statistics(agent.state.memory).losses
    table = np.array([*REWARDS, *COSTS])[:, [1, 2, 1]]
    seen = np.array([[0.4, 0.8, 0.6]] * 3 + [[0.1, 0.5, 0.3]] * 2)
    assert losses == pytest.approx(np.sum((table - seen) ** 2, axis=1))
    with refused(InvalidActions, ErrorCode.UNKNOWN_ACTION):
        agent.learn_log([3], [0.5], [0.1])
    featured = Agent(OPNLB(**FEATURED))
    with refused(InvalidActions, ErrorCode.DIMENSION_MISMATCH):
        featured.learn_log([[0.5, 0.5]], [0.5], [0.1])


@pytest.mark.parametrize(("reward", "cost"), [(1.5, 0.1), (0.5, -0.1), (np.nan, 0.1), (0.5, None), (0.5, [0.1, 0.2])])
def test_bad_outcomes_are_refused_and_change_nothing(reward: Any, cost: Any) -> None:
    agent = Agent(OPNLB(**BASE))
    decision, before = agent.decide(ArmSet(3)), agent.state.memory.tobytes()
    codes = ErrorCode.NOT_FINITE, ErrorCode.OUTCOME_MISSING, ErrorCode.OUTCOME_OUT_OF_RANGE, ErrorCode.WRONG_SHAPE
    with refused_with(InvalidOutcome, *codes):
        agent.learn(decision, reward=reward, cost=cost)
    assert agent.state.memory.tobytes() == before


def test_a_limit_from_below_turns_its_class_around() -> None:
    up = OPNLB(
        **{
            **BASE,
            "threshold": AtLeast(0.7),
            "cost_class": 1.0 - np.array(COSTS),
            "safe_action": SafeAction(arm=0, reward=0.1, cost=1.0),
        }
    )
    one, other = (policy.decide(policy.start(), ArmSet(3)) for policy in (up, OPNLB(**BASE)))
    assert one.probabilities == pytest.approx(other.probabilities, abs=1e-12)
    assert one.pessimistic_cost == pytest.approx(1.0 - other.pessimistic_cost, abs=1e-12)
    assert one.pessimistic_cost[0] >= 0.7
