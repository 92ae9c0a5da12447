"""Intervals of arms for outcomes in [0, 1]: which is the default, and what "rates" keeps of what it has seen."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.engine.layout import get_model_block
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.arms import RATES, UPPER_SHARE, get_arms_assumptions, get_kept_intervals
from stagewise.models.intervals import compute_average_interval
from stagewise.policies.policy import PlayedAction
from stagewise.problem.errors import ErrorCode

SAFE = sw.SafeAction(arm=0, reward=0.04, cost=[0.004, 0.0005])
TOLD: dict[str, Any] = {"arms": 4, "safe_action": SAFE, "threshold": [0.02, 0.005]}
MEANS = np.array([[0.04, 0.05, 0.06, 0.09], [0.004, 0.01, 0.012, 0.018], [0.0005, 0.002, 0.001, 0.004]])


def kept(policy: Any, state: sw.PolicyState) -> np.ndarray:
    """Return the kept intervals, (2, 1 + m, K): centres and halves."""
    part = as_python(get_model_block)(policy.layout, state.memory, 0)
    return np.array(as_python(get_kept_intervals)(part, state.memory).rows).reshape(2, part.signals, part.size)


def log(rows: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return arms, rewards and costs."""
    random = np.random.default_rng(seed)
    arms = random.integers(0, 4, rows)
    seen = (random.uniform(size=(rows, 3)) < MEANS[:, arms].T).astype(float)
    return arms, seen[:, 0], seen[:, 1:]


# Which interval


@pytest.mark.parametrize(("kind", "default_interval"), [(sw.OPB, "kl"), (sw.SafeArmPosteriorSampling, "rates")])
def test_outcomes_in_a_range_have_the_natural_intervals_and_noisy_ones_the_usual(
    kind: Any, default_interval: str
) -> None:
    assert kind(**TOLD).interval == default_interval
    assert f"interval='{default_interval}'" in repr(kind(**TOLD))
    assert kind(**TOLD, noise=0.3).interval == "hoeffding"
    assert kind(**TOLD, interval="paper").interval == "paper"
    assert sw.UCB(arms=2).interval == "kl"
    assert sw.UCB(arms=2, noise=1.0).interval == "hoeffding"


@pytest.mark.parametrize("kind", [sw.OPB, sw.SafeArmPosteriorSampling, sw.UCB])
def test_a_horizon_is_not_ignored_but_refused_where_the_natural_interval_has_none(kind: Any) -> None:
    told = {"arms": 4} if kind is sw.UCB else TOLD
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        kind(**told, horizon=50)
    assert kind(**told, horizon=50, interval="hoeffding").horizon == 50


# How δ is shared


