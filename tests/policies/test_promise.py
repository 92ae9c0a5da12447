"""A limit says to whom it is promised, where users differ; and so does everything that shows the limit."""

import json
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.policies.problem_policy import choose_batch
from stagewise.problem.division import join_segments
from stagewise.problem.errors import ErrorCode
from stagewise.problem.signals import Promise, describe_promise
from stagewise.records.random_key import RandomKey

BASE: dict[str, Any] = {"action_names": ["plain", "offer"], "safe_name": "plain", "reward": sw.Reward("click")}
BOTH = sw.Problem(**BASE, limits={"opt_out": sw.Limit(0.05, safe_bound=0.01, by=["country", "plan"])}, context=["age"])


def keen(**promise: Any) -> sw.Problem:
    """Keen users click the offer and leave over it: whoever chooses by clicks breaks the rate of the action."""
    return sw.Problem(**BASE, context={"keen": (0, 1)}, limits={"opt_out": sw.Limit(0.015, safe_bound=0.01, **promise)})


def test_keen_users_are_refused_until_somebody_says_to_whom() -> None:
    with pytest.raises(sw.InvalidProblem) as found:
        keen()
    assert found.value.code is ErrorCode.PROMISE_NOT_CHOSEN
    assert found.value.details["name"] == "opt_out"
    assert "'linear'" in found.value.details["forms"]
    kinds = [keen(**promise).choices["opt_out"].promise for promise in ({"model": "rates"}, {"model": "linear"})]
    assert kinds == [Promise.AVERAGE_USER, Promise.EVERY_USER]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"limits": {"opt_out": sw.Limit(0.05)}}, False),
        ({"limits": {"opt_out": sw.Limit(0.05)}, "context": ["age"]}, True),
        ({"limits": {"opt_out": sw.Limit(0.05)}, "reward": sw.Reward("click", by="country")}, True),
        ({"limits": {"opt_out": sw.Limit(0.05), "other": sw.Limit(0.05, by="country")}}, True),
        ({"limits": {"opt_out": sw.Limit(0.05, by="country")}, "context": ["age"]}, False),
    ],
)
def test_a_promise_is_needed_exactly_where_there_is_a_context(settings: dict[str, Any], refused: bool) -> None:
    if not refused:
        assert sw.Problem(**{**BASE, **settings}).choices["opt_out"].promise is not None
        return
    with pytest.raises(sw.InvalidProblem) as found:
        sw.Problem(**{**BASE, **settings})
    assert found.value.code is ErrorCode.PROMISE_NOT_CHOSEN


def test_a_file_without_a_promise_is_refused_too() -> None:
    content = keen(model="rates").to_dict()
    del content["limits"]["opt_out"]["model"]
    with pytest.raises(sw.InvalidProblem) as found:
        sw.Problem.from_dict(content)
    assert found.value.code is ErrorCode.PROMISE_NOT_CHOSEN


@pytest.mark.parametrize("promise", [{"model": "rates"}, {"model": "linear"}, {"by": "country"}])
def test_everything_that_shows_a_limit_says_to_whom_it_is_promised(promise: dict[str, Any]) -> None:
    problem = keen(**promise)
    words, agent = problem.promises["opt_out"], sw.Agent(problem, seed=1)
    user = {"keen": 0.5} | ({"country": "NZ"} if "by" in promise else {})
    for _ in range(3):
        decision = agent.decide(user)
        agent.learn(decision.id, click=1.0, opt_out=0.0)
    for text in (str(problem), str(decision.explain()), str(agent.report())):
        assert words.split(",")[0] in text


def test_a_certificate_says_to_whom() -> None:
    world = sw.ContextWorld(reward=[[0.1, 0.0], [0.2, 0.1]], cost=[[0.01, 0.0], [0.02, 0.01]], features="plain")
    problem = sw.Problem(**BASE, context=["age"], limits={"opt_out": sw.Limit(0.2, safe_bound=0.05, model="linear")})
    plan: Any = {"rounds": 3, "runs": 2, "backend": "python", "progress": False}
    content = sw.certify(problem, world, **plan).content
    assert content["thresholds"][0]["promise"] == Promise.EVERY_USER


