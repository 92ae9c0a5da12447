"""Machine code is unpickled, which runs what is in the file: nothing is read that another user can have put there."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.processes import ALONE, COMPILED, asked, files

pytestmark = pytest.mark.compiled

ANOTHER = 4242


class Trap:
    """What runs when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., int], tuple[str, int]]:
        return os.open, (str(self.marker), os.O_CREAT)


@pytest.fixture
def cache(compiled_once: Path, tmp_path: Path) -> Path:
    """Return a folder that is this user's own, whose kernels are traps."""
    cache = Path(shutil.copytree(compiled_once, tmp_path / "above" / "cache"))
    assert files(cache)
    for name in files(cache):
        Path(name).write_bytes(pickle.dumps(Trap(tmp_path / "marker")))
    return cache


def test_the_trap_is_one(cache: Path, tmp_path: Path) -> None:
    """In a folder of one's own it snaps, so that the tests below can fail."""
    asked(STAGEWISE_CACHE=str(cache))
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777], ids=["open", "sticky"])
def test_a_folder_that_others_can_write_to_is_neither_read_nor_written(cache: Path, tmp_path: Path, mode: int) -> None:
    (folder,) = (cache / "stagewise").iterdir()
    folder.chmod(mode)
    before = files(cache)
    out, complaint = asked(STAGEWISE_CACHE=str(cache))
    assert out == COMPILED
    assert complaint.count(ALONE) == 1
    assert "others than you and root own it or can change it" in complaint
    assert files(cache) == before
    assert not (tmp_path / "marker").exists()


def test_a_folder_that_others_can_exchange_is_not_read(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "above").chmod(0o777)
    assert asked(STAGEWISE_CACHE=str(cache))[0] == COMPILED
    assert not (tmp_path / "marker").exists()


def test_below_a_sticky_folder_one_keeps_what_is_ones_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert asked(STAGEWISE_CACHE=str(tmp_path)) == (COMPILED, "")
    assert files(tmp_path)


def test_a_file_that_others_can_write_to_is_not_read(cache: Path, tmp_path: Path) -> None:
    for name in files(cache):
        Path(name).chmod(0o666)
    assert asked(STAGEWISE_CACHE=str(cache))[0] == COMPILED
    assert not (tmp_path / "marker").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["*", "*/*.nbc"], ids=["folder", "file"])
def test_what_belongs_to_another_user_is_not_read(cache: Path, tmp_path: Path, what: str) -> None:
    for path in (cache / "stagewise").glob(what):
        os.chown(path, ANOTHER, ANOTHER)
    assert asked(STAGEWISE_CACHE=str(cache))[0] == COMPILED
    assert not (tmp_path / "marker").exists()


def test_a_link_to_where_others_can_write_is_not_followed(cache: Path, tmp_path: Path) -> None:
    (folder,) = (cache / "stagewise").iterdir()
    planted = folder.rename(tmp_path / "planted")
    planted.chmod(0o777)
    folder.symlink_to(planted)
    assert asked(STAGEWISE_CACHE=str(cache))[0] == COMPILED
    assert not (tmp_path / "marker").exists()


def test_what_is_written_is_not_writable_for_a_group(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        asked(STAGEWISE_CACHE=str(tmp_path / "cache"))
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o022 for path in (tmp_path / "cache").rglob("*")} == {0}
