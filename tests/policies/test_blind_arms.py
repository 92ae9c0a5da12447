"""OPB before and after it has seen an arm: never blind, and never satisfied with second best."""

from typing import Any

import numpy as np
import pytest
from tests.sizes import sized

from stagewise import OPB, Agent, ArmSet, AtLeast, RandomKey, SafeAction
from stagewise.engine.pair import find_best_pair
from stagewise.policies.policy import PlayedAction

SAFE = SafeAction(arm=0, reward=0.1, cost=0.05)


def dearest_of(decision: Any) -> dict[str, tuple[float, ...]]:
    """Return the pessimistic costs that the table shows, by label."""
    return {row.label: row.pessimistic_cost for row in decision._table().rows}


BOUNDS = {
    "as it comes": ({}, 1.0),
    "horizon": ({"horizon": 10**6, "interval": "hoeffding"}, 1.0),
    "hoeffding": ({"interval": "hoeffding"}, 1.0),
    "rates": ({"interval": "rates"}, 1.0),
    "lax delta": ({"delta": 0.99, "split_delta": False}, 1.0),
    "paper": ({"interval": "paper"}, 1.0),
    "little noise": ({"noise": 1e-6}, 1.0),
    "little noise on the cost": ({"noise": [1.0, 1e-6]}, 1.0),
    "small bound": ({"noise": 0.1, "mean_cost_bound": 0.6}, 0.6),
    "large bound": ({"noise": 1e-6, "mean_cost_bound": 30.0}, 30.0),
    "large bound, outcomes in [0, 1]": ({"mean_cost_bound": 30.0}, 1.0),
    "large bound, hoeffding": ({"mean_cost_bound": 30.0, "interval": "hoeffding"}, 30.0),
    "scaled": ({"cost_confidence_scale": 3.0}, 1.0),
    "directional": ({"optimism": "directional", "noise": 1e-6}, 1.0),
}


@pytest.mark.parametrize(("settings", "bound"), BOUNDS.values(), ids=BOUNDS)
def test_an_arm_never_pulled_may_cost_as_much_as_any(settings: dict[str, Any], bound: float) -> None:
    agent = Agent(OPB(arms=3, safe_action=SAFE, threshold=0.2, **settings))
    for _ in range(30):
        decision = agent.decide(ArmSet(3))
        assert dearest_of(decision)["arm 2"] == (bound,)
        assert decision.probabilities[2] <= (0.2 - 0.05) / (bound - 0.05) + 1e-12
        if decision.action == 2:
            break
        agent.learn(decision, reward=0.5, cost=0.1)


@pytest.mark.parametrize(
    ("settings", "worst"),
    [({}, 0.0), ({"noise": 0.1}, -1.0), ({"noise": 1e-6, "mean_cost_bound": 5.0}, -5.0)],
    ids=repr,
)
def test_an_arm_never_pulled_may_earn_as_little_as_any(settings: dict[str, Any], worst: float) -> None:
    safe = SafeAction(arm=0, reward=0.1, cost=0.8)
    policy = OPB(arms=3, safe_action=safe, threshold=AtLeast(0.5), **settings)
    decision = policy.decide(policy.start(), ArmSet(3), RandomKey())
    assert dearest_of(decision)["arm 1"] == (worst,)
    assert dearest_of(decision)["arm 2"] == (worst,)


# Two good arms of equal cost, one of them better. If the hoped reward were cut off at 1, the largest possible, both
# would tie there for ever, and the one that was pulled first, whose cost is known better, would be taken every time.

REWARDS, COSTS, THRESHOLD = np.array([0.0, 0.9, 1.0]), np.array([0.0, 0.2, 0.2]), 0.2


def pulls(clipped: bool, seed: int, rounds: int) -> np.ndarray:
    """Return how often each arm was pulled, by OPB or by a copy of its rule with the hoped rewards cut off at 1."""
    policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.0, cost=0.0), threshold=THRESHOLD, interval="hoeffding")
    random, state, count = np.random.default_rng(seed), policy.start(), np.zeros(3, dtype=int)
    for round_ in range(rounds):
        decision = policy.decide(state, ArmSet(3), RandomKey(seed, 0, round_))
        arm = clipped_choice(policy, decision, random.uniform()) if clipped else decision.action
        seen = random.uniform(size=2) < [REWARDS[arm], COSTS[arm]]
        state = policy.learn_in_place(state, PlayedAction(arm), seen.astype(float))
        count[arm] += 1
    return count


def clipped_choice(policy: OPB, decision: Any, lottery: float, most: float = 1.0) -> int:
    """Return the arm that OPB's rule would draw if no hoped reward could exceed `most`."""
    hoped, dearest = np.full(3, -np.inf), np.zeros(3)
    for row in decision._table().rows:
        if row.label in ("arm 1", "arm 2"):
            arm = int(row.label[-1])
            hoped[arm], dearest[arm] = min(row.optimistic_reward, most), row.pessimistic_cost[0]
    pair = find_best_pair(hoped, dearest, 0.0, 0.0, policy.thresholds.limits[0])
    return max(pair.costly if lottery < pair.share else pair.cheap, 0)


@pytest.mark.long
@sized((1, 1000, 10), (3, 3000, 5))
def test_rewards_are_not_cut_off_at_one_or_the_best_arm_is_never_found(size: tuple[int, ...]) -> None:
    seeds, rounds, share = size
    for seed in range(seeds):
        assert pulls(False, seed, rounds)[2] > rounds // share
        assert pulls(True, seed, rounds)[2] < rounds // 100


def test_the_copy_of_the_rule_is_the_rule_where_nothing_is_cut_off() -> None:
    """The clipped variant differs from OPB by the clip alone: without it both draw as often from the same arms."""
    policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.0, cost=0.0), threshold=THRESHOLD, interval="hoeffding")
    state = policy.start()
    for arm in (1, 2) * 100:
        state = policy.learn_in_place(state, PlayedAction(arm), np.array([REWARDS[arm], COSTS[arm]]))
    decision = policy.decide(state, ArmSet(3), RandomKey())
    lotteries = (np.arange(1000) + 0.5) / 1000
    drawn = np.bincount([clipped_choice(policy, decision, lottery, np.inf) for lottery in lotteries], minlength=3)
    np.testing.assert_allclose(drawn / 1000, decision.probabilities[:3], atol=1e-3)
    assert np.count_nonzero(drawn) > 1
