"""`stagewise reproduce`, found by the entry point in this package's pyproject.toml."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from tests.cli.commands import GOOD, called, spec
from tests.cli.test_full_disk import assert_one_sentence, disk, leave  # noqa: F401

from stagewise_reproduction.claim import FAILS, Claim
from stagewise_reproduction.report import SMOKE_NOTE

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stagewise find what this package's pyproject.toml offers, whether it is installed here or not."""
    project = tomllib.loads((ROOT / "reproduction" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = [
        EntryPoint(name, value, group)
        for group, found in project["entry-points"].items()
        for name, value in found.items()
    ]

    def entry_points(*, group: str, name: str) -> list[EntryPoint]:
        return [one for one in offered if (one.group, one.name) == (group, name)]

    monkeypatch.setattr("stagewise.cli.main.entry_points", entry_points)


def test_every_option_stands_in_its_document() -> None:
    document = (ROOT / "docs" / "how-to" / "reproduce-the-paper.md").read_text(encoding="utf-8")
    code, said = called("reproduce", "--help")
    assert code == 0
    assert "Usage: stagewise reproduce [OPTIONS]" in said
    for option in ("--preset", "--size", "--out", "--jobs"):
        assert option in said
        assert option in document


def test_a_claim_that_must_hold_and_does_not_fails_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Claim("safe", 3.0, "0 violations", FAILS, True)
    monkeypatch.setattr("stagewise_reproduction.run.reproduce", lambda *_: [broken])
    code, said = called("reproduce", "figure-4", "--size", "smoke", "--out", tmp_path)
    assert code == 1
    assert broken.name in said
    assert SMOKE_NOTE in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["figure-9"], "experiment is 'figure-9'; it must be one of figure-1"),
        (["--preset", "ours,mine"], "preset is 'mine'; it must be one of text, authors, ours"),
        (["--size", "huge"], "size is 'huge'; it must be one of smoke, quick, full"),
    ],
)
def test_unknown_names_are_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    code, said = called("reproduce", *arguments, "--out", tmp_path)
    assert code == 2
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    code, said = called("reproduce", "figure-1", "--size", "smoke", "--out", spec(tmp_path, GOOD))
    assert code == 2
    assert "is a file" in said


def test_a_reproduction_that_runs_out_of_disk_says_so(disk: Path) -> None:  # noqa: F811
    """Runs are kept as they are played, so the disk fills up in the middle."""
    leave(disk, 4)
    code, said = called("reproduce", "figure-1", "--size", "smoke", "--jobs", 1, "--out", disk / "out")
    assert code == 2
    assert_one_sentence(next(line for line in said.splitlines() if line.startswith("stagewise: ")))
    assert "Traceback" not in said
