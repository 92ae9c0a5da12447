"""`stagewise doctor`: lines, exit codes, files, refusals, and its document."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import called, rejected
from tests.launch.doctor.jobs import clean
from typer.testing import CliRunner

import stagewise as sw
from stagewise.cli.main import app
from stagewise.problem.errors import ErrorCode

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "examples" / "templates.toml"


def written(path: Path, frame: dict[str, Any]) -> Path:
    """Write a log."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(frame)
        table.writerows(zip(*(column.tolist() for column in frame.values()), strict=True))
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log without a fault."""
    return written(tmp_path_factory.mktemp("logs") / "log.csv", clean(1, 4_000))


def test_a_log_that_agrees_leaves_with_0_and_a_line_a_check(log: Path, tmp_path: Path) -> None:
    code, said = called("doctor", log, TEMPLATES, "--picture", tmp_path / "log.png")
    assert code == 0, said
    assert "nothing contradicts the problem, in 4,000 rows" in said
    assert all(re.match(r"(ok|note|contradicts|drift|) ", line) for line in said.splitlines()[:-2])
    assert (tmp_path / "log.png").read_bytes().startswith(b"\x89PNG")


def test_a_log_that_contradicts_leaves_with_1(tmp_path: Path) -> None:
    frame = clean(1, 2_000)
    frame["age"][7] = 12.0
    path = written(tmp_path / "log.csv", frame)
    code, said = called("doctor", path, TEMPLATES)
    assert code == 1
    assert "contradicts  ranges: 1 of 2,000 values of 'age' are outside [18, 99], such as 12" in said
    assert called("doctor", path, TEMPLATES, "--ignore-checks", "ranges")[0] == 0
    code, said = called("doctor", path, TEMPLATES, "--json")
    assert code == 1
    assert {one["check"]: one["verdict"] for one in json.loads(said)["findings"]}["ranges"] == "contradicts"


@pytest.mark.parametrize(
    "suffix", ["csv", *(pytest.param(each, marks=pytest.mark.slow) for each in ("parquet", "jsonl"))]
)
def test_a_proposal_can_be_learned_with_what_is_left(log: Path, tmp_path: Path, suffix: str) -> None:
    out, rest = tmp_path / "problem.toml", tmp_path / f"rest.{suffix}"
    told = (
        "--limit",
        "opt_out=0.02",
        "--limit",
        "complaint",
        "--proposal-fraction",
        "0.25",
        "--out",
        out,
        "--holdout",
        rest,
    )
    code, said = called("doctor", log, *told)
    assert code == 0, said
    assert "proposed from 1,000 rows" in said
    problem = sw.Problem.load(out)
    assert problem.limits["opt_out"].value == 0.02
    from stagewise.launch.decision_log import Log

    left = Log.of(rest, problem)
    assert left.rows == 3_000
    agents = [sw.Agent(problem, seed=1) for _ in range(2)]
    agents[0].learn_log_frame(left.frame())
    agents[1].learn_log_frame(rest)
    assert agents[0].state.memory.tobytes() == agents[1].state.memory.tobytes()
    assert called("doctor", rest, out)[0] == 0


def test_a_proposal_is_printed_where_no_file_is_named(log: Path) -> None:
    code, said = called("doctor", log, "--limit", "opt_out", "--no-holdout", "--safe", "today", "--reward", "click")
    assert code == 0
    assert "[limits.opt_out]" in said
    assert "made on rows that are also learned" in said


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nowhere.csv",), ErrorCode.FILE_NOT_FOUND),
        (("LOG", "nowhere.toml"), ErrorCode.FILE_NOT_FOUND),
        (("LOG", TEMPLATES, "--out", "x.toml"), ErrorCode.CONFLICTING_OPTIONS),
        (("LOG", TEMPLATES, "--reward", "click"), ErrorCode.CONFLICTING_OPTIONS),
        (("LOG", TEMPLATES, "--columns", "click"), ErrorCode.INVALID_OPTION),
        (("LOG", TEMPLATES, "--picture", "x.gif"), ErrorCode.FILE_WRONG_KIND),
        (("LOG", "--holdout", "x.xlsx"), ErrorCode.FILE_WRONG_KIND),
        (("LOG", "--limit", "opt_out=2 %"), ErrorCode.INVALID_OPTION),
        (("LOG", "--limit", "opt_out=2"), ErrorCode.LIMIT_NEVER_BINDS),
        (("LOG", "--proposal-fraction", "1.5"), ErrorCode.OUT_OF_RANGE),
        (("LOG", TEMPLATES, "--ignore-checks", "everything"), ErrorCode.UNKNOWN_NAME),
    ],
)
def test_what_cannot_be_used_leaves_with_2(words: tuple[object, ...], code: ErrorCode, log: Path) -> None:
    rejected(code, "doctor", *(log if word == "LOG" else word for word in words))


def test_every_option_stands_in_the_document() -> None:
    document = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    shown = CliRunner().invoke(app, ["doctor", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    options = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    assert len(options) >= 10
    for option in options:
        assert option in document, option


def test_every_check_stands_in_its_document() -> None:
    from stagewise.launch.doctor.findings import CheckName

    document = (ROOT / "docs" / "how-to" / "check-a-log.md").read_text(encoding="utf-8")
    for name in CheckName:
        assert f"| {name} |" in document, name
