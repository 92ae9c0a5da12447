"""Somebody else's proposal under the limits: rule F against HiGHS, rule S, what a decision tells, and wrong input."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import stagewise as sw
from stagewise.engine.workspace import COSTS, get_limit_terms
from stagewise.problem.context import ContextVector
from stagewise.problem.proposal import Proposal
from stagewise.rules.guard import FLOOR

ACTIONS = ["nothing", "digest", "offer", "sale"]
RATES = {"nothing": 0.0, "digest": 0.004, "offer": 0.018, "sale": 0.05}


def campaign(**changes: Any) -> sw.Problem:
    settings: dict[str, Any] = {"action_names": ACTIONS, "safe_name": "nothing", "reward": sw.Reward("click")}
    return sw.Problem(**settings | {"limits": {"opt_out": sw.Limit(0.02, safe_bound=0.0)}} | changes)


def taught(plays: dict[str, int], **changes: Any) -> sw.Agent:
    """Return an agent that has learned this many outcomes of each action, as many events as their rates say."""
    agent, rows = sw.Agent(campaign(**changes), seed=5), []
    for action, count in plays.items():
        events = round(count * RATES[action])
        rows += [(action, 0.1, float(i < events)) for i in range(count)]
    actions, clicks, leaves = zip(*rows, strict=True)
    agent.learn_log_frame({"action": actions, "click": clicks, "opt_out": leaves})
    return agent


def shares(decision: Any) -> dict[str, float]:
    return {name: share for name, share in decision.probabilities.items() if share > 0.0}


def test_a_proposal_within_the_limit_is_played_as_it_is() -> None:
    agent = taught({"digest": 2_000, "offer": 300})
    decision: Any = agent.decide(propose={"digest": 0.75, "nothing": 0.25})
    assert shares(decision) == {"digest": 0.75, "nothing": 0.25}
    assert (decision.proposal.overlap, decision.proposal.held_back, decision.proposal.binding) == (1.0, {}, ())
    assert decision.reason is None
    assert shares(agent.decide(propose="digest")) == {"digest": 1.0}


def test_what_is_missing_to_one_is_the_safe_actions() -> None:
    agent = taught({"digest": 2_000})
    decision: Any = agent.decide(propose={"digest": 0.25})
    assert shares(decision) == {"nothing": 0.75, "digest": 0.25}
    assert decision.proposal.weights == {"nothing": 0.75, "digest": 0.25}


def test_a_proposal_of_the_safe_action_alone_is_no_reason() -> None:
    decision: Any = taught({"digest": 100}).decide(propose="nothing")
    assert (shares(decision), decision.reason, decision.proposal.overlap) == ({"nothing": 1.0}, None, 1.0)


def test_an_unknown_action_is_played_at_the_share_that_is_safe() -> None:
    decision: Any = sw.Agent(campaign(), seed=1).decide(propose="offer")
    assert decision.probabilities["offer"] == pytest.approx(0.02)
    assert decision.proposal.overlap == pytest.approx(0.02)
    assert decision.proposal.held_back == {"offer": pytest.approx(0.98)}
    assert decision.proposal.binding == ("opt_out",)
    assert decision.reason is None


def test_the_cheapest_is_filled_first_and_every_other_keeps_its_floor() -> None:
    decision: Any = taught({"digest": 2_000, "offer": 2_000, "sale": 2_000}).decide(
        propose={"digest": 0.2, "offer": 0.7, "sale": 0.1}
    )
    upper, asked = read_bounds(decision)[0][0], np.array([0.2, 0.7, 0.1])
    common = 0.02 / (asked @ upper[1:4])
    played = np.array([decision.probabilities[name] for name in ACTIONS[1:]])
    assert played[0] == 0.2
    assert played[2] == pytest.approx(FLOOR * common * 0.1)
    assert FLOOR * common * 0.7 < played[1] < 0.7
    assert played @ upper[1:4] == pytest.approx(0.02)


def read_bounds(decision: Any) -> tuple[Any, Any]:
    """Return the upper ends (m, K + 1) of the costs, the safe action last, and the limits."""
    result = decision._round_result
    m = len(decision.thresholds)
    return result.workspace.rule[COSTS : COSTS + m], get_limit_terms(result.layout, result.settings).limits


@pytest.mark.parametrize("limits", [1, 3])
@pytest.mark.parametrize("kind", ["plain", "ties", "cheaper than the safe action", "few"])
def test_rule_f_is_the_optimum_of_its_program(limits: int, kind: str) -> None:
    """HiGHS solves the same linear program from the bounds of the decision."""
    random, held = np.random.default_rng(limits), 0
    for trial in range(2):
        count = 3 if kind == "few" else 8
        names = [f"a{i}" for i in range(count)]
        safe = 0.01 if kind == "cheaper than the safe action" else 0.0
        bounds = {f"c{j}": sw.Limit(0.02 + 0.04 * j, safe_bound=safe) for j in range(limits)}
        problem = sw.Problem(action_names=names, safe_name="a1", reward=sw.Reward("click"), limits=bounds)
        policy = problem.policy()
        rows = np.column_stack([np.repeat(np.arange(count), 80), np.ones(80 * count)]).astype(float)
        chances = random.uniform(0.0, 0.08, (count, limits))
        if kind == "ties":
            chances[:] = chances[0]
        chances[1] = 0.0
        outcomes = np.column_stack([np.full(len(rows), 0.5)] + [np.zeros(len(rows))] * limits)
        for action in range(count):
            for j in range(limits):
                outcomes[80 * action : 80 * action + round(80 * chances[action, j]), 1 + j] = 1.0
        state = policy.learn_log(policy.start(), rows, outcomes)
        proposal = random.dirichlet(np.full(count, 0.7))
        proposal[random.integers(count)] = 0.0
        offer = ContextVector.from_checked(np.empty(0), [], None, Proposal(proposal / proposal.sum(), False))
        decision: Any = policy.choose(state, offer, sw.RandomKey(3, 1, trial))
        upper, most = read_bounds(decision)
        asked = np.where(np.arange(count) == 1, 0.0, proposal / proposal.sum())
        rise, slack = upper[:, :-1] - upper[:, -1:], most - upper[:, -1]
        needed = rise @ asked
        common = float(np.min(slack / np.maximum(needed, slack)))
        floor = asked if common == 1.0 else FLOOR * common * asked
        best = linprog(-np.ones(count), A_ub=rise, b_ub=slack, bounds=list(zip(floor, asked, strict=True)))
        played = np.array([decision.probabilities[name] for name in names])
        played[1] = 0.0
        assert best.status == 0
        assert played.sum() == pytest.approx(-best.fun, abs=1e-9)
        assert (played >= floor - 1e-12).all()
        assert (played <= asked + 1e-15).all()
        assert (decision.pessimistic_cost <= decision.thresholds).all()
        assert decision.proposal.overlap >= common - 1e-9
        held += bool(decision.proposal.held_back)
    assert held >= 1


def test_scores_play_the_best_safe_mixture_of_what_is_certified() -> None:
    agent = taught({"digest": 2_000, "offer": 500, "sale": 500})
    decision: Any = agent.decide(scores={"digest": 0.9, "offer": 0.2, "sale": 1.0})
    assert decision.probabilities["digest"] > 0.8
    assert (decision.pessimistic_cost <= decision.thresholds).all()
    assert decision.proposal.scores == {"nothing": 0.0, "digest": 0.9, "offer": 0.2, "sale": 1.0}
    assert decision.proposal.overlap is None
    played = sum(share * decision.proposal.scores[name] for name, share in decision.probabilities.items())
    assert decision.estimated_reward == pytest.approx(played)
    assert played <= decision.optimistic_reward <= 1.0


def test_scores_are_in_the_range_of_the_reward() -> None:
    agent = sw.Agent(campaign(reward=sw.Reward("minutes", low=-10.0, high=30.0)), seed=1)
    decision: Any = agent.decide(scores={"digest": 20.0, "offer": 5.0, "sale": -1.0, "nothing": 30.0})
    assert (decision.action, decision.reason) == ("nothing", sw.FallbackReason.NO_BETTER_ACTION)
    assert decision.proposal.scores["digest"] == pytest.approx(20.0)
    assert decision.estimated_reward == pytest.approx(30.0)


def test_only_restricts_what_scores_play() -> None:
    agent = taught({"digest": 1_000, "offer": 1_000})
    decision: Any = agent.decide(scores={"offer": 0.9}, only=["offer"])
    assert set(shares(decision)) <= {"nothing", "offer"}
    decision = agent.decide(scores={"digest": 1.0, "offer": 0.5, "sale": 0.1}, only=["offer"])
    assert set(shares(decision)) <= {"nothing", "offer"}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"propose": "ofer"}, "unknown_action"),
    ({"propose": {"ofer": 1.0}}, "unknown_action"),
    ({"propose": {3: 1.0}}, "unknown_action"),
    ({"propose": "offer", "only": ["digest"]}, "unknown_action"),
    ({"propose": {"offer": 0.5}, "only": ["digest"]}, "unknown_action"),
    ({"propose": 3}, "wrong_type"),
    ({"propose": ["offer"]}, "wrong_type"),
    ({"propose": {"offer": "half"}}, "wrong_type"),
    ({"propose": {"offer": True}}, "wrong_type"),
    ({"propose": {"offer": None}}, "wrong_type"),
    ({"propose": {"offer": float("nan")}}, "invalid_probability"),
    ({"propose": {"offer": np.float64("nan")}}, "not_finite"),
    ({"propose": {"offer": float("inf")}}, "invalid_probability"),
    ({"propose": {"offer": -0.1, "digest": 0.5}}, "invalid_probability"),
    ({"propose": {"offer": 0.7, "digest": 0.4}}, "invalid_probability"),
    ({"propose": {"offer": 0.0}}, "invalid_probability"),
    ({"propose": {}}, "invalid_probability"),
    ({"propose": "offer", "scores": {"offer": 1.0}}, "conflicting_settings"),
    ({"scores": "offer"}, "wrong_type"),
    ({"scores": {"offer": 0.5}}, "missing_value"),
    ({"scores": {}}, "missing_value"),
    ({"scores": {"offer": 1.5, "digest": 0.1, "sale": 0.0}}, "out_of_range"),
    ({"scores": {"offer": float("nan"), "digest": 0.1, "sale": 0.0}}, "not_finite"),
    ({"scores": {"ofer": 0.5}}, "unknown_action"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_input_is_an_error_and_changes_nothing(wrong: tuple[dict[str, Any], str]) -> None:
    agent = taught({"digest": 50})
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    before = agent.state.memory.tobytes(), agent.round, agent.pending_count
    for decider in (agent, replica):
        with pytest.raises(sw.InvalidActions) as caught:
            decider.decide(**wrong[0])
        assert caught.value.code == wrong[1]
    assert (agent.state.memory.tobytes(), agent.round, agent.pending_count) == before
    assert replica.round == 0


def test_weights_that_exceed_one_by_rounding_are_scaled() -> None:
    agent = taught({"digest": 2_000})
    decision: Any = agent.decide(propose={"digest": 0.5, "nothing": 0.5 + 4e-10})
    assert sum(decision.probabilities.values()) == pytest.approx(1.0, abs=1e-15)


def test_only_a_problem_takes_proposals() -> None:
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    with pytest.raises(sw.InvalidActions) as caught:
        sw.Agent(policy).decide(sw.ArmSet(2), propose="offer")
    assert caught.value.code is sw.ErrorCode.UNSUPPORTED


def test_a_contradiction_holds_all_of_a_proposal_back() -> None:
    agent = sw.Agent(campaign(limits={"opt_out": sw.Limit(0.6, safe_bound=0.001)}), seed=1)
    agent.learn_log_frame({"action": ["nothing"] * 900, "click": [0.0] * 900, "opt_out": [1.0, 0.0] * 450})
    for call in ({"propose": {"offer": 0.6, "nothing": 0.4}}, {"scores": {"digest": 0.1, "offer": 0.4, "sale": 0.1}}):
        decision: Any = agent.decide(**call)
        assert (shares(decision), decision.reason) == ({"nothing": 1.0}, sw.FallbackReason.ASSUMPTION_CONTRADICTED)
        if "propose" in call:
            assert decision.proposal.overlap == pytest.approx(0.4)
            assert decision.proposal.held_back == {"offer": 0.6}
        assert sw.Decision.from_dict(decision.to_dict()).to_dict() == decision.to_dict()
    agent.acknowledge_alert("safe cost of opt_out", "a test")
    decision = agent.decide(propose="offer")
    assert decision.probabilities["offer"] > 0.0


def test_an_unknown_safe_cost_is_learned_first() -> None:
    agent = sw.Agent(campaign(limits={"opt_out": sw.Limit(0.02)}), seed=1)
    decision: Any = agent.decide(propose="offer")
    assert (shares(decision), decision.reason) == ({"nothing": 1.0}, sw.FallbackReason.SAFE_ACTION_COST_UNCERTAIN)
    assert decision.proposal.overlap == 0.0


def test_the_status_travels_with_a_decision() -> None:
    agent = taught({"digest": 500, "offer": 500})
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    for call in ({"propose": {"offer": 0.7, "digest": 0.3}}, {"scores": {"digest": 0.1, "offer": 0.4, "sale": 0.1}}):
        decision: Any = replica.decide(**call)
        read: Any = sw.Decision.from_dict(decision.to_dict())
        for copy in (pickle.loads(pickle.dumps(decision)), decision._replace(solver_gap=0.0), read):
            assert copy.proposal == decision.proposal
            assert copy.to_dict() == decision.to_dict()
        index = agent.register_decision(decision.to_dict())
        assert index == agent.round - 1


def test_the_explanation_shows_the_proposal() -> None:
    decision: Any = taught({"digest": 500, "offer": 500}).decide(propose={"offer": 0.7, "digest": 0.3})
    text = decision.explain()
    assert "proposed" in text.splitlines()[2].split()
    rows = {line[2:].split()[0]: line.split() for line in text.splitlines()[3:-1]}
    assert (rows["offer"][-2], rows["digest"][-2]) == ("0.7000", "0.3000")
    assert len(rows) == len(text.splitlines()[3:-1])


def test_cancelled_and_late_proposals_are_learned_as_other_decisions_are() -> None:
    agent, plain = sw.Agent(campaign(), seed=3), sw.Agent(campaign(), seed=3)
    first, second, third = (agent.decide(propose="offer") for _ in range(3))
    agent.cancel(second.id)
    agent.learn(third.id, click=1.0, opt_out=0.0)
    assert agent.buffered_count == 1
    agent.learn(first.id, click=0.0, opt_out=0.0)
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    plain.learn_log_frame({"action": [first.action, third.action], "click": [0.0, 1.0], "opt_out": [0.0, 0.0]})
    assert np.array_equal(agent.state.memory, plain.state.memory)
