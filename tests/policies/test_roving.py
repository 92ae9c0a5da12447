"""A safe action of the round: what is offered, what is declared, what is played, and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import Contradiction

D, M = 4, 2
RNG = np.random.default_rng(12)
THETA = RNG.uniform(0.0, 0.5, size=(1 + M, D))
LIMITS = {"opt_out": 0.6, "complaint": 0.7}
BOUND = {"opt_out": 0.4, "complaint": 0.5}
RAYS: list[tuple[Any, dict[str, Any]]] = [
    (sw.LCLUCB, {}),
    (sw.ROFUL, {}),
    (sw.SafeLTS, {}),
    (sw.SafePosteriorSampling, {}),
]
MIXTURES: list[tuple[Any, dict[str, Any]]] = [
    (sw.OPLB, {}),
    (sw.OPLB, {"optimism": "directional"}),
    (sw.SafePosteriorSampling, {"mixtures": True}),
]


def policy(kind: Any, **settings: Any) -> Any:
    told = {"safe_action": sw.SafeAction(cost=BOUND), "threshold": LIMITS, "noise": 0.1, "dimension": D}
    return kind(**{**told, "mean_cost_bound": None, **settings})


def offered(kind: Any, mixtures: bool, round_: int) -> Any:
    rng = np.random.default_rng([3, round_])
    features = rng.uniform(0.0, 1.0, size=(5, D))
    features[2] *= 0.2  # <x₀, μ> ≤ .4
    return sw.FiniteSet(features, safe=2) if mixtures else sw.RaySet(features, safe=features[2])


def mixes(kind: Any, settings: dict[str, Any]) -> bool:
    return kind is sw.OPLB or "mixtures" in settings


def played(agent: sw.Agent, kind: Any, mixtures: bool, first: int, last: int) -> list[Any]:
    """Play rounds with outcomes of a known truth; return the decisions."""
    decisions = []
    for t in range(first, last):
        decision = agent.decide(offered(kind, mixtures, t))
        noise = np.random.default_rng([4, t]).normal(size=1 + M) * 0.1
        seen = THETA @ np.asarray(decision.action) + noise
        agent.learn(decision, reward=float(seen[0]), cost=seen[1:])
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize(("kind", "settings"), [*RAYS, *MIXTURES])
def test_pessimistic_costs_stay_under_their_limits_and_something_is_dared(kind: Any, settings: dict[str, Any]) -> None:
    mixtures = mixes(kind, settings)
    decisions = played(sw.Agent(policy(kind, **settings), seed=5), kind, mixtures, 0, 80)
    for t, decision in enumerate(decisions):
        assert np.all(decision.pessimistic_cost <= decision.thresholds)
        x0, listed = offered(kind, mixtures, t).round_safe_action.features, offered(kind, mixtures, t)
        if mixtures:
            index = decision.action_index
            assert np.array_equal(decision.action, listed.features[index])
            assert decision.probabilities[-1] == 0.0, "the safe action is one of the list, and its share stands there"
            assert decision.probabilities[index] > 0.0
        elif decision.action_index is None:
            assert np.array_equal(decision.action, x0)
        else:
            target = listed.features[decision.action_index]
            assert np.allclose(decision.action, x0 + decision.step_size * (target - x0), atol=1e-15)
    assert sum(decision.message is None for decision in decisions) > 40
    assert all(decision.message is None or "certain" not in decision.message for decision in decisions)


@pytest.mark.parametrize("kind", [sw.LCLUCB, sw.OPLB])
def test_at_first_the_safe_action_is_judged_by_what_was_declared(kind: Any) -> None:
    """Before anything is seen high(x) = β ‖x‖: the step, or the share, follows from u₀ = min(c₀, β ‖x₀‖)."""
    told, actions = policy(kind, ridge=1.0), offered(kind, kind is sw.OPLB, 0)
    beta = math.sqrt(0.1**2 * 2.0 * math.log(3.0 / 0.05) + 1.0)
    dear = beta * np.linalg.norm(actions.features, axis=1)
    today = beta * float(np.linalg.norm(actions.round_safe_action.features))
    decision = told.decide(told.start(), actions)
    for most in (BOUND, {"opt_out": 0.01, "complaint": 0.02}):
        told = policy(kind, ridge=1.0, safe_action=sw.SafeAction(cost=most))
        decision = told.decide(told.start(), actions)
        first = np.minimum([most[name] for name in LIMITS], today)
        if kind is sw.LCLUCB:
            slack, rise = np.array(list(LIMITS.values())) - first, dear[decision.action_index] - first
            assert decision.step_size == pytest.approx(np.min(slack / rise), rel=1e-9)
            assert decision.pessimistic_cost == pytest.approx(first + decision.step_size * rise, rel=1e-9)
        else:
            shares = decision.probabilities[:-1]
            others = np.delete(np.arange(5), 2)
            assert decision.pessimistic_cost == pytest.approx(
                shares[2] * first + shares[others] @ dear[others], rel=1e-9
            )
            assert np.min(decision.thresholds - decision.pessimistic_cost) == pytest.approx(0.0, abs=1e-9)


def test_this_rounds_cost_may_be_tighter_and_leaves_more_room() -> None:
    told = policy(sw.LCLUCB)
    rows = offered(sw.LCLUCB, False, 0)
    steps = [
        told.decide(
            told.start(), sw.RaySet(rows.targets[:1], safe=rows.round_safe_action.features, safe_cost=cost)
        ).step_size
        for cost in (None, [0.1, 0.1], {"complaint": 0.02, "opt_out": 0.02})
    ]
    assert steps[0] < steps[1] < steps[2]


def test_without_a_bound_for_all_rounds_every_set_gives_its_own() -> None:
    told = policy(sw.OPLB, safe_action=sw.SafeAction())
    features = offered(sw.OPLB, True, 0).features
    assert told.decide(told.start(), sw.FiniteSet(features, safe=2, safe_cost=[0.4, 0.5])).message is None
    with refused(sw.InvalidActions, ErrorCode.SAFE_COST_UNKNOWN):
        told.decide(told.start(), sw.FiniteSet(features, safe=2))


@pytest.mark.parametrize(("kind", "settings"), [*RAYS, *MIXTURES])
def test_saved_and_loaded_it_goes_on_to_the_bit(kind: Any, settings: dict[str, Any], tmp_path: Path) -> None:
    mixtures = mixes(kind, settings)
    agent = sw.Agent(policy(kind, **settings), seed=5)
    played(agent, kind, mixtures, 0, 10)
    waiting = agent.decide(offered(kind, mixtures, 10))
    held = agent.decide(offered(kind, mixtures, 11))
    agent.learn(held, reward=0.3, cost=[0.2, 0.1])
    agent.save(tmp_path / "agent.json")
    other = sw.Agent.load(tmp_path / "agent.json", policy(kind, **settings))
    for one in (agent, other):
        one.learn(waiting.round, reward=0.5, cost=[0.1, 0.2])
    after = [played(one, kind, mixtures, 12, 30) for one in (agent, other)]
    assert np.array_equal(agent.state.memory, other.state.memory)
    assert all(np.array_equal(one.action, two.action) for one, two in zip(*after, strict=True))


@pytest.mark.parametrize(
    ("kind", "settings"), [(sw.LCLUCB, {}), (sw.OPLB, {}), (sw.SafePosteriorSampling, {"mixtures": True})]
)
def test_the_order_of_the_verbs_does_not_matter(kind: Any, settings: dict[str, Any]) -> None:
    """An agent's in-place memory is the one that `learn` returns."""
    told, mixtures = policy(kind, **settings), mixes(kind, settings)
    agent, state = sw.Agent(told, seed=5), told.start()
    for t in range(20):
        decision = agent.decide(offered(kind, mixtures, t))
        agent.learn(decision, reward=0.2, cost=[0.1, 0.3])
        state = told.learn(state, decision, sw.Outcome(0.2, [0.1, 0.3]))
    assert np.array_equal(agent.state.memory, state.memory)


