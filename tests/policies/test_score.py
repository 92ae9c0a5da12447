"""Limits by the buckets of a risk score: what is declared, read, refused, decided, saved and shown."""

from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.signals import Promise

ACTIONS = ["nothing", "digest", "offer"]
FITTED = sw.RiskScore("fitted", weights={"age": 0.02, "opens": -1.0}, cuts=[0.5, 1.0, 1.5], rows_digest="ab")
SCORES: dict[str, Any] = {
    "column": "risk",
    "cuts": sw.RiskScore("risk", cuts=[0.02, 0.1, 0.4]),
    "another range": sw.RiskScore("risk", buckets=4, low=-3.0, high=5.0),
    "a number too": sw.RiskScore("opens", low=-1.0, high=1.0, buckets=5, monotone=False, version=2),
    "fitted": FITTED,
}


def problem(score: Any = "risk", **settings: Any) -> sw.Problem:
    limits = {"opt_out": sw.Limit(0.02, safe_bound=0.0, score=score)}
    context = {"age": (18, 99), "opens": (-1, 1)}
    return sw.Problem(
        action_names=ACTIONS, safe_name="nothing", context=context, reward=sw.Reward("click"), limits=limits, **settings
    )


def frame(rows: int, seed: int = 0) -> dict[str, Any]:
    """Return a log whose opt-outs grow with the risk."""
    random = np.random.default_rng(seed)
    risk, action = random.uniform(0.0, 1.0, rows), np.array(ACTIONS)[random.integers(0, 3, rows)]
    opt_out = (random.random(rows) < 0.08 * risk) & (action != "nothing")
    clicks = random.random(rows) < np.select([action == "offer", action == "digest"], [0.5, 0.3], 0.05)
    return {
        "action": action, "age": random.uniform(18, 99, rows), "opens": random.uniform(-1, 1, rows), "risk": risk,
        "click": clicks.astype(float), "opt_out": opt_out.astype(float),
    }  # fmt: skip


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_a_problem_with_a_score_is_what_its_file_says(score: Any) -> None:
    made = problem(score)
    content = made.to_dict()
    again = sw.Problem.from_dict(content)
    assert again.to_dict() == content
    assert again.limits == made.limits
    assert made.choices["opt_out"].promise is Promise.EVERY_BUCKET
    assert made.policy().promises == {"opt_out": Promise.EVERY_BUCKET}


def test_a_column_is_asked_for_and_a_sum_is_not() -> None:
    assert problem("risk").context_names == ("age", "opens", "risk")
    for score in (FITTED, SCORES["a number too"]):
        assert problem(score).context_names == ("age", "opens")


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_buckets_of_columns_are_those_of_single_users(score: Any) -> None:
    made, users = problem(score), frame(200)
    columns = {name: np.asarray(users[name]) for name in made.context_names}
    many = made.encode_columns(columns, 200).segments[:, 0]
    alone = [
        made.encode_context(dict(zip(columns, row, strict=True))).segments[0]
        for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    assert many.tolist() == alone
    assert set(many) <= set(range(len(made.limits["opt_out"].score.bucket_names)))  # type: ignore[union-attr]


def test_a_column_divides_one_limit_and_counts_in_the_score_of_another() -> None:
    score = sw.RiskScore("risk", weights={"is_new": 0.5, "age": 0.01}, cuts=[0.5, 0.8])
    made = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        context={"is_new": sw.Boolean(), "age": sw.Number(18, 99)},
        limits={
            "opt_out": sw.Limit(0.02, safe_bound=0.0, by="is_new"),
            "complaint": sw.Limit(0.02, safe_bound=0.0, score=score),
        },
    )  # fmt: skip
    users = {"user_id": [1, 2, 3], "is_new": [True, False, True], "age": [30.0, 30.0, 20.0]}
    rows = [dict(zip(users, row, strict=True)) for row in zip(*users.values(), strict=True)]
    alone = [made.encode_context({name: row[name] for name in made.context}).segments.tolist() for row in rows]
    assert made.encode_columns(users, 3).segments.tolist() == alone
    names = [[one.get_segment_name(int(key)) for one, key in zip(made.divisions, user, strict=True)] for user in alone]
    assert [name[0] for name in names] == ["True", "False", "True"]
    assert [user[1] for user in alone] == [2, 0, 1]
    assert sw.Agent(made, seed=1).decide_frame(users)["error"].tolist() == [None] * 3


def test_a_cut_begins_its_bucket_and_the_ends_are_inside() -> None:
    made = problem(sw.RiskScore("risk", cuts=[0.1, 0.3]))
    found = [
        made.encode_context({"age": 30.0, "opens": 0.0, "risk": risk}).segments[0] for risk in (0, 0.1, 0.29, 0.3, 1)
    ]
    assert found == [0.0, 1.0, 1.0, 2.0, 2.0]
    division = made.get_division("opt_out")
    assert division is not None
    assert [division.get_segment_name(i) for i in range(3)] == ["0 to 0.1", "0.1 to 0.3", "0.3 to 1"]
    assert problem(FITTED).limits["opt_out"].score.bucket_names[0] == "below 0.5"  # type: ignore[union-attr]


