"""A log is read by the names of a problem, from every form that people keep logs in."""

import json

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.problem.errors import ErrorCode

PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={"age": (18, 99)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, by="country")},
)
ROWS = [
    {"at": "2026-03-01T12:00:00", "action": "offer", "age": 30, "country": "NZ", "click": 1, "opt_out": 0},
    {"at": "2026-03-01T11:00:00", "action": "nothing", "age": 40.5, "country": "AU", "click": 0, "opt_out": None},
    {"at": "2026-03-02T12:00:00", "action": "ofer", "age": None, "country": None, "click": 0, "opt_out": 1},
]


def columns():
    return {name: [row[name] for row in ROWS] for name in ROWS[0]}


def as_csv(path):
    cells = [["" if value is None else str(value) for value in row.values()] for row in ROWS]
    path.write_text("\n".join(",".join(line) for line in [list(ROWS[0]), *cells]) + "\n")


def as_lines(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def as_parquet(path):
    from arro3.core import Array, DataType, Table
    from arro3.io import write_parquet

    kinds = {"age": DataType.float64(), "click": DataType.int64(), "opt_out": DataType.int64()}
    arrays = {name: Array(values, kinds.get(name, DataType.string())) for name, values in columns().items()}
    write_parquet(Table.from_pydict(arrays), path)


@pytest.mark.parametrize(("name", "write"), [("l.csv", as_csv), ("l.jsonl", as_lines), ("l.parquet", as_parquet)])
def test_every_form_of_a_log_reads_the_same(tmp_path, name, write):
    write(tmp_path / name)
    for log in (Log.of(tmp_path / name, PROBLEM), Log.of(columns(), PROBLEM)):
        assert log.actions.tolist() == [1, 0, -1]
        np.testing.assert_array_equal(log.numbers[:, 0], [30.0, 40.5, np.nan])
        assert log.segments["country"].tolist() == ["NZ", "AU", None]
        np.testing.assert_array_equal(log.values, [[1.0, 0.0], [0.0, np.nan], [0.0, 1.0]])
        assert log.complete_rows.tolist() == [True, False, False]
        assert log.order.tolist() == [1, 0, 2]
        assert log.at[2] - log.at[0] == 86400.0


def test_some_rows_of_a_log_are_a_log():
    log = Log.of(columns(), PROBLEM)
    part = log.take(log.complete_rows)
    assert part.rows == 1
    assert part.frame()["country"].tolist() == ["NZ"]
    agent = sw.Agent(PROBLEM, seed=1)
    agent.learn_log_frame(part.frame())
    assert Log.of(part.columns, PROBLEM).values.tolist() == part.values.tolist()


def test_decisions_as_they_are_logged_are_a_log(tmp_path):
    agent = sw.Agent(PROBLEM, seed=1)
    context = {"age": 30, "country": "NZ"}
    decision = agent.decide(context)
    line = {**decision.to_dict(), "context": context, "outcome": {"click": 1, "opt_out": 0}}
    (tmp_path / "log.jsonl").write_text(json.dumps(line))
    log = Log.of(tmp_path / "log.jsonl", PROBLEM)
    assert log.actions.tolist() == [0]
    assert log.probabilities.tolist() == [[1.0, 0.0]]
    assert log.segments["country"].tolist() == ["NZ"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda table: table.pop("action"), ErrorCode.COLUMN_MISSING),
        (lambda table: table.update(ages=table.pop("age")), ErrorCode.COLUMN_MISSING),
        (lambda table: table.update(click=["a", "b", "c"]), ErrorCode.COLUMN_WRONG_TYPE),
        (lambda table: table.update(click=["0", "yes", "1"]), ErrorCode.COLUMN_WRONG_TYPE),
        (lambda table: table.update(click=["0", "1", "1"]), ErrorCode.COLUMN_WRONG_TYPE),
        (lambda table: table.update(at=["soon", None, None]), ErrorCode.INVALID_TIME),
        (lambda table: table.update({name: [] for name in table}), ErrorCode.LOG_EMPTY),
    ],
)
def test_invalid_columns_are_rejected(change, code):
    table = columns()
    change(table)
    with pytest.raises(sw.StagewiseError) as caught:
        Log.of(table, PROBLEM)
    assert caught.value.code is code
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("mapping", "code"),
    [
        ({"propensity": "typo"}, ErrorCode.COLUMN_MISSING),
        ({"click": "clik"}, ErrorCode.COLUMN_MISSING),
        ({"clik": "click"}, ErrorCode.UNKNOWN_NAME),
        ({"probability.ofer": "click"}, ErrorCode.UNKNOWN_NAME),
    ],
)
def test_names_that_would_be_ignored_are_rejected(mapping, code):
    with refused(sw.InvalidOutcome, code):
        Log.of(columns(), PROBLEM, columns=mapping)
    Log.of(columns(), PROBLEM, columns={"click": "click", "probability.offer": "click", "at": "at"})


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("log.xlsx", b"x", ErrorCode.FILE_WRONG_KIND),
        ("log.csv", b"", ErrorCode.LOG_EMPTY),
        ("log.parquet", b"no parquet", ErrorCode.FILE_INVALID),
        ("log.jsonl", b"[1]\n", ErrorCode.FILE_INVALID),
        ("log.jsonl", b"{", ErrorCode.FILE_INVALID),
    ],
)
def test_files_that_are_no_logs(tmp_path, name, content, code):
    (tmp_path / name).write_bytes(content)
    with refused(sw.InvalidFile, code):
        Log.of(tmp_path / name, PROBLEM)