def test_promises_have_words_of_their_own() -> None:
    assert len({describe_promise(promise, "risk", "linear") for promise in Promise}) == len(Promise) == 4


# Several columns are one segment.


def test_one_column_in_a_list_is_that_column() -> None:
    assert sw.Limit(0.05, by=["country"]) == sw.Limit(0.05, by="country")


@pytest.mark.parametrize("by", [[], ["a", "a"], [""], 3, ["a", 3]])
def test_columns_that_cannot_be_are_refused(by: Any) -> None:
    with pytest.raises(sw.InvalidProblem):
        sw.Limit(0.05, by=by)


def test_a_combination_is_a_segment_of_its_own_and_names_cannot_run_together() -> None:
    names = [("a, b", "c"), ("a", "b, c"), ("a", "b"), ("b", "a"), ("a\\", "b"), ("a\\, b", "c")]
    assert len({join_segments(name) for name in names}) == len(names)
    keys = [
        BOTH.encode_context({"age": 0.0, "country": country, "plan": plan}).segments.tolist() for country, plan in names
    ]
    assert len({tuple(key) for key in keys}) == len(names)


def test_combinations_are_the_same_by_hand_in_batches_in_frames_and_after_a_file(tmp_path: Any) -> None:
    problem = sw.Problem.from_dict(json.loads(json.dumps(BOTH.to_dict())))
    assert problem.to_dict() == BOTH.to_dict()
    rng = np.random.default_rng(3)
    users: list[dict[str, Any]] = [
        {
            "age": float(rng.uniform(-1, 1)),
            "country": str(rng.choice(["NZ", "AU"])),
            "plan": str(rng.choice(["a", "b"])),
        }
        for _ in range(60)
    ]
    outcomes = [{"click": float(rng.random() < 0.3), "opt_out": float(rng.random() < 0.05)} for _ in users]
    by_hand, by_frame = sw.Agent(BOTH, seed=2), sw.Agent(problem, seed=2)
    for user, outcome in zip(users, outcomes, strict=True):
        decision = by_hand.decide(user, only=["offer"])
        by_hand.learn(decision.id, **outcome)
    actions = {"action": ["plain"] * 60}
    columns = {name: [user[name] for user in users] for name in users[0]}
    by_frame.learn_log_frame({**actions, **columns, **{name: [one[name] for one in outcomes] for name in outcomes[0]}})
    rows = by_frame.report().segments
    assert {one.by for one in rows} == {"country and plan"}
    assert {one.segment for one in rows} == {f"{country}, {plan}" for country in ("NZ", "AU") for plan in "ab"}
    policy, state = problem.policy(), by_frame.state
    contexts, draws = [problem.encode_context(user) for user in users], [RandomKey(seed=4, round=i) for i in range(60)]
    for context, draw, one in zip(contexts, draws, choose_batch(policy, state, contexts, draws), strict=True):
        assert one is not None
        assert one.odds == list(policy.choose(state, context, draw).probabilities.values())  # type: ignore[attr-defined]
    by_frame.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json", problem)
    assert {one.segment for one in again.report().segments} == {one.segment for one in rows}


def test_a_log_is_checked_in_every_combination() -> None:
    rng = np.random.default_rng(5)
    rows = 6_000
    country, plan = rng.choice(["NZ", "AU"], rows), rng.choice(["a", "b"], rows)
    bad = (country == "NZ") & (plan == "b")
    log = {
        "action": np.array(["plain", "offer"], dtype=object)[rng.integers(0, 2, rows)],
        **{"age": rng.uniform(-1, 1, rows), "country": country, "plan": plan},
        "click": (rng.random(rows) < 0.2) * 1.0,
        "opt_out": (rng.random(rows) < np.where(bad, 0.2, 0.005)) * 1.0,
    }
    report = sw.check_log(log, BOTH)
    assert any("NZ, b" in str(finding) for finding in report.findings if finding.verdict == "contradicts")
