"""Proposals and scores: interpreted, compiled, by hand and in a batch, every decision is the same to the bit."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.engine.round import build_round
from stagewise.policies.problem_policy import choose_batch
from stagewise.policies.rounds import ANSWER_SIZE, SCRATCH_SIZE
from stagewise.problem.context import ContextVector
from stagewise.problem.proposal import Proposal

NAMES = ["a", "safe", "b", "c", "d"]
LIMITS = {
    "opt_out": sw.Limit(0.05, safe_bound=0.01, model="rates"),
    "spam": sw.Limit(0.2, safe_bound=0.02, by="country"),
}


def build_problem(limits: int) -> sw.Problem:
    chosen = dict(list(LIMITS.items())[2 - limits :]) if limits == 1 else LIMITS
    return sw.Problem(action_names=NAMES, safe_name="safe", context=["age"], reward=sw.Reward("click"), limits=chosen)


def learn(problem: sw.Problem, rows: int = 800) -> Any:
    random, policy = np.random.default_rng(len(problem.limits)), problem.policy()
    actions = random.choice(NAMES, rows)
    columns: dict[str, Any] = {"action": actions, "age": random.uniform(-1, 1, rows), "click": random.random(rows)}
    columns["country"] = random.choice(["NZ", "FR"], rows)
    for name in problem.limits:
        rates = {"a": 0.02, "safe": 0.005, "b": 0.1, "c": 0.3, "d": 0.001}
        columns[name] = (random.random(rows) < [rates[action] for action in actions]).astype(float)
    agent = sw.Agent(problem)
    agent.learn_log_frame(columns)
    return policy, agent.state


def draw_offers(problem: sw.Problem, count: int) -> list[ContextVector]:
    """Return users with proposals, with scores and without, some with ineligible actions."""
    random, offers = np.random.default_rng(7), []
    for i in range(count):
        only = ["a", "c"] if i % 4 == 3 else None
        user = {"age": random.uniform(-1, 1)} | ({"country": random.choice(["NZ", "FR"])} if problem.divisions else {})
        eligible = only or [name for name in NAMES if name != "safe"]
        weights = dict(zip(eligible, random.dirichlet(np.full(len(eligible), 0.5)).tolist(), strict=True))
        given = ({"propose": weights}, {"scores": weights}, {})[i % 3]
        offers.append(problem.encode_context(user, only, **given))
    return offers


@pytest.mark.parametrize("limits", [1, 2])
def test_a_batch_decides_as_single_calls_do(limits: int) -> None:
    problem = build_problem(limits)
    policy, state = learn(problem)
    offers = draw_offers(problem, 90)
    draws = [sw.RandomKey(5, 2, round_) for round_ in range(len(offers))]
    held = 0
    for offer, draw, together in zip(offers, draws, choose_batch(policy, state, offers, draws), strict=True):
        alone = policy.choose(state, offer, draw)
        assert together is not None
        assert together.index == alone.action_index
        assert together.odds == list(alone.probabilities.values())
        assert (together.optimistic_reward, together.pessimistic_cost) == (
            alone.optimistic_reward,
            alone.pessimistic_cost.tolist(),
        )
        assert (together.estimated_reward, together.estimated_cost) == (
            alone.estimated_reward,
            list(alone.estimated_cost.values()),
        )
        held += bool(alone.proposal is not None and alone.proposal.held_back)
    assert held > 20


@pytest.mark.compiled
@pytest.mark.parametrize("limits", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_compiled_rounds_decide_as_interpreted_ones_do(limits: int) -> None:
    problem = build_problem(limits)
    policy, state = learn(problem)
    several = 0
    for round_, offer in enumerate(draw_offers(problem, 120)):
        given: Proposal | None = offer.proposal
        rounds, (rows, eligible) = policy.get_rounds(given), policy.parse_offer(offer)
        features = rows if given is None else np.column_stack([rows, given.values])
        results = []
        decide = build_round(rounds.spec).decide
        for play in (as_python(decide), decide):
            answer = np.zeros(ANSWER_SIZE(limits, features.shape[1]))
            scratch = np.zeros(SCRATCH_SIZE(limits, len(features), features.shape[1], False))
            arrays = features.copy(), eligible, policy.layout, policy.settings, state.memory, answer, scratch
            results.append((play(*arrays, 3, 1, round_), answer, scratch))
        (code, answer, scratch), (compiled_code, compiled_answer, compiled_scratch) = results
        assert code == compiled_code
        assert np.array_equal(answer, compiled_answer, equal_nan=True)
        assert np.array_equal(scratch, compiled_scratch, equal_nan=True)
        several += int((policy.choose(state, offer, sw.RandomKey(3, 1, round_))[3] > 0.0).sum() > limits + 1)
    assert several > 10