def mistold(kind: Any, settings: dict[str, Any], check_assumptions: bool = True) -> tuple[list[Any], Any]:
    """Play where the safe actions cost .3 and are declared to cost .05 at most."""
    mixtures = mixes(kind, settings)
    safe = sw.SafeAction(cost=0.05)
    told = policy(kind, safe_action=safe, threshold=0.6, dimension=2, check_assumptions=check_assumptions, **settings)
    agent, decisions = sw.Agent(told, seed=2), []
    for t in range(400):
        rng = np.random.default_rng([6, t])
        features = np.column_stack([np.ones(3), [0.0, *rng.uniform(0.2, 1.0, size=2)]])
        actions = sw.FiniteSet(features, safe=0) if mixtures else sw.RaySet(features[1:], safe=features[0])
        decision = agent.decide(actions)
        mean = 0.3 + 0.2 * decision.action[1]
        agent.learn(decision, reward=float(0.5 * decision.action[1]), cost=float(mean + 0.1 * rng.normal()))
        decisions.append(decision)
    return decisions, agent


@pytest.mark.long
@pytest.mark.parametrize(("kind", "settings"), [*RAYS, *MIXTURES])
def test_a_bound_below_the_truth_is_noticed_and_stays_noticed(kind: Any, settings: dict[str, Any]) -> None:
    decisions, agent = mistold(kind, settings)
    said = [decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED for decision in decisions]
    first = said.index(True)
    assert first < 300
    assert all(said[first:])
    details = decisions[-1].reason_details.details
    assert [details[name] for name in ("found", "limit", "at_most", "declared")] == [
        Contradiction.SAFE_COST_OF_A_ROUND,
        "cost",
        True,
        0.05,
    ]
    # a safe action of which nothing is known says so too: what was declared of all of them is wrong
    rows = np.array([[0.0, 0.0], [0.0, 1.0]])
    actions = sw.FiniteSet(rows, safe=0) if mixes(kind, settings) else sw.RaySet(rows[1:], safe=rows[0])
    assert agent.decide(actions).reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    blind, _ = mistold(kind, settings, check_assumptions=False)
    assert all(decision.reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED for decision in blind)


