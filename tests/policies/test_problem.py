"""A problem, said once: in names and the user's units from the first call to the last."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused, refuses

import stagewise as sw
from stagewise.problem.errors import ErrorCode

REWARD, LIMITS = sw.Reward("click"), {"opt_out": sw.Limit(0.02, safe_bound=0.001, model="rates")}
USER = {"age": 30.0, "tenure": 0.1, "country": "NZ"}


def problem(**changes: Any) -> sw.Problem:
    given: dict[str, Any] = {
        "action_names": ["nothing", "digest", "offer"],
        "safe_name": "nothing",
        "context": {"age": (18, 98), "tenure": (-1, 1)},
        "reward": sw.Reward("spend", low=-10.0, high=30.0, safe_bound=0.0),
        "limits": {
            "opt_out": sw.Limit(0.02, safe_bound=0.001, by="country"),
            "minutes": sw.Limit(sw.AtLeast(20.0), low=0.0, high=60.0, safe_bound=30.0, model="rates"),
        },
    }
    return sw.Problem(**given | changes)


def test_limits_are_a_mapping_or_a_list_with_names() -> None:
    """What a reader guesses works: a bare name, number or `AtLeast`, one limit, a list of limits."""
    arms: Any = {"action_names": ["nothing", "offer"], "safe_name": "nothing"}
    limits = {"opt_out": sw.Limit(0.02), "sales": sw.Limit(sw.AtLeast(0.3))}
    plain = sw.Problem(**arms, reward=sw.Reward("click"), limits=limits).to_dict()
    listed: Any = [sw.Limit(0.02, name="opt_out"), sw.Limit(sw.AtLeast(0.3), name="sales")]
    bare: Any = {"opt_out": 0.02, "sales": sw.AtLeast(0.3)}
    for given in (listed, tuple(listed), bare):
        assert sw.Problem(**arms, reward="click", limits=given).to_dict() == plain
    assert list(sw.Problem(**arms, limits=listed[0]).limits) == ["opt_out"]


def test_what_is_chosen_is_told_and_why() -> None:
    text = str(problem())
    assert "'nothing' is safe" in text
    assert "spend" in text
    assert "linear in the context, action by action: there is a context" in text
    assert "one rate for each action in every country: promised to the average user of every country" in text
    assert "at least 20" in text
    without = str(sw.Problem(action_names=["a", "b"], safe_name="a", reward=REWARD, limits=LIMITS))
    assert "linear" not in without


def test_every_choice_can_be_overruled() -> None:
    said = problem(reward=sw.Reward("spend", model="rates"), limits={"opt_out": sw.Limit(0.02, model="linear")})
    assert said.policy().models == {"reward": "rates", "opt_out": "linear"}
    assert problem(settings={"posterior_scale": 0.0}).policy().posterior_scale == 0.0


def test_numbers_are_scaled_by_their_ranges_and_segments_by_name() -> None:
    said = problem()
    row = said.policy().rows_for(said.encode_context(USER))[2]
    assert row[:4] == pytest.approx([2.0, 1.0, 2.0 * 12.0 / 80.0 - 1.0, 0.1])
    other = said.policy().rows_for(said.encode_context(USER | {"country": "AU"}))[2]
    assert row[4] != other[4]
    assert said.encode_context(USER, ["offer"]).get_eligible(3).tolist() == [False, False, True]


def test_a_number_a_hair_beyond_its_range_is_told_as_it_is() -> None:
    said = problem()
    name, (_, high) = said.ranges[0]
    with refused(sw.InvalidActions, ErrorCode.CONTEXT_OUT_OF_RANGE):
        said.encode_context(USER | {name: high + 1e-7})


def test_decisions_speak_in_names_and_the_users_units() -> None:
    agent = sw.Agent(problem(), seed=1)
    decision: Any = agent.decide(USER)
    assert decision.action == "nothing"
    assert decision.probabilities == {"nothing": 1.0, "digest": 0.0, "offer": 0.0}
    assert decision.limits["minutes"].threshold == pytest.approx(20.0)
    assert decision.limits["minutes"].pessimistic_cost == pytest.approx(30.0)
    assert decision.limits["opt_out"].pessimistic_cost == pytest.approx(0.001)
    assert "nothing (safe)" in decision.explain()
    assert "minutes ≥ 20" in decision.explain()
    told = decision.to_dict()
    assert (told["action"], told["limits"]["opt_out"]["threshold"]) == ("nothing", 0.02)


def test_outcomes_are_learned_scaled_and_in_the_limits_direction() -> None:
    policy = problem().policy()
    assert policy.values(10.0, {"opt_out": 1, "minutes": 15.0}) == pytest.approx([0.5, 1.0, -0.25])
    assert policy.decode_outcome(policy.values(10.0, [0.0, 15.0])) == pytest.approx([10.0, 0.0, 15.0])


def test_signals_come_apart_by_name_and_windows_close() -> None:
    said = problem(
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.02, safe_bound=0.001, window="7d", missing=0.0, model="rates")},
        context=(),
    )
    agent = sw.Agent(said, seed=1)
    first, second = agent.decide(now=0.0), agent.decide(now=10.0)
    agent.learn(second.id, click=True, now=20.0)
    agent.learn(first.id, click=False, now=30.0)
    assert (agent.pending_count, agent.buffered_count) == (2, 0)
    assert agent.expire_pending(now=7 * 86400.0 + 5.0) == 1
    assert agent.expire_pending(now=7 * 86400.0 + 10.0) == 1
    assert agent.pending_count == 0


def test_an_agent_of_a_problem_is_saved_and_goes_on_to_the_bit(tmp_path: Path) -> None:
    agents, chance, told = [sw.Agent(problem(), seed=3)], np.random.default_rng(0), [[], []]
    for round_ in range(40):
        if round_ == 20:
            agents[0].save(tmp_path / "agent.json")
            agents.append(sw.Agent.load(tmp_path / "agent.json"))
        user = {
            "age": float(chance.uniform(18, 98)),
            "tenure": float(chance.uniform(-1, 1)),
            "country": str(round_ % 7),
        }
        outcome = chance.random(3)
        for agent, log in zip(agents, told, strict=False):
            decision = agent.decide(user)
            log.append(decision.to_dict())
            agent.learn(decision.id, spend=30.0 * outcome[0], minutes=60.0 * outcome[1])
            agent.learn(decision.id, opt_out=outcome[2] < 0.1)
    assert told[0][20:] == told[1]


def test_plain_values_and_toml_tell_the_same_problem(tmp_path: Path) -> None:
    said = problem()
    again = sw.Problem.from_dict(said.to_dict())
    assert again.to_dict() == said.to_dict()
    assert str(again) == str(said)
    loaded = sw.Problem.load(Path(__file__).parents[2] / "examples" / "templates.toml")
    assert loaded.safe_name == "today"
    assert loaded.windows["complaint"].seconds == 7 * 86400.0


def test_an_agent_goes_on_with_one_action_more(tmp_path: Path) -> None:
    agent, chance = sw.Agent(problem(), seed=3), np.random.default_rng(1)
    for round_ in range(60):
        decision = agent.decide(USER | {"country": str(round_ % 20)})
        agent.learn(decision.id, spend=5.0, opt_out=chance.random() < 0.01, minutes=40.0)
    waiting = agent.decide(USER)
    before = agent.policy.decide(agent.state, USER)  # type: ignore[attr-defined]
    agent.add_action("sale")
    after = agent.policy.decide(agent.state, USER)
    assert list(after.probabilities) == ["nothing", "digest", "offer", "sale"]
    assert after.limits["opt_out"].pessimistic_cost == pytest.approx(before.limits["opt_out"].pessimistic_cost)
    one, other = (made._round_result.workspace.bounds for made in (before, after))
    assert np.array_equal(one[:, :2, :3], other[:, :2, :3])
    agent.learn(waiting.id, spend=1.0, opt_out=False, minutes=30.0)
    assert agent.pending_count == 0
    agent.save(tmp_path / "agent.json")
    assert list(sw.Agent.load(tmp_path / "agent.json").decide(USER).probabilities)[-1] == "sale"
    refuses(lambda: agent.add_action("offer"), sw.InvalidProblem, ErrorCode.DUPLICATE_NAME)
    assert list(agent.decide(USER).probabilities)[-1] == "sale"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"safe_name": "nothin"}, [ErrorCode.UNKNOWN_ACTION, "nothin", "'digest'"]),
        ({"action_names": ["nothing"]}, [ErrorCode.MISSING_VALUE]),
        ({"action_names": ["nothing", "nothing"]}, [ErrorCode.DUPLICATE_NAME]),
        ({"action_names": "nothing"}, [ErrorCode.WRONG_TYPE]),
        ({"reward": 0.5}, [ErrorCode.WRONG_TYPE]),
        ({"limits": {}}, [ErrorCode.WRONG_TYPE]),
        ({"limits": {"opt_out": "2 %"}}, [ErrorCode.WRONG_TYPE]),
        ({"limits": [sw.Limit(0.02)]}, [ErrorCode.WRONG_TYPE, "name=..."]),
        ({"limits": [sw.Limit(0.02, name="a"), sw.Limit(0.1, name="a")]}, [ErrorCode.DUPLICATE_NAME]),
        ({"limits": {"opt_out": sw.Limit(0.02, name="a")}}, [ErrorCode.CONFLICTING_SETTINGS, "'a'"]),
        ({"limits": {"opt_out": sw.Limit(2.0, model="rates")}}, [ErrorCode.LIMIT_NEVER_BINDS, "2 % is 0.02"]),
        ({"limits": {"opt_out": sw.Limit(0.02, safe_bound=0.03, model="rates")}}, [ErrorCode.SAFE_ACTION_OVER_LIMIT]),
        ({"limits": {"opt_out": sw.Limit(sw.TimesSafe(1.1), model="rates")}}, [ErrorCode.SAFE_COST_UNKNOWN]),
        ({"context": {"age": (3, 3)}}, [ErrorCode.OUT_OF_RANGE]),
        ({"context": ["age", "spend"]}, [ErrorCode.DUPLICATE_NAME]),
        ({"settings": {"delta": 0.1}}, [ErrorCode.UNKNOWN_SETTING]),
        ({"delta": 5.0}, [ErrorCode.OUT_OF_RANGE, "delta"]),
        ({"context": (), "reward": sw.Reward("spend", model="linear")}, [ErrorCode.CONFLICTING_SETTINGS]),
    ],
)
def test_problems_that_cannot_be_meant_are_refused(changes: dict[str, Any], words: list[str]) -> None:
    refuses(lambda: problem(**changes), sw.InvalidProblem, *words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sw.Limit(at_most=0.02, model="rates"), [ErrorCode.UNKNOWN_SETTING, "write Limit(0.02, ...)"]),  # type: ignore[call-arg]
        (lambda: sw.Limit(at_least=0.9, model="rates"), [ErrorCode.UNKNOWN_SETTING, "write Limit(AtLeast(0.9), ...)"]),  # type: ignore[call-arg]
        (lambda: sw.Reward(nam="click"), [ErrorCode.UNKNOWN_SETTING, "did you mean 'name'?"]),  # type: ignore[call-arg]
        (lambda: problem(contxt=["age"]), [ErrorCode.UNKNOWN_SETTING, "did you mean 'context'?"]),
        (lambda: problem(limits={"x": sw.Limit(0.02, by="age")}), [ErrorCode.DUPLICATE_NAME]),
        (
            lambda: problem(limits={"x": sw.Limit(200, high=1000, safe_bound=500, model="rates")}),
            [ErrorCode.SAFE_ACTION_OVER_LIMIT],
        ),
        (
            lambda: problem(limits={"x": sw.Limit(sw.AtLeast(20), high=60, safe_bound=10, model="rates")}),
            [ErrorCode.SAFE_ACTION_OVER_LIMIT],
        ),
        (lambda: sw.Limit(0.02, window=-7, model="rates"), [ErrorCode.OUT_OF_RANGE, "-7"]),
        (lambda: sw.Agent("problem.toml"), [ErrorCode.WRONG_TYPE, "'problem.toml'"]),  # type: ignore[arg-type]
        (lambda: sw.Limit(0.1, low=1.0, high=0.0, model="rates"), [ErrorCode.OUT_OF_RANGE]),
        (lambda: sw.Limit(0.1, safe_bound=2.0, model="rates"), [ErrorCode.OUT_OF_RANGE]),
        (lambda: sw.Limit(0.1, window="7 fortnights", model="rates"), [ErrorCode.INVALID_TIME]),
        (lambda: sw.Limit(0.1, missing=0.0, model="rates"), [ErrorCode.CONFLICTING_SETTINGS]),
        (lambda: sw.Limit(0.1, by="country", model="linear"), [ErrorCode.CONFLICTING_SETTINGS]),
        (lambda: sw.Reward(""), [ErrorCode.INVALID_NAME]),
        (lambda: sw.Problem.from_dict({"action_names": ["a", "b"]}), [ErrorCode.MISSING_VALUE]),
        (
            lambda: sw.Problem.from_dict({"action_naems": ["a", "b"]}),
            [ErrorCode.UNKNOWN_SETTING, "did you mean 'action_names'"],
        ),
        (
            lambda: sw.Problem.from_dict(
                {
                    "action_names": ["a", "b"],
                    "safe_name": "a",
                    "reward": {"name": "r"},
                    "limits": {"x": {"at_mots": 0.1}},
                }
            ),
            [ErrorCode.CONFLICTING_SETTINGS, "at_most"],
        ),
    ],
)
def test_declarations_that_cannot_be_meant_are_refused(make: Any, words: list[str]) -> None:
    refuses(make, sw.InvalidProblem, *words)


@pytest.mark.parametrize(
    ("user", "only", "words"),
    [
        ({"age": 30.0, "tenure": 0.1}, None, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"agee": 1.0}, None, [ErrorCode.UNKNOWN_CONTEXT_FIELD, "'agee'", "did you mean 'age'"]),
        (USER | {"age": 200.0}, None, [ErrorCode.CONTEXT_OUT_OF_RANGE]),
        (USER | {"age": float("nan")}, None, [ErrorCode.MISSING_CONTEXT_FIELD, "age"]),
        (USER | {"age": np.float32("nan")}, None, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"age": None}, None, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"country": None}, None, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"country": float("nan")}, None, [ErrorCode.MISSING_CONTEXT_FIELD]),
        (USER | {"country": np.float32(1.5)}, None, [ErrorCode.WRONG_TYPE]),
        (USER | {"tenure": np.float32(1.5)}, None, [ErrorCode.CONTEXT_OUT_OF_RANGE]),
        (USER | {"age": "old"}, None, [ErrorCode.WRONG_TYPE, "age"]),
        (USER | {"country": 1.5}, None, [ErrorCode.WRONG_TYPE, "country"]),
        ([30.0, 0.1, 4.0], None, [ErrorCode.WRONG_TYPE]),
        (USER, ["digset"], [ErrorCode.UNKNOWN_ACTION, "did you mean 'digest'"]),
        (USER, "digest", [ErrorCode.WRONG_TYPE]),
        (USER, [], [ErrorCode.INVALID_ACTION_SET]),
    ],
)
def test_contexts_are_checked_by_name_in_every_call_and_nothing_changes(user: Any, only: Any, words: list[str]) -> None:
    agent = sw.Agent(problem(), seed=1)
    refuses(lambda: agent.decide(user, only=only), sw.InvalidActions, *words)
    assert agent.round == 0


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        ({"clik": True}, [ErrorCode.UNKNOWN_SIGNAL, "clik", "spend"]),
        ({"spend": 31.0}, [ErrorCode.OUTCOME_OUT_OF_RANGE, "31"]),
        ({"opt_out": 2.0}, [ErrorCode.OUTCOME_OUT_OF_RANGE, "percentage"]),
        ({"spend": 1.0, "opt_out": 10**400}, [ErrorCode.OUT_OF_RANGE]),
        ({"spend": 1.0, "opt_out": "yes"}, [ErrorCode.WRONG_TYPE]),
        ({"reward": {"spend": 1.0, "opt_out": 0}}, [ErrorCode.WRONG_TYPE]),
        ({}, [ErrorCode.OUTCOME_MISSING]),
    ],
)
def test_outcomes_are_checked_by_name_and_nothing_changes(signals: dict[str, Any], words: list[str]) -> None:
    agent = sw.Agent(problem(), seed=1)
    decision, before = agent.decide(USER), agent.state.memory
    refuses(lambda: agent.learn(decision.id, **signals), sw.InvalidOutcome, *words)
    assert (agent.pending_count, agent.buffered_count) == (1, 0)
    assert np.array_equal(agent.state.memory, before)


@pytest.mark.parametrize("seen", [(True, False), (1, 0), (1.0, 0.0), (np.bool_(True), np.float32(0.0))])
def test_an_outcome_by_name_is_the_same_whole_and_signal_by_signal(seen: Any) -> None:
    told = {
        "reward": sw.Reward("click", low=-1.0, high=3.0),
        "limits": {"opt_out": sw.Limit(0.4, safe_bound=0.1, model="rates")},
    }
    problem = sw.Problem(action_names=["nothing", "offer"], safe_name="nothing", context=["age", "tenure"], **told)
    whole, apart = sw.Agent(problem, seed=3), sw.Agent(problem, seed=3)
    for round_ in range(5):
        user = {"age": 0.1 * round_, "tenure": -0.5}
        one, other = whole.decide(user), apart.decide(user)
        whole.learn(one.id, click=seen[0], opt_out=seen[1])
        apart.learn(other.id, opt_out=seen[1])
        apart.learn(other.id, click=seen[0])
    assert np.array_equal(whole.state.memory, apart.state.memory)
    assert (whole.pending_count, whole.buffered_count) == (apart.pending_count, apart.buffered_count) == (0, 0)
