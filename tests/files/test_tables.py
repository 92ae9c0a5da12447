"""Tables whose columns cannot be told apart are refused, and decisions are a table too."""

import json

import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.files.tables import read_table
from stagewise.launch.decision_log import Log
from stagewise.problem.errors import ErrorCode

PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={"age": (18, 99)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, model="rates")},
)


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("log.csv", "action,age,age\noffer,1,2\n", ErrorCode.DUPLICATE_NAME),
        ("log.csv", "action;age;click\noffer;1;2\n", ErrorCode.FILE_INVALID),
        ("log.csv", "action\tage\noffer\t1\n", ErrorCode.FILE_INVALID),
        ("log.jsonl", '{"action": "offer", "age": 1, "age": 2}\n', ErrorCode.DUPLICATE_NAME),
    ],
)
def test_columns_that_cannot_be_told_apart(tmp_path, name, content, code):
    (tmp_path / name).write_text(content)
    with refused(sw.InvalidFile, code):
        read_table(tmp_path / name)


def test_a_frame_with_two_columns_of_one_name():
    from arro3.core import Array, DataType, Table

    entries = [Array([value], DataType.int64()) for value in (0, 1, 2)]
    with refused(sw.InvalidFile, ErrorCode.DUPLICATE_NAME):
        read_table(Table.from_arrays(entries, names=["action", "age", "age"]))


def decisions():
    agent = sw.Agent(PROBLEM, seed=1)
    for age in (30, 40):
        yield {**agent.decide({"age": age}).to_dict(), "age": age, "click": 1, "opt_out": 0}


def test_decisions_as_columns_read_as_decisions_in_lines(tmp_path):
    rows = list(decisions())
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = Log.of(tmp_path / "log.jsonl", PROBLEM)
    columns = Log.of({name: [row[name] for row in rows] for name in rows[0]}, PROBLEM)
    assert columns.actions.tolist() == lines.actions.tolist() == [0, 0]
    assert columns.probabilities.tolist() == lines.probabilities.tolist()
    assert columns.numbers.tolist() == [[30.0], [40.0]]
