"""A log on the command line and by HTTP: what is wrong with it is said in a sentence, and nothing is written."""

import csv
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import called, rejected
from tests.server.server_helpers import learned, played
from tests.server.test_serving_cli import PROBLEM as HOURLY
from tests.server.test_serving_cli import served
from tests.server.web.real import real

from stagewise.problem.errors import ErrorCode
from stagewise.server.store.migrate import open_store

PROBLEM = HOURLY.replace("1h", "7d")


def columns(rows: int, seed: int = 0, dear: float = 0.008) -> dict[str, list[Any]]:
    """Return a log that agrees with the problem, unless everything is dear in it, the safe action too."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, 3, rows)
    costly = rng.random(rows) < (dear if dear > 0.1 else dear * (actions > 0))
    return {
        "action": [("nothing", "digest", "offer")[i] for i in actions],
        "age": rng.integers(18, 100, rows).astype(float).tolist(),
        "click": (rng.random(rows) < 0.02 + 0.04 * actions).astype(float).tolist(),
        "opt_out": costly.astype(float).tolist(),
    }


def written(path: Path, told: dict[str, list[Any]]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(told)
        writer.writerows(zip(*told.values(), strict=True))
    return str(path)


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "messages.toml").write_text(PROBLEM)
    return "messages.toml"


def test_a_log_that_contradicts_is_refused_before_anything_is_written(tmp_path: Path, problem: str) -> None:
    log = written(tmp_path / "log.csv", columns(3000, dear=0.3))
    code, said = called("serve", problem, "--log", log, "--port", "0")
    assert (code, said.count("\n"), (tmp_path / "server.db").exists()) == (2, 1, False)
    assert said.startswith("stagewise: ")
    assert "safe action" in said


def test_a_contradiction_that_is_accepted_by_name_is_noted_only(tmp_path: Path, problem: str) -> None:
    (tmp_path / problem).write_text(PROBLEM.replace("0.02", "0.5"))  # nothing could ever break it: was it a percentage?
    log = written(tmp_path / "log.csv", columns(3000))
    assert "'loose_limits'" in rejected(
        ErrorCode.LOG_CONTRADICTS_PROBLEM, "serve", problem, "--log", log, "--port", "0"
    )
    with served(tmp_path, problem, "--log", log, "--ignore-checks", "loose_limits"):
        assert "3,000 rows of " in (tmp_path / "said.txt").read_text()


def test_a_row_that_cannot_be_learned_is_left_out_where_its_check_is_accepted(tmp_path: Path, problem: str) -> None:
    told = columns(1500)
    told["age"][700] = 300.0
    log = written(tmp_path / "log.csv", told)
    checks = ("--ignore-checks", "ranges", "--ignore-checks", "units")
    with served(tmp_path, problem, "--log", log, *checks):
        assert "1,499 rows of " in (tmp_path / "said.txt").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--log", "none.csv"], "none.csv"),
        (["--log", "log.csv", "--columns", "clik=click"], "did you mean 'click'"),
        (["--log", "log.csv", "--ignore-checks", "nothing"], "'nothing'"),
        (["--log", "log.csv", "--as-of", "soon"], "'soon'"),
        (["--columns", "click=clicked"], "--log"),
        (["more.toml", "--log", "log.csv"], "2 problem files are given"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(tmp_path: Path, problem: str, words: list[str], message: str) -> None:
    written(tmp_path / "log.csv", columns(300))
    (tmp_path / "more.toml").write_text(PROBLEM)
    code, said = called("serve", problem, *words, "--port", "0")
    assert (code, said.count("\n"), (tmp_path / "server.db").exists()) == (2, 1, False)
    assert message in said


def test_a_young_log_is_learned_once_the_time_of_its_export_is_given(tmp_path: Path, problem: str) -> None:
    told = {**columns(1500), "at": [1.76e9 + 60.0 * row for row in range(1500)]}
    told["opt_out"][3] = ""  # not reported in its window: it counts as declared
    log = written(tmp_path / "log.csv", told)
    assert "--as-of" in rejected(ErrorCode.LOG_TOO_SHORT, "serve", problem, "--log", log, "--port", "0")
    assert not (tmp_path / "server.db").exists()
    with served(tmp_path, problem, "--log", log, "--as-of", "2026-06-01T00:00:00Z"):
        assert "1,500 rows of " in (tmp_path / "said.txt").read_text()


def test_started_again_with_another_log_it_does_not_start(tmp_path: Path, problem: str) -> None:
    one, other = (written(tmp_path / f"{rows}.csv", columns(rows, rows)) for rows in (1500, 1600))
    with served(tmp_path, problem, "--log", one):
        pass
    code, said = called("serve", problem, "--log", other, "--port", "0")
    assert (code, "1,500 rows" in said, "1,600" in said) == (2, True, True)
    with served(tmp_path, problem, "--log", other, "--name", "again"):
        assert "again: live, version 1, 3 actions, 1,600 rows of " in (tmp_path / "said.txt").read_text()
    with closing(open_store("server.db")) as store:
        assert store.find("again", "log", "2") is not None


@played
async def test_a_server_that_runs_takes_a_log_by_http(tmp_path: Path) -> None:
    told = {"columns": columns(1500), "reason": "last month"}
    async with real(tmp_path) as server:
        assert (await server.writer.post("/v1/demo/log", told)).status == 403
        assert (await server.admin.post("/v1/other/log", told)).status == 404
        before = server.rows()
        for wrong in (
            {**told, "columns": {}},
            {**told, "columns": {**told["columns"], "age": [30.0]}},  # type: ignore[dict-item]
            {**told, "columns": {**told["columns"], "action": [None] * 1500}},  # type: ignore[dict-item]
            {**told, "columns": columns(3000, dear=0.3)},
            {**told, "columns": {**told["columns"], "at": [1.7e9] * 1501}},  # type: ignore[dict-item]
            {**told, "columns": {**told["columns"], "unnamed": [1.0]}},  # type: ignore[dict-item]
            {**told, "columns": {**told["columns"], "age": [300.0] * 1500}, "accept": ["ranges", "units"]},  # type: ignore[dict-item]
            {**told, "accept": ["everything"]},
            {**told, "now": 1e300},
        ):
            said = await server.admin.post("/v1/demo/log", wrong)
            assert (said.status, list(said.plain)) == (422, ["code", "message"]), said.plain
        size = {"content-length": str((1 << 24) + 1)}
        assert (await server.admin.send("POST", "/v1/demo/log", b"", headers=size)).status == 413
        assert server.rows() == before
        loaded = await server.admin.post("/v1/demo/log", told)
        assert (loaded.status, loaded.plain["rows"], loaded.plain["new"]) == (200, 1500, True)
        assert (await server.admin.post("/v1/demo/log", told)).plain == {**loaded.plain, "new": False}
        other = await server.admin.post("/v1/demo/log", {**told, "columns": columns(1500, 1)})
        assert (other.status, other.plain["code"]) == (409, "conflict")
        await learned(server.desk)
        decided = (await server.writer.post("/v1/demo/decisions", {"context": {"age": 34}})).plain
        assert decided["snapshot"] >= 4, "a problem, its mode, and two parts"
        page = (await server.reader.get("/metrics")).content.decode()
        assert 'stagewise_offline_log_rows{experiment="demo"} 1500' in page


@played
async def test_rows_of_a_log_are_read_in_answers_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stagewise.server.web import routes

    monkeypatch.setattr(routes, "MAX_PAGE_BYTES", 60_000)
    async with real(tmp_path) as server:
        await server.admin.post("/v1/demo/log", {"columns": columns(5500), "reason": "last month"})
        seen, after, answers = list[int](), 0, 0
        while True:
            told = (await server.reader.get("/v1/demo/log", f"after={after}&limit=10000")).plain
            seen += [row["seq"] for row in told["rows"]]
            assert len(json.dumps(told)) < 150_000
            after, answers = told["after"], answers + 1
            if not told["more"]:
                break
        assert (seen, answers > 2) == ([event.seq for event in server.store.events("demo")], True)
