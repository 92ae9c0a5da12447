"""CAPS with rare costs: the same by hand and in the loop, whatever the order of a log, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.sizes import sized

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import Contradiction

LIMIT = 0.1
MU, THETA = np.array([0.04, 0.03, -0.02, 0.02, -0.01, 0.05]), np.array([0.3, 0.1, 0.0, 0.4, 0.1, -0.1])


def policy(**changed: Any) -> sw.SafePosteriorSampling:
    safe = sw.SafeAction(features=np.zeros(6), reward=0.0, cost=0.0)
    told: dict[str, Any] = {"noise": 0.5, "norm_bound": [1.0, 0.3], "delta": 0.1, "threshold": LIMIT}
    return sw.SafePosteriorSampling(
        **{"safe_action": safe, "mixtures": True, "rare_costs": True, "blocks": 2, **told, **changed}
    )


def crossed(user: Any, template: int) -> np.ndarray:
    """Return template × user."""
    features = np.zeros(6)
    features[3 * template : 3 * template + 3] = [1.0, *user]
    return features


USERS = np.random.default_rng(8).uniform(size=(3, 2))
FEATURES = np.array([np.zeros(6), *(crossed(user, template) for user in USERS for template in (0, 1))])
WORLD = sw.FiniteSetWorld(features=FEATURES, reward=FEATURES @ THETA, cost=FEATURES @ MU, outcomes="bernoulli")


def log(count: int) -> tuple[Any, Any, Any]:
    """Return actions, rewards and costs of templates drawn by lot."""
    chance = np.random.default_rng(9)
    actions = np.array([crossed(user, i % 2) for i, user in enumerate(chance.uniform(size=(count, 2)))])
    rewards, costs = (chance.uniform(size=count) < actions @ truth for truth in (THETA, MU))
    return actions, rewards.astype(float), costs.astype(float)


def offered(seed: int) -> sw.FiniteSet:
    """Return both templates for a new user."""
    user = np.random.default_rng(seed).uniform(size=2)
    return sw.FiniteSet([crossed(user, 0), crossed(user, 1)])


@sized(150, 20_000)
def test_by_hand_in_python_and_in_the_loop_it_is_the_same(size: int) -> None:
    told: dict[str, Any] = {"rounds": size, "seed": 3, "progress": False}
    hand, loop = (sw.simulate(policy(), WORLD, backend=backend, **told) for backend in ("python", "cpu"))
    assert np.array_equal(hand.regret, loop.regret)
    assert np.array_equal(hand.max_cost, loop.max_cost)
    assert loop.regret[0, -1] > 0.0


def test_it_sends_more_the_more_it_has_seen_and_keeps_the_limit() -> None:
    agent, shares = sw.Agent(policy()), []
    for count in (0, 2000):
        if count:
            agent.learn_log(*log(count))
        decisions = [agent.decide(offered(seed)) for seed in range(20)]
        shares.append(np.mean([decision.probabilities[-1] for decision in decisions]))
        for seed, decision in enumerate(decisions):
            assert decision.probabilities[:-1] @ (offered(seed).features @ MU) <= LIMIT
            assert decision.pessimistic_cost[0] <= LIMIT
    assert shares[1] < 0.6 < shares[0]


@pytest.mark.long
def test_a_log_is_learned_alike_in_any_order() -> None:
    actions, rewards, costs = log(1000)
    order = np.argsort(costs, kind="stable")
    told = []
    for rows in (np.arange(1000), order, order[::-1]):
        agent = sw.Agent(policy())
        agent.learn_log(actions[rows], rewards[rows], costs[rows])
        told.append([agent.decide(offered(seed)).probabilities for seed in range(10)])
    assert told[1] == pytest.approx(np.array(told[0]), abs=1e-6)
    assert told[2] == pytest.approx(np.array(told[0]), abs=1e-6)


@pytest.mark.long
def test_after_a_log_it_goes_on_learning_row_by_row() -> None:
    agent = sw.Agent(policy())
    agent.learn_log(*log(100))
    first = agent.decide(offered(0))
    agent.learn(first, reward=0.0, cost=0.0)
    for seed, (reward, cost) in enumerate(zip(*log(600)[1:], strict=True)):
        decision = agent.decide(offered(seed))
        agent.learn(decision, reward=reward, cost=0.0 if decision.action_index is None else cost)
    assert agent.decide(offered(0)).probabilities[-1] < first.probabilities[-1]


def test_costs_that_no_rate_explains_end_in_the_safe_action() -> None:
    agent = sw.Agent(policy(norm_bound=[1.0, 0.06], blocks=1))
    for seed in range(300):
        decision = agent.decide(offered(seed))
        agent.learn(decision, reward=0.0, cost=1.0)
    decision = agent.decide(offered(0))
    assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    found = decision.reason_details.details
    assert (found["found"], found["limit"]) == (Contradiction.NO_LINEAR_MEAN, "cost")
    assert decision.probabilities[-1] == 1.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mixtures": False}, ErrorCode.CONFLICTING_SETTINGS),
        ({"rare_costs": False}, ErrorCode.UNUSED_SETTING),
        ({"blocks": 4}, ErrorCode.CONFLICTING_SETTINGS),
        ({"blocks": 0}, ErrorCode.OUT_OF_RANGE),
        ({"safe_action": sw.SafeAction(features=np.full(6, 0.1), cost=0.01)}, ErrorCode.UNSUPPORTED_ACTIONS),
        ({"threshold": sw.AtLeast(-0.1)}, ErrorCode.CONFLICTING_SETTINGS),
    ],
)
def test_it_says_what_it_cannot_be(changed: Any, said: str) -> None:
    with refused(sw.InvalidProblem, said):
        policy(**changed)


def test_it_refuses_what_it_cannot_learn_from() -> None:
    agent = sw.Agent(policy())
    with refused(sw.InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS):
        agent.decide(sw.FiniteSet([crossed(USERS[0], 0), np.ones(6)]))
    decision = agent.decide(offered(0))
    with refused(sw.InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE):
        agent.learn(decision, reward=0.0, cost=1.5)
    agent.learn(decision, reward=7.0, cost=0.5)  # the reward may be anything
    world = sw.LinearWorld(reward=THETA, cost=MU, actions=sw.FiniteSet(FEATURES), noise=0.1)
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        sw.simulate(policy(), world, rounds=5, progress=False)


MEAN, MISSED = 0.5, list[bool]()


class Watching(sw.SafePosteriorSampling):
    """CAPS that writes down what is known of the only candidate's reward."""

    def propose(self, known: Any, draw: Any) -> int:
        MISSED.append(not known.reward_low[0] <= MEAN <= known.reward_high[0])
        return 0


@pytest.mark.long
def test_what_is_promised_of_costs_is_not_taken_to_be_promised_of_the_reward() -> None:
    """Rewards far outside [0, 1] are as declared, noise 3, and their sets must hold them: δ is .1 for all together."""
    safe = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)
    told: dict[str, Any] = {"mixtures": True, "rare_costs": True, "noise": [3.0, 0.5], "norm_bound": [1.0, 0.05]}
    chance, runs = np.random.default_rng(12), 0
    for run in range(30):
        MISSED.clear()
        agent = sw.Agent(Watching(safe_action=safe, threshold=LIMIT, delta=0.1, **told), seed=run)
        for _ in range(60):
            decision = agent.decide(sw.FiniteSet([[1.0]]))
            agent.learn(decision, reward=3.0 * chance.normal() + MEAN * (decision.action_index == 0), cost=0.0)
        assert len(MISSED) == 60
        runs += any(MISSED)
    assert runs <= 5