@pytest.mark.parametrize(("kind", "settings"), [*RAYS, *MIXTURES])
def test_sets_and_policies_must_agree_on_whose_safe_action_it_is(kind: Any, settings: dict[str, Any]) -> None:
    mixtures = mixes(kind, settings)
    roving, fixed = (
        policy(kind, **settings),
        policy(kind, safe_action=sw.SafeAction(features=np.zeros(D)), dimension=None, **settings),
    )
    named = offered(kind, mixtures, 0)
    bare = type(named)(named.features)
    with refused(sw.InvalidActions, ErrorCode.SAFE_ACTION_MISSING):
        roving.decide(roving.start(), bare)
    with refused(sw.InvalidActions, ErrorCode.SAFE_ACTION_MISSING):
        roving.decide(roving.start(), named.features)
    with refused(sw.InvalidActions, ErrorCode.CONFLICTING_SETTINGS):
        fixed.decide(fixed.start(), named)


def test_policies_that_have_no_safe_action_of_the_round_refuse_sets_that_name_one() -> None:
    actions = offered(sw.OPLB, True, 0)
    told: dict[str, Any] = {"safe_action": sw.SafeAction(features=np.zeros(D), reward=0.0, cost=0.0), "threshold": 0.5}
    with refused(sw.InvalidActions, ErrorCode.CONFLICTING_SETTINGS):
        kernel = sw.KernelOPLB(**told, noise=0.1, kernel=sw.RBF(lengthscale=1.0), norm_bound=1.0)
        kernel.decide(kernel.start(), actions)
    roving = sw.AlwaysSafe(safe_action=sw.SafeAction(cost=0.1), threshold=0.5)
    assert np.array_equal(roving.decide(roving.start(), actions).action, actions.features[2])
    for nothing in (None, range(3), actions.features):
        with refused(sw.InvalidActions, ErrorCode.SAFE_ACTION_MISSING):
            roving.decide(roving.start(), nothing)
    free = sw.LinUCB(noise=0.1)  # it has no safe action that could be another one
    assert free.decide(free.start(), actions).action_index is not None


