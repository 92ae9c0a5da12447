"""`stagewise decide` and `stagewise learn` as a scheduler calls them: exit codes, and commands that are run again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import called, rejected

import stagewise as sw
from stagewise.files.tables import read_batches, write_batches
from stagewise.problem.errors import ErrorCode

PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    context={"age": (18, 99)},
    reward=sw.Reward("click", window="1d"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, window="1d", model="rates")},
)
NIGHT, MORNING = "2026-11-19T20:00:00Z", "2026-11-20T08:00:00Z"


def write(path: Path, columns: dict[str, Any]) -> Path:
    write_batches(path, read_batches(columns).batches)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_night_and_a_morning(tmp_path: Path, suffix: str) -> None:
    agent, out = tmp_path / "agent.json", tmp_path / f"decisions.{suffix}"
    sw.Agent(PROBLEM, seed=7).save(agent)
    users = write(tmp_path / f"users.{suffix}", {"user_id": [1, 2, 3], "age": [20.5, 30.5, 300.5]})
    words = ("decide", users, "--agent", agent, "--out", out, "--run", "monday", "--now", NIGHT, "--quiet")
    assert called(*words) == (
        0,
        "run 'monday': 2 of 3 users decided; 1 rows could not be decided, see the column error\n",
    )
    saved, decided = agent.read_bytes(), out.read_bytes()
    assert called(*words) == (0, "run 'monday' is decided and registered already; nothing changed\n")
    assert (agent.read_bytes(), out.read_bytes()) == (saved, decided)
    rejected(ErrorCode.FILE_EXISTS, *words[:6], *words[8:])
    ids = [id_ for batch in read_batches(out).batches for id_ in batch.column("decision_id").to_pylist()]
    columns = {"decision_id": [*ids[:2], "x:y:z"], "click": np.array([1.0, 0.0, 0.0]), "opt_out": np.zeros(3)}
    outcomes = write(tmp_path / f"outcomes.{suffix}", columns)
    status = tmp_path / f"status.{suffix}"
    words = ("learn", outcomes, "--agent", agent, "--now", MORNING)
    assert called(*words, "--out", status) == (0, "3 outcomes: 2 accepted, 1 unknown\n")
    found = [one for batch in read_batches(status).batches for one in batch.column("status").to_pylist()]
    assert found == ["accepted", "accepted", "unknown"]
    assert called(*words) == (0, "3 outcomes: 2 duplicate, 1 unknown\n")
    assert sw.Agent.load(agent).pending_count == 0


@pytest.mark.parametrize(
    "options",
    [("--propose", "wanted"), ("--propose", "offer=p"), ("--scores", "offer=p"), ("--propose", "offer=p,nothing=q")],
)
def test_columns_of_proposals(tmp_path: Path, options: tuple[str, ...]) -> None:
    guard = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", limits={"opt_out": sw.Limit(0.5, safe_bound=0.0)}
    )
    agent, out = tmp_path / "agent.json", tmp_path / "decisions.parquet"
    sw.Agent(guard, seed=7).save(agent)
    columns = {"user_id": list(range(40)), "wanted": ["offer"] * 40, "p": [0.9] * 40, "q": [0.1] * 40}
    users = write(tmp_path / "users.parquet", columns)
    words = ("decide", users, "--agent", agent, "--out", out, "--run", "monday")
    rejected(ErrorCode.MISSING_VALUE, *words)
    rejected(ErrorCode.COLUMN_MISSING, *words, "--propose", "offer")
    assert called(*words, *options) == (0, "run 'monday': 40 of 40 users decided\n")
    drawn = [name for batch in read_batches(out).batches for name in batch.column("action").to_pylist()]
    assert 0 < drawn.count("offer") < 40


def test_exit_codes(tmp_path: Path) -> None:
    agent, out = tmp_path / "agent.json", tmp_path / "decisions.parquet"
    sw.Agent(PROBLEM, seed=7).save(agent)
    users = write(tmp_path / "users.parquet", {"user_id": [1], "age": [300.5]})
    words = ("--agent", agent, "--now", NIGHT)
    assert called("decide", users, "--out", out, *words)[0] == 1
    outcomes = write(tmp_path / "outcomes.parquet", {"decision_id": ["x:y:z"], "click": [1.0]})
    assert called("learn", outcomes, *words) == (1, "1 outcomes: 1 unknown\n")
    rejected(ErrorCode.FILE_NOT_FOUND, "decide", tmp_path / "none.parquet", "--out", out, *words)
    rejected(ErrorCode.FILE_NOT_FOUND, "learn", outcomes, "--agent", tmp_path / "none.json")
    rejected(ErrorCode.COLUMN_MISSING, "learn", outcomes, *words, "--id", "id")
    rejected(ErrorCode.INVALID_TIME, "learn", outcomes, "--agent", agent, "--now", "yesterday")


def test_a_file_that_is_cut_off_teaches_nothing(tmp_path: Path) -> None:
    """A number without its last digits is another number; only a missing end of the line shows it."""
    agent = tmp_path / "agent.json"
    sw.Agent(PROBLEM, seed=7).save(agent)
    saved, outcomes = agent.read_bytes(), tmp_path / "outcomes.csv"
    outcomes.write_text("decision_id,click,opt_out\nx:y:1,0.5,0\nx:y:2,0.2")
    rejected(ErrorCode.FILE_INVALID, "learn", outcomes, "--agent", agent, "--now", MORNING)
    for text in ("decision_id,click,opt_out\nx:y:1,0.5,0\nx:y:2,0.25,0.1", "decision_id,click,opt_out\nx:y:1,0.5,"):
        outcomes.write_text(text)
        rejected(ErrorCode.FILE_INVALID, "learn", outcomes, "--agent", agent, "--now", MORNING)
        assert agent.read_bytes() == saved
        outcomes.write_text(f"{text}\n")
        assert called("learn", outcomes, "--agent", agent, "--now", MORNING)[0] == 1  # ids of nobody
        saved = agent.read_bytes()
    users = tmp_path / "users.csv"
    users.write_text("user_id,age\n1,30.5\n2,3")
    rejected(ErrorCode.FILE_INVALID, "decide", users, "--agent", agent, "--out", tmp_path / "out.csv", "--now", NIGHT)
    assert agent.read_bytes() == saved
