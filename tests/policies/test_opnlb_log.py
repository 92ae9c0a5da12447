"""OPNLB learns a log as one batch: the order of its rows does not matter."""

from typing import Any

import numpy as np
import pytest

from stagewise import OPNLB, Agent, SafeAction

COSTS = np.column_stack([np.zeros(9), np.linspace(0.1, 0.9, 9)])
REWARDS = np.array([[0.0, 0.9], [0.0, 0.4]])


def policy(kind: type[OPNLB] = OPNLB, **settings: Any) -> OPNLB:
    safe = SafeAction(arm=0, reward=0.0, cost=0.0)
    return kind(reward_class=REWARDS, cost_class=COSTS, safe_action=safe, threshold=0.3, **settings)


def learned(order: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the plausible functions and the sums after a log in this order."""
    random = np.random.default_rng(5)
    arms, draws = random.integers(2, size=400), random.random((400, 2))
    rewards, costs = draws[:, 0] < 0.9 * arms, draws[:, 1] < 0.5 * arms
    rows = {"sorted": np.argsort(costs, kind="stable"), "reversed": np.argsort(~costs, kind="stable")}.get(str(order))
    rows = np.random.default_rng(order).permutation(400) if rows is None else rows
    agent = Agent(policy(**settings))
    agent.learn_log(arms[rows], rewards[rows].astype(float), costs[rows].astype(float))
    kept = agent.policy.model.get_statistics(agent.state.memory)
    return kept.plausible, np.concatenate([kept.rounds, kept.losses, kept.more])


@pytest.mark.parametrize("order", ["reversed", 1, 2, 3])
def test_a_log_sorted_by_cost_leaves_what_any_other_order_leaves(order: Any) -> None:
    plausible, sums = learned("sorted")
    other, others = learned(order)
    assert np.array_equal(plausible, other)
    assert sums == pytest.approx(others, rel=1e-12)
    assert plausible.sum() < plausible.size  # something was given up, so that there was a choice


def test_a_log_after_decisions_gives_up_for_good() -> None:
    """What was given up before stays so, and what the whole log speaks against goes."""
    one = Agent(policy())
    for _ in range(40):
        one.learn(one.decide(None), reward=0.9, cost=0.0)
    before = one.policy.model.get_statistics(one.state.memory).plausible.copy()
    one.learn_log([1] * 60, [0.9] * 60, [1.0, 0.0] * 30)
    after = one.policy.model.get_statistics(one.state.memory).plausible
    assert np.all(after <= before)
    assert after.sum() < before.sum()
