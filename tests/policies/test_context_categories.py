"""Categories, booleans and dates by hand, in frames, replicas, files and worlds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent.frames import read_problem_contexts
from stagewise.problem.errors import ErrorCode

CONTEXT: dict[str, Any] = {
    "age": (18, 99),
    "tenure": sw.Number(0, 3650, clip=True, missing=0),
    "plan": sw.Category(["free", "basic", "pro"], other=True, missing="other"),
    "is_new": sw.Boolean(),
    "joined": sw.Date("2024-01-01", "2026-12-31", clip=True),
}
USER: dict[str, Any] = {"age": 30.0, "tenure": 100, "plan": "pro", "is_new": True, "joined": "2025-01-01"}
ROWS = 60


def problem(by: Any = "plan", **changes: Any) -> sw.Problem:
    settings: dict[str, Any] = {
        "action_names": ["nothing", "digest", "offer"],
        "safe_name": "nothing",
        "context": CONTEXT,
        "reward": sw.Reward("click"),
        "limits": {"opt_out": sw.Limit(0.2, safe_bound=0.0, by=by)},
    }
    return sw.Problem(**settings | changes)


def frame(seed: int = 0, **changes: Any) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        "action": chance.choice(["nothing", "digest", "offer"], ROWS).tolist(),
        "click": chance.integers(0, 2, ROWS).astype(float),
        "opt_out": chance.integers(0, 2, ROWS) * 0.1,
        "age": chance.uniform(18.0, 99.0, ROWS),
        "tenure": chance.uniform(-100.0, 5000.0, ROWS),
        "plan": chance.choice(np.array(["free", "basic", "pro", "gold", None], dtype=object), ROWS),
        "is_new": chance.integers(0, 2, ROWS) > 0,
        "joined": np.datetime64("2023-06-01") + chance.integers(0, 1500, ROWS).astype("m8[D]"),
    }
    return columns | changes


def pick_user(columns: dict[str, Any], row: int) -> dict[str, Any]:
    return {name: columns[name][row] for name in CONTEXT}


def test_a_frame_is_encoded_as_each_of_its_users_to_the_bit() -> None:
    for by in ("plan", "is_new", ["plan", "is_new"]):
        asked, columns = problem(by), frame()
        rows = read_problem_contexts(asked, columns)
        assert not rows.refused
        for row in range(ROWS):
            user = asked.encode_context(pick_user(columns, row))
            assert np.array_equal(user.features, rows.features[row])
            assert np.array_equal(user.segments, rows.segments[row])
        clipped = {"tenure": 0, "joined": 0}
        for row in range(ROWS):
            for name in asked.encode_context(pick_user(columns, row)).clipped:
                clipped[name] += 1
        assert rows.count_clipped() == clipped
        assert min(clipped.values()) > 0


def test_a_row_that_is_refused_does_not_stop_the_others() -> None:
    columns, agent, other = frame(), sw.Agent(problem(), seed=1), sw.Agent(problem(), seed=1)
    columns["age"][3], columns["is_new"] = 200.0, columns["is_new"].astype(object)
    columns["is_new"][7], columns["is_new"][8] = None, "True"
    left_out = agent.learn_log_frame(columns)
    assert {row: error.code for row, error in left_out.items()} == {
        3: ErrorCode.CONTEXT_OUT_OF_RANGE, 7: ErrorCode.MISSING_CONTEXT_FIELD, 8: ErrorCode.WRONG_TYPE,
    }  # fmt: skip
    kept = [row for row in range(ROWS) if row not in left_out]
    other.learn_log_frame({name: [column[row] for row in kept] for name, column in columns.items()})
    assert np.array_equal(agent.state.memory, other.state.memory)
    for row, error in left_out.items():
        with refused(sw.InvalidActions, error.code):
            agent.decide(pick_user(columns, row))


def test_a_frame_without_a_row_that_can_be_read_is_refused() -> None:
    agent = sw.Agent(problem(), seed=1)
    before = agent.state.memory
    with refused(sw.InvalidActions, ErrorCode.INVALID_ROW):
        agent.learn_log_frame(frame(age=np.full(ROWS, 200.0)))
    with refused(sw.InvalidActions, ErrorCode.COLUMN_MISSING):
        agent.learn_log_frame({name: column for name, column in frame().items() if name != "is_new"})
    assert np.array_equal(before, agent.state.memory)


def test_what_may_be_missing_can_be_left_out() -> None:
    agent = sw.Agent(problem(), seed=1)
    columns = {name: column for name, column in frame().items() if name not in ("tenure", "plan")}
    assert agent.learn_log_frame(columns) == {}
    decision = agent.decide({name: value for name, value in USER.items() if name not in ("tenure", "plan")})
    same = sw.Agent(problem(), seed=1)
    same.learn_log_frame(columns | {"tenure": np.zeros(ROWS), "plan": ["other"] * ROWS})
    assert decision.to_dict() == same.decide(USER | {"tenure": 0, "plan": None}).to_dict()
    with refused(sw.InvalidActions, ErrorCode.MISSING_CONTEXT_FIELD):
        agent.decide({name: value for name, value in USER.items() if name != "age"})


def test_a_category_divides_users_as_it_names_them() -> None:
    agent = sw.Agent(problem(), seed=1)
    agent.learn_log_frame(frame())
    declared = [agent.policy.encode_context(USER | {"plan": plan}, None).segments for plan in ("gold", None, "other")]  # type: ignore[attr-defined]
    assert declared[0] == declared[1] == declared[2]
    undeclared = problem(by="country").encode_context(USER | {"country": "gold"}).segments
    assert undeclared != declared[0]
    with refused(sw.InvalidProblem, ErrorCode.DUPLICATE_NAME):
        problem(by="age")
    with refused(sw.InvalidProblem, ErrorCode.DUPLICATE_NAME):
        problem(by="joined")


def test_a_file_a_snapshot_and_a_replica_continue_to_the_bit(tmp_path: Path) -> None:
    agent = sw.Agent(problem(), seed=1)
    agent.learn_log_frame(frame())
    agent.decide(USER | {"tenure": 1e6})
    agent.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json", problem())
    assert again.decide(USER).to_dict() == agent.decide(USER).to_dict()
    replica = sw.Replica(sw.Snapshot.from_bytes(bytes(agent.replica_snapshot())), name="pod")
    agent.learn(agent.register_decision(replica.decide(USER)), click=1.0, opt_out=0.0)
    plans = {"free": sw.Category(["free", "basic", "pro", "gold"]), "closed": sw.Category(["free", "basic", "pro"])}
    for plan in plans.values():
        with refused(sw.InvalidFile, ErrorCode.PROBLEM_MISMATCH):
            sw.Agent.load(tmp_path / "agent.json", problem(context=CONTEXT | {"plan": plan}))


def test_a_toml_file_declares_the_same_problem(tmp_path: Path) -> None:
    text = """
        action_names = ["nothing", "digest", "offer"]
        safe_name = "nothing"
        reward = { name = "click" }
        limits.opt_out = { at_most = 0.2, safe_bound = 0.0, by = "plan" }
        [context]
        age = [18, 99]
        tenure = { low = 0, high = 3650, clip = true, missing = 0 }
        plan = { type = "category", levels = ["free", "basic", "pro"], other = true, missing = "other" }
        is_new = { type = "boolean" }
        joined = { type = "date", low = 2024-01-01, high = "2026-12-31", clip = true }
    """
    (tmp_path / "problem.toml").write_text(text, encoding="utf-8")
    assert sw.Problem.load(tmp_path / "problem.toml").to_dict() == problem().to_dict()
    assert sw.Problem.from_dict(problem().to_dict()).context == problem().context
    with refused(sw.InvalidProblem, ErrorCode.UNKNOWN_SETTING):
        problem(context={"age": {"low": 0, "high": 1, "clipp": True}})


def test_a_category_changes_what_a_linear_reward_learns() -> None:
    """'offer' is clicked by the plan 'pro' only."""
    asked = problem(limits={"opt_out": sw.Limit(0.5, safe_bound=0.0, model="rates")}, context={"plan": CONTEXT["plan"]})
    chance, rows = np.random.default_rng(1), 6_000
    plan, done = chance.choice(["free", "basic", "pro", "gold"], rows), chance.choice(list(asked.action_names), rows)
    click = np.where((plan == "pro") == (done == "offer"), 0.8, 0.2)
    agent = sw.Agent(asked, seed=1)
    agent.learn_log_frame({"action": done, "plan": plan, "click": click, "opt_out": np.zeros(rows)})
    assert agent.decide({"plan": "pro"}).probabilities["offer"] > 0.9
    assert agent.decide({"plan": "free"}).probabilities["offer"] < 0.1
    assert agent.decide({"plan": "new"}).probabilities["offer"] < 0.1


def test_a_world_plays_encoded_users() -> None:
    asked = problem(by=None, limits={"opt_out": sw.Limit(0.2, safe_bound=0.0, model="linear")})
    users = read_problem_contexts(asked, frame()).features
    world = sw.UserTableWorld(users=users, reward=[[0.1, 0.2, 0.6]] * ROWS, cost=[[0.0, 0.1, 0.1]] * ROWS)
    result = sw.simulate(asked, world, rounds=30, runs=2)
    assert result.violations.sum() == 0
    with refused(sw.InvalidProblem, ErrorCode.CONTEXT_OUT_OF_RANGE):
        sw.UserTableWorld(users=users * 20.0, reward=[[0.1, 0.2, 0.6]] * ROWS, cost=[[0.0, 0.1, 0.1]] * ROWS)


def test_features_of_levels_are_checked_in_rows() -> None:
    settings: dict[str, Any] = {"actions": 2, "safe_action": sw.SafeAction(arm=0, cost=0.0), "threshold": 0.1}
    policy = sw.SafeContextPosteriorSampling(context=3, levels=[3], **settings)
    assert policy.feature_bounds.round(3).tolist() == [1.0, 1.366, 1.366]
    policy.decide(policy.start(), sw.ContextVector([1.0, 1.3, -1.0]))
    with refused(sw.InvalidActions, ErrorCode.CONTEXT_OUT_OF_RANGE):
        policy.decide(policy.start(), sw.ContextVector([1.3, 1.0, -1.0]))
    with refused(sw.InvalidProblem, ErrorCode.TOO_LARGE):
        sw.SafeContextPosteriorSampling(context=1, levels=[3], **settings)


@pytest.mark.parametrize("value", ["gold", "frее", "__other__", 7])
def test_a_level_that_is_not_declared_is_refused_by_code(value: Any) -> None:
    closed = problem(context=CONTEXT | {"plan": sw.Category(["free", "basic", "pro"])})
    with refused(sw.InvalidActions, ErrorCode.UNKNOWN_LEVEL):
        sw.Agent(closed, seed=1).decide(USER | {"plan": value})
