"""Data come from a wheel that is what it was, through pip, once; or there is one clear sentence."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.studies.wheels import INSIDE, TABLE, made_up, only_here

from stagewise.problem.errors import ErrorCode
from stagewise_studies import source
from stagewise_studies.source import DataUnavailable


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


def test_a_wheel_is_fetched_once_and_then_read_from_the_cache(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = made_up(index)
    only_here(monkeypatch, index, tmp_path / "cache")
    assert known.read() == {INSIDE: TABLE}
    assert (tmp_path / "cache" / "studies" / known.wheel).is_file()

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("pip was asked although the wheel is in the cache")

    monkeypatch.setattr(subprocess, "run", refuse)
    assert known.read() == {INSIDE: TABLE}


def test_a_wheel_with_another_digest_is_refused_and_not_kept(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = made_up(index)._replace(digest="0" * 64)
    only_here(monkeypatch, index, tmp_path / "cache")
    with pytest.raises(DataUnavailable, match="000000000000"):
        known.read()
    assert not (tmp_path / "cache").exists()


def test_a_file_inside_with_another_digest_is_refused(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = made_up(index)._replace(files={INSIDE: "f" * 64})
    only_here(monkeypatch, index, tmp_path / "cache")
    with pytest.raises(DataUnavailable) as caught:
        known.read()
    assert caught.value.code is ErrorCode.DIGEST_MISMATCH
    assert caught.value.details["name"] == INSIDE


def test_a_damaged_cache_is_fetched_again(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = made_up(index)
    only_here(monkeypatch, index, tmp_path)
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / known.wheel).write_bytes(b"half of it")
    assert known.read() == {INSIDE: TABLE}


def test_without_the_package_one_sentence_says_what_to_do(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = made_up(tmp_path)
    only_here(monkeypatch, index, tmp_path / "cache")
    with pytest.raises(DataUnavailable) as refused:
        known.read()
    assert refused.value.code is ErrorCode.FILE_NOT_FOUND
    assert refused.value.details["requirement"] == "madeup-table==1.0"
    assert refused.value.details["wheel"] == known.wheel
    assert "\n" not in str(refused.value)


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STAGEWISE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert source.get_cache_folder() == tmp_path / "stagewise" / "studies"
    monkeypatch.setenv("STAGEWISE_CACHE", str(tmp_path / "own"))
    assert source.get_cache_folder() == tmp_path / "own" / "studies"
