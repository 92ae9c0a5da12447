"""OPB with intervals for outcomes in [0, 1]: optimistic and safe for every truth in them, quick on rare costs."""

import math
from typing import Any

import numpy as np
import pytest
from tests.policies.witness import best_mixture
from tests.problem.refusal import refused
from tests.sizes import sized

from stagewise import OPB, UCB, Agent, ArmSet, AtLeast, InvalidOutcome, InvalidProblem, SafeAction
from stagewise.engine.compile import Floats
from stagewise.models.intervals import compute_kl_interval
from stagewise.problem.errors import ErrorCode

ARMS, DELTA = 5, 0.1
INTERVALS = ["kl"]


def intervals(outcomes: list[Floats], signals: int) -> tuple[Floats, Floats]:
    """Return the lower and upper ends (1 + m, K) that outcomes (n, 1 + m) of every arm lead to."""
    confidence = math.log(signals * ARMS / DELTA)
    ends = np.empty((2, signals, ARMS))
    for arm, seen in enumerate(outcomes):
        for k in range(signals):
            column = seen[:, k]
            if column.size == 0:
                ends[:, k, arm] = 0.0, 1.0
            else:
                ends[:, k, arm] = compute_kl_interval(float(column.size), float(column.mean()), confidence)
    return ends[0], ends[1]


def decided(interval: str, outcomes: list[Floats], known: bool, truth: Floats, thresholds: Floats, **more: Any) -> Any:
    told = {"reward": float(truth[0, 0]), "cost": truth[1:, 0]} if known else {}
    settings: dict[str, Any] = {
        "interval": interval,
        "delta": DELTA,
        "mean_cost_bound": 2.0,
        "check_assumptions": False,
        **more,
    }
    policy = OPB(arms=ARMS, safe_action=SafeAction(arm=0, **told), threshold=thresholds, **settings)
    agent = Agent(policy)
    for arm, seen in enumerate(outcomes):
        agent.learn_log(np.full(len(seen), arm), seen[:, 0], seen[:, 1:])
    return agent.decide(ArmSet(ARMS))


@pytest.mark.compiled
@sized(10, 60)
@pytest.mark.parametrize("optimism", ["inflated", "directional"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("m", [1, 2])
def test_for_every_truth_in_the_intervals_a_decision_is_safe_and_hopes_for_the_optimum(
    m: int, interval: str, known: bool, optimism: str, size: int
) -> None:
    """The data come first and the truth is then a corner of the box of intervals: no data are less lucky."""
    random, checked, shy = np.random.default_rng([m, known]), 0, 0
    for _ in range(size):
        counts = random.integers(0, 400, size=ARMS) * random.integers(0, 2, size=ARMS)
        counts[0] += 0 if known else 1500
        rates = random.choice([0.01, 0.1, 0.5, 0.9], size=(1 + m, ARMS))
        rates[1:, 0] = 0.05
        outcomes = [(random.uniform(size=(n, 1 + m)) < rates[:, a]).astype(float) for a, n in enumerate(counts)]
        low, high = intervals(outcomes, 1 + m)
        truth = np.where(random.uniform(size=low.shape) < 0.5, low, high)
        truth[0, 1:], truth[1:, 1:] = high[0, 1:], low[1:, 1:] if random.uniform() < 0.5 else high[1:, 1:]
        thresholds = truth[1:, 0] + random.uniform(0.1, 0.4, size=m)
        decision = decided(interval, outcomes, known, truth, thresholds, optimism=optimism)
        if decision.message is not None and not known:
            continue
        checked += 1
        others = truth[:, 1:]
        best = best_mixture(others[0], np.ascontiguousarray(others[1:]), float(truth[0, 0]), truth[1:, 0], thresholds)
        if optimism == "inflated":  # a directional mixture is compared before it is mixed back
            assert decision.optimistic_reward >= best - 1e-9
        assert np.all(truth[1:] @ decision.probabilities[:-1] <= thresholds + 1e-12)
        if optimism == "inflated":
            shy += (
                decided(interval, outcomes, known, truth, thresholds, reward_confidence_scale=1.0).optimistic_reward
                < best - 1e-3
            )
    assert checked >= size // 3
    assert shy >= (optimism == "inflated"), "without the bonus some decisions would hope for too little"


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_limit_from_below_is_the_mirror_image_of_one_from_above(interval: str) -> None:
    """Successes at least .3 and failures at most .7 are the same limit, so the decisions agree."""
    random = np.random.default_rng(4)
    agents = [
        Agent(OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=cost), threshold=limit, interval=interval))
        for cost, limit in [(0.4, 0.7), (0.6, AtLeast(0.3))]
    ]
    for _ in range(200):
        arm, reward, failure = int(random.integers(3)), random.uniform(), float(random.uniform() < 0.6)
        agents[0].learn_log([arm], [reward], [failure])
        agents[1].learn_log([arm], [reward], [1.0 - failure])
    above, below = (agent.decide(ArmSet(3)) for agent in agents)
    np.testing.assert_allclose(above.probabilities, below.probabilities, atol=1e-9)
    assert above.optimistic_reward == pytest.approx(below.optimistic_reward, abs=1e-9)
    assert above.pessimistic_cost[0] == pytest.approx(1.0 - below.pessimistic_cost[0], abs=1e-9)


def pulls_until_certified(interval: str) -> int:
    """Return how many pulls, one in a hundred costing 1, it takes until an arm may be played alone at τ = .02."""
    settings: dict[str, Any] = {"interval": interval, "safe_action": SafeAction(arm=0, reward=0.0, cost=0.0)}
    agent = Agent(OPB(arms=2, threshold=0.02, **settings))
    for hundred in range(1, 1001):
        agent.learn_log([1] * 100, [1.0] * 100, [float(pull == 50) for pull in range(100)])
        if agent.decide(ArmSet(2)).probabilities[1] == 1.0:
            return 100 * hundred
    return 100_000


@pytest.mark.compiled
def test_rare_costs_are_certified_sooner_by_kl_than_by_hoeffding() -> None:
    kl, hoeffding = (pulls_until_certified(interval) for interval in ("kl", "hoeffding"))
    assert 12 * kl < hoeffding


@pytest.mark.parametrize("kind", [OPB, UCB])
@pytest.mark.parametrize("interval", INTERVALS)
def test_what_a_range_needs_and_forbids(kind: Any, interval: str) -> None:
    safe = SafeAction(arm=0, reward=0.1, cost=0.1)
    with refused(InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        kind(arms=2, safe_action=safe, threshold=0.5, interval=interval, noise=0.1)
    with refused(InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        kind(arms=2, safe_action=safe, threshold=0.5, interval=interval, horizon=10)
    agent = Agent(kind(arms=2, safe_action=safe, threshold=0.5, interval=interval))
    before = agent.state.memory.tobytes()
    with refused(InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE):
        agent.learn(agent.decide(ArmSet(2)), reward=1.5, cost=None if kind is UCB else 0.1)
    assert agent.state.memory.tobytes() == before


def test_ucb_with_kl_takes_the_largest_upper_end() -> None:
    agent = Agent(UCB(arms=2, interval="kl", delta=DELTA))
    agent.learn_log([0] * 50 + [1] * 50, [0.9] * 50 + [0.1] * 50)
    decision = agent.decide(ArmSet(2))
    assert decision.action_index == 0
    assert decision.optimistic_reward == pytest.approx(
        compute_kl_interval(50.0, 0.9, math.log(2 / DELTA)).high, rel=1e-9
    )