def test_what_cannot_be_is_refused() -> None:
    features = offered(sw.OPLB, True, 0).features
    for cost, code in {
        0.7: ErrorCode.WRONG_SHAPE,
        (0.3, 0.7): ErrorCode.SAFE_ACTION_OVER_LIMIT,
        (0.3, 0.6): ErrorCode.CONFLICTING_SETTINGS,
        (0.3, np.nan): ErrorCode.NOT_FINITE,
    }.items():
        with refused(sw.InvalidActions, code):
            oplb = policy(sw.OPLB)
            oplb.decide(oplb.start(), sw.FiniteSet(features, safe=2, safe_cost=cost))
    with refused(sw.InvalidActions, ErrorCode.OUT_OF_RANGE):
        sw.FiniteSet(features, safe=5)
    with refused(sw.InvalidActions, ErrorCode.DIMENSION_MISMATCH):
        sw.RaySet(features, safe=[0.0, 0.0, 0.0])
    with refused(sw.InvalidActions, ErrorCode.SAFE_ACTION_INVALID):
        sw.RaySet(features, safe=0)
    with refused(sw.InvalidActions, ErrorCode.SAFE_ACTION_MISSING):
        sw.FiniteSet(features, safe_cost=0.1)
    with refused(sw.InvalidProblem, ErrorCode.MISSING_VALUE):
        policy(sw.OPLB, dimension=None)
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        policy(sw.OPLB, safe_action=sw.SafeAction(features=np.zeros(4)), dimension=3)
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        policy(sw.LCLUCB, cost_confidence_scale=2.0)
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        policy(sw.SafePosteriorSampling, bounded_outcomes=True)
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        policy(sw.OPLB, method="socp")
    with refused(sw.InvalidProblem, ErrorCode.SAFE_COST_UNKNOWN):
        policy(sw.OPLB, threshold={"opt_out": sw.TimesSafe(1.1), "complaint": 0.7})
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_OVER_LIMIT):
        policy(sw.OPLB, safe_action=sw.SafeAction(cost={"opt_out": 0.6, "complaint": 0.1}))
    with refused(sw.InvalidActions, ErrorCode.SAFE_ACTION_MISSING):
        told = policy(sw.LCLUCB)
        told.decide(told.start(), sw.BallSet(1.0))
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        sw.KernelOPLB(
            safe_action=sw.SafeAction(cost=0.1),
            threshold=0.5,
            noise=0.1,
            kernel=sw.RBF(lengthscale=1.0),
            norm_bound=1.0,
        )
    with refused(sw.InvalidProblem, ErrorCode.SAFE_ACTION_INVALID):
        sw.OPB(arms=2, safe_action=sw.SafeAction(cost=0.1), threshold=0.5)


def test_a_log_is_learned_from_though_it_names_no_safe_actions() -> None:
    agent = sw.Agent(policy(sw.OPLB), seed=1)
    rows = RNG.uniform(size=(300, D))
    agent.learn_log(rows, rows @ THETA[0], rows @ THETA[1:].T)
    wide, narrow = (one.decide(offered(sw.OPLB, True, 0)) for one in (sw.Agent(policy(sw.OPLB), seed=1), agent))
    assert narrow.optimistic_reward < wide.optimistic_reward
    assert narrow.message is None


def test_the_table_and_the_record_speak_of_the_rounds_safe_action() -> None:
    told = policy(sw.OPLB)
    decision = told.decide(told.start(), offered(sw.OPLB, True, 0))
    assert "safe action" in decision.explain()
    assert decision.to_dict()["action_index"] == decision.action_index
