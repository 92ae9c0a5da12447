"""`stagewise forecast`: what it prints and writes, and what it refuses."""

import csv
from pathlib import Path

import pytest
from tests.cli.commands import rejected
from tests.launch.forecast.test_forecast import PROBLEM, log
from typer.testing import CliRunner

from stagewise.cli.main import app
from stagewise.problem.errors import ErrorCode

TOML = """
action_names = ["nothing", "digest", "offer"]
safe_name = "nothing"
context = { age = [18, 98] }
[reward]
name = "click"
[limits.opt_out]
at_most = 0.2
safe_bound = 0.1
model = "rates"
[limits.complaint]
at_most = 0.3
safe_bound = 0.2
by = "country"
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    told = log() | {"clicked": log()["click"]}
    del told["click"]
    with (tmp_path / "log.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(told), *zip(*told.values(), strict=True)])
    (tmp_path / "problem.toml").write_text(TOML)
    return [str(tmp_path / "log.csv"), str(tmp_path / "problem.toml"), "--out", str(tmp_path / "out"), "--quiet"]


def test_a_log_and_a_problem_become_a_table_and_a_page(files: list[str]) -> None:
    size = [
        "--days",
        "2",
        "--users-per-day",
        "3",
        "--runs",
        "38",
        "--columns",
        "click=clicked",
        "--limits",
        "opt_out=0.15,0.2",
    ]
    result = CliRunner().invoke(app, ["forecast", *files, *size])
    assert result.exit_code == 0, result.output
    assert "opt_out ≤ 0.15" in result.output
    assert "opt_out ≤ 0.2 (as declared)" in result.output
    assert {path.name for path in (Path(files[3])).iterdir()} == {"forecast.html", "forecast.json", "forecast.png"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], ErrorCode.COLUMN_MISSING),
        (["--limits", "opt_out"], ErrorCode.INVALID_OPTION),
        (["--limits", "opt_out=1%"], ErrorCode.INVALID_OPTION),
        (["--limits", "opt_out=0.1", "--limits", "opt_out=0.2"], ErrorCode.DUPLICATE_NAME),
        (["--columns", "click=clicked"], ErrorCode.COLUMN_MISSING),
    ],
)
def test_what_cannot_be_forecast_is_one_line(files: list[str], options: list[str], code: ErrorCode) -> None:
    rejected(code, "forecast", *files, *options)


def test_the_file_declares_the_problem_of_the_tests(files: list[str]) -> None:
    import stagewise as sw

    assert sw.Problem.load(files[1]).to_dict() == PROBLEM.to_dict()


@pytest.mark.long
def test_a_young_log_is_read_at_the_time_that_is_given(tmp_path: Path) -> None:
    young = {**log(), "at": [1.76e9 + 3600.0 * row for row in range(len(log()["click"]))]}
    with (tmp_path / "log.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(young), *zip(*young.values(), strict=True)])
    (tmp_path / "problem.toml").write_text(TOML.replace("[limits.complaint]", 'window = "30d"\n[limits.complaint]'))
    words = ["forecast", str(tmp_path / "log.csv"), str(tmp_path / "problem.toml"), "--out", str(tmp_path / "out")]
    words += ["--quiet", "--runs", "38", "--days", "2", "--executor", "processes:1"]
    said = rejected(ErrorCode.LOG_TOO_SHORT, *words)
    assert "--as-of" in said
    ran = CliRunner().invoke(app, [*words, "--as-of", "1790000000"])
    assert ran.exit_code == 0, ran.output
