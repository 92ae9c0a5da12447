"""A segment has one name wherever it is told: in a decision, a log, a file, a line of JSON or a TOML file."""

import json
from typing import Any

import numpy as np
import pytest
from arro3.core import Array, DataType, Table
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent.frames import read_problem_contexts
from stagewise.launch.decision_log import Log
from stagewise.problem.context import check_segment_name, hash_segment
from stagewise.problem.errors import ErrorCode

PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.3, safe_bound=0.01, by="plan")},
)


def objects(*values: Any) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def frame(column: Any) -> dict[str, Any]:
    rows = len(column)
    return {"action": ["offer"] * rows, "plan": column, "click": [0.0] * rows, "opt_out": [0.0] * rows}


COLUMNS: dict[str, tuple[Any, list[str]]] = {
    "a list of 1 and True": ([1, True, 1.0, "1"], ["1", "True", "1", "1"]),
    "objects": (objects(1, True, np.True_, np.int64(1), np.float32(1.0)), ["1", "True", "True", "1", "1"]),
    "truth values": ([False, True], ["False", "True"]),
    "NumPy's truth values": (np.array([False, True]), ["False", "True"]),
    "Arrow's truth values": (Array([False, True], DataType.bool()), ["False", "True"]),
    "whole numbers": (np.array([0, 1], dtype=np.int8), ["0", "1"]),
    "whole floats": (np.array([0.0, 1.0], dtype=np.float32), ["0", "1"]),
    "texts": (["0", "True"], ["0", "True"]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_log_and_a_decision_mean_the_same_segment(name: str) -> None:
    column, names = COLUMNS[name]
    learned = read_problem_contexts(PROBLEM, frame(column)).segments[:, -1].tolist()
    assert learned == [float(hash_segment(one)) for one in names]
    assert Log.of(frame(column), PROBLEM).segments["plan"].tolist() == names
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    decided = [PROBLEM.encode_context({"plan": value}).segments[0] for value in values]
    assert decided == [hash_segment(one) for one in names]


def test_a_table_of_arrow_and_lines_of_json_do_too(tmp_path: Any) -> None:
    table = Table.from_pydict({"plan": Array([True, False], DataType.bool())})
    assert read_problem_contexts(PROBLEM, {**frame([0, 0]), "plan": table["plan"]}).segments[:, -1].tolist() == [
        hash_segment("True"),
        hash_segment("False"),
    ]
    rows = [{"action": "offer", "plan": value, "click": 0, "opt_out": 0} for value in (1, True, "1", 1.0)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert Log.of(tmp_path / "log.jsonl", PROBLEM).segments["plan"].tolist() == ["1", "True", "1", "1"]
    (tmp_path / "log.csv").write_text("action,plan,click,opt_out\noffer,true,0,0\noffer,False,0,0\n", encoding="utf-8")
    assert Log.of(tmp_path / "log.csv", PROBLEM).segments["plan"].tolist() == ["True", "False"]


def test_what_one_segment_costs_is_not_another_ones() -> None:
    """'offer' costs nobody of the segment True anything, and half of the segment 1."""
    chance = np.random.default_rng(0)
    plan = [1, *(1 if chance.random() < 0.3 else True for _ in range(1_999))]
    action = ["nothing" if chance.random() < 0.3 else "offer" for _ in plan]
    pairs = list(zip(plan, action, strict=True))
    cost = [float(one is not True and done == "offer" and chance.random() < 0.5) for one, done in pairs]
    agent = sw.Agent(PROBLEM, seed=1)
    agent.learn_log_frame(
        {"action": action, "plan": plan, "click": [float(done == "offer") for done in action], "opt_out": cost}
    )
    assert 0.5 * agent.decide({"plan": 1}).probabilities["offer"] <= 0.3
    assert agent.decide({"plan": True}).probabilities["offer"] > 0.9


@pytest.mark.parametrize("value", [0.5, [1], "x" * 201, 10.0**250, b"1", "a\ud800"])
def test_what_names_no_segment_is_refused(value: Any) -> None:
    with refused(sw.InvalidActions, ErrorCode.WRONG_TYPE):
        check_segment_name(value, "plan")
    with refused(sw.InvalidActions, ErrorCode.WRONG_TYPE):
        sw.Agent(PROBLEM).decide({"plan": value})
    left_out = sw.Agent(PROBLEM).learn_log_frame(frame(objects("a", value)))
    assert {row: error.code for row, error in left_out.items()} == {1: ErrorCode.WRONG_TYPE}


def test_half_a_surrogate_pair_refuses_its_row_of_a_table_alone() -> None:
    plans, users = ["a", "b\ud800", "a"], ["u0", "u1", "u2\ud800"]
    decided = sw.Agent(PROBLEM, seed=1).decide_frame({"user_id": users, "plan": plans}, run="r")
    assert decided["error"].tolist() == [None, ErrorCode.WRONG_TYPE, ErrorCode.INVALID_NAME]


def test_an_empty_text_is_a_missing_segment_in_a_log_and_in_a_decision() -> None:
    assert Log.of(frame(["a", ""]), PROBLEM).segments["plan"].tolist() == ["a", None]
    with refused(sw.InvalidActions, ErrorCode.MISSING_CONTEXT_FIELD):
        PROBLEM.encode_context({"plan": ""})
    left_out = sw.Agent(PROBLEM).learn_log_frame(frame(["a", ""]))
    assert {row: error.code for row, error in left_out.items()} == {1: ErrorCode.MISSING_CONTEXT_FIELD}