@pytest.mark.parametrize("risk", [1.01, -0.2, float("nan"), None, "high"])
def test_a_score_outside_its_range_is_refused_and_changes_nothing(risk: Any) -> None:
    agent = sw.Agent(problem(), seed=1)
    with pytest.raises(StagewiseError):
        agent.decide({"age": 30.0, "opens": 0.0, "risk": risk})
    assert agent.round == 0
    with refused(sw.InvalidActions, ErrorCode.MISSING_CONTEXT_FIELD):
        agent.decide({"age": 30.0, "opens": 0.0})


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"cuts": [0.3, 0.2]}, ErrorCode.OUT_OF_RANGE),
        ({"cuts": []}, ErrorCode.OUT_OF_RANGE),
        ({"cuts": [0.5, 1.0]}, ErrorCode.OUT_OF_RANGE),
        ({"cuts": [0.5], "buckets": 3}, ErrorCode.CONFLICTING_SETTINGS),
        ({"buckets": 1}, ErrorCode.OUT_OF_RANGE),
        ({"buckets": 33}, ErrorCode.OUT_OF_RANGE),
        ({"low": 1.0}, ErrorCode.OUT_OF_RANGE),
        ({"version": 0}, ErrorCode.OUT_OF_RANGE),
        ({"digest": "ab"}, ErrorCode.UNUSED_SETTING),
        ({"weights": {"age": 1.0}, "cuts": [1.0], "digest": "ab"}, ErrorCode.DIGEST_MISMATCH),
        ({"weights": {"age": 1.0}}, ErrorCode.MISSING_VALUE),
        ({"weights": {"age": 1.0}, "cuts": [1.0], "low": 0.0}, ErrorCode.UNUSED_SETTING),
        ({"bucket": 3}, ErrorCode.UNKNOWN_SETTING),
    ],
)
def test_a_score_that_cannot_be_is_refused(settings: dict[str, Any], code: ErrorCode) -> None:
    with refused(sw.InvalidProblem, code):
        sw.RiskScore("risk", **settings)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: sw.Limit(0.02, score="risk", by="country"), ErrorCode.CONFLICTING_SETTINGS),
        (lambda: sw.Limit(0.02, score="risk", model="linear"), ErrorCode.CONFLICTING_SETTINGS),
        (lambda: problem(sw.RiskScore("sum", weights={"income": 1.0}, cuts=[1.0])), ErrorCode.UNKNOWN_NAME),
        (lambda: problem(sw.RiskScore("sum", weights={"age=18": 1.0}, cuts=[1.0])), ErrorCode.UNKNOWN_NAME),
        (lambda: problem("opens"), ErrorCode.OUT_OF_RANGE),  # the context's range is another
        (lambda: problem("click"), ErrorCode.DUPLICATE_NAME),
    ],
)
def test_a_problem_that_contradicts_its_score_is_refused(make: Any, code: ErrorCode) -> None:
    with refused(sw.InvalidProblem, code):
        make()


def test_two_limits_share_a_score_or_have_two() -> None:
    limits = {name: sw.Limit(0.02, safe_bound=0.0, score=score) for name, score in (("a", "risk"), ("b", "risk"))}
    told: dict[str, Any] = {"action_names": ACTIONS, "safe_name": "nothing", "reward": sw.Reward("click")}
    assert len(sw.Problem(**told, limits=limits).divisions) == 1
    limits["b"] = sw.Limit(0.02, safe_bound=0.0, score="other")
    assert sw.Problem(**told, limits=limits).context_names == ("risk", "other")
    limits["b"] = sw.Limit(0.02, safe_bound=0.0, score=sw.RiskScore("risk", buckets=3))
    with refused(sw.InvalidProblem, ErrorCode.DUPLICATE_NAME):
        sw.Problem(**told, limits=limits)


def test_every_bucket_is_bounded_by_itself_and_those_above(tmp_path: Any) -> None:
    agent = sw.Agent(problem(sw.RiskScore("risk", buckets=4)), seed=2)
    agent.learn_log_frame(frame(1500))
    sent = []
    for risk in (0.1, 0.3, 0.6, 0.9):
        decision = agent.decide({"age": 50.0, "opens": 0.1, "risk": risk})
        assert decision.limits["opt_out"].pessimistic_cost <= 0.02 + 1e-12
        sent.append(1.0 - decision.probabilities["nothing"])
    assert sent[0] > sent[3] > 0.0
    text = str(agent.report())
    assert "opt_out by risk" in text
    assert text.index("0 to 0.25") < text.index("0.75 to 1")
    agent.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json")
    user = {"age": 30.0, "opens": 0.5, "risk": 0.2}
    assert again.decide(user).probabilities == agent.decide(user).probabilities


def test_an_action_that_is_added_leaves_what_was_learned() -> None:
    agent = sw.Agent(problem(sw.RiskScore("risk", buckets=4)), seed=2)
    agent.learn_log_frame(frame(300))
    before = agent.report().segments
    agent.add_action("gift")
    after = [one for one in agent.report().segments if one.action != "gift"]
    assert [one[:-1] for one in after] == [one[:-1] for one in before]


def test_a_user_of_another_version_starts_with_new_cells() -> None:
    first, second = (problem(sw.RiskScore("risk", buckets=4, version=version)).policy() for version in (1, 2))
    assert first.buckets["opt_out"].share > second.buckets["opt_out"].share
    shares = [problem(sw.RiskScore("risk", version=v)).policy().buckets["opt_out"].share for v in range(1, 40)]
    assert sum(shares) <= 1.0


def test_a_memory_whose_buckets_have_other_slots_is_refused() -> None:
    limits = {"opt_out": sw.Limit(0.2, safe_bound=0.0, score=sw.RiskScore("risk"))}
    policy = sw.Problem(action_names=["a", "b"], safe_name="a", reward=sw.Reward("click"), limits=limits).policy()
    memory = policy.start().memory
    assert policy.fits(memory)
    *_, (_, block) = policy.rounds.iter_blocks(memory)
    for offset in range(3):
        other = memory.copy()
        other[block.memory + offset] = 1e6
        assert not policy.fits(other)