@pytest.mark.parametrize("costs", [1, 3])
@pytest.mark.parametrize("share", [True, False], ids=["shared", "each its own"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_all_ends_together_take_what_is_promised(costs: int, share: bool, known: bool) -> None:
    safe = sw.SafeAction(arm=0, reward=0.1, cost=[0.01] * costs) if known else sw.SafeAction(arm=0)
    told: dict[str, Any] = {"arms": 5, "safe_action": safe, "threshold": [0.1] * costs, "delta": 0.08}
    policy = sw.SafeArmPosteriorSampling(**told, split_delta=share)
    assert policy.model.ends is not None
    listed, (lower, upper) = 4 if known else 5, np.exp(-policy.model.ends)
    np.testing.assert_allclose(listed * (lower + upper), policy.interval_shares)
    of_costs = float(np.sum(listed * upper[1:]))
    if share:
        assert sum(policy.interval_shares) == pytest.approx(0.08)
        assert of_costs == pytest.approx(UPPER_SHARE * 0.08)
    else:
        assert of_costs == pytest.approx(costs * UPPER_SHARE * 0.08)


def test_without_limits_all_of_delta_is_for_the_reward_of_every_arm() -> None:
    state = (policy := sw.UCB(arms=5, interval="rates", delta=0.1)).start()
    for _ in range(30):
        state = policy.learn_in_place(state, PlayedAction(1), np.array([0.5]))
    part = as_python(get_model_block)(policy.layout, state.memory, 0)
    stated = as_python(get_arms_assumptions)(part, policy.settings)
    assert 5 * float(np.exp(-stated.lower[0]) + np.exp(-stated.upper[0])) == pytest.approx(0.1)
    ends = as_python(compute_average_interval)(30.0, 0.5, stated.lower[0], stated.upper[0])
    centre, half = kept(policy, state)[:, 0, 1]
    assert [centre - half, centre + half] == pytest.approx([ends.low, ends.high])


def test_what_is_declared_of_the_safe_arm_has_no_width_where_it_is_listed_too() -> None:
    policy = sw.SafeArmPosteriorSampling(**TOLD)
    state = policy.learn_log(policy.start(), *logged(policy, 500))
    bounds = policy.rounds.play(
        state.memory, np.empty((policy.arms, 0)), np.empty(0, bool), sw.RandomKey()
    ).workspace.bounds
    np.testing.assert_array_equal(bounds[:, HALF, 0], 0.0)
    np.testing.assert_array_equal(bounds[:, CENTRE, 0], [0.04, 0.004, 0.0005])
    assert (bounds[:, HALF, 1:4] > 0.0).all()


# What is kept


def logged(policy: Any, rows: int) -> tuple[Any, Any]:
    """Return a log as a policy learns it."""
    arms, rewards, costs = log(rows)
    return policy.check_logged_actions(arms), [
        policy.values(reward, cost) for reward, cost in zip(rewards, costs, strict=True)
    ]


def test_ends_never_widen() -> None:
    policy = sw.SafeArmPosteriorSampling(**TOLD, delta=0.5)
    state, arms_values = policy.start(), logged(policy, 3000)
    before = kept(policy, state)
    for arm, values in zip(*arms_values, strict=True):
        state = policy.learn_in_place(state, PlayedAction(arm), values)
        after = kept(policy, state)
        assert (after[0] - after[1] >= before[0] - before[1] - 1e-12).all()
        assert (after[0] + after[1] <= before[0] + before[1] + 1e-12).all()
        before = after.copy()
    assert as_python(get_model_block)(policy.layout, state.memory, 0).radius == RATES


@pytest.mark.long
def test_a_log_is_one_batch_whatever_its_order() -> None:
    """Row by row, a log sorted by cost would leave ends that hold for no mean; together its rows say what they say."""
    policy = sw.SafeArmPosteriorSampling(**TOLD)
    arms, values = logged(policy, 1500)
    order = np.argsort([seen[1] for seen in values], kind="stable")
    plain, sorted_ = (
        kept(policy, policy.learn_log(policy.start(), arms[rows], [values[row] for row in rows]))
        for rows in (np.arange(1500), order)
    )
    np.testing.assert_allclose(sorted_, plain, atol=1e-12)
    state = policy.start()
    for row in order:
        state = policy.learn_in_place(state, PlayedAction(arms[row]), values[row])
    assert kept(policy, state)[1, 1].min() < 0.5 * plain[1, 1].min()


def test_a_log_does_not_undo_what_was_kept_before() -> None:
    policy = sw.SafeArmPosteriorSampling(**TOLD)
    state = policy.learn_log(policy.start(), *logged(policy, 2000))
    before = kept(policy, state)
    dear = [np.array([0.0, 1.0, 1.0])] * 5
    after = kept(policy, policy.learn_log(state, np.array([1] * 5), dear))
    np.testing.assert_allclose((after[0] + after[1])[1:], (before[0] + before[1])[1:], rtol=1e-12)
    assert (after[0] - after[1])[1, 1] > (before[0] - before[1])[1, 1]


def test_ends_that_have_passed_each_other_leave_the_larger_one_above() -> None:
    """Means that change are no means: many pulls without a cost, then with nothing else."""
    policy = sw.SafeArmPosteriorSampling(**TOLD, check_assumptions=False)
    state = policy.start()
    for cost in [0.0] * 3000 + [1.0] * 3000:
        state = policy.learn_in_place(state, PlayedAction(1), np.array([0.0, cost, 0.0]))
    assert kept(policy, state)[1, 1, 1] < 0.0
    low, high = (float(kept(policy, state)[0, 1, 1] + side * kept(policy, state)[1, 1, 1]) for side in (-1.0, 1.0))
    assert high < 0.01 < 0.4 < low
    decision = policy.decide(state, sw.ArmSet(4))
    shown = {row.label: row.pessimistic_cost[0] for row in decision._table().rows}
    assert shown["arm 1"] == pytest.approx(low)
    assert decision.probabilities[1] <= 0.016 / (low - 0.004) + 1e-9
    assert math.isfinite(decision.optimistic_reward)
