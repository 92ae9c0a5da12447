"""Files that are there whole or not at all."""

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.problem.refusal import refused

from stagewise import InvalidFile
from stagewise.files import paths as atomic_write
from stagewise.files.paths import parse_path, read_file, write_bytes, write_text
from stagewise.problem.errors import ErrorCode


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_text_is_written(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "δ = 0.05\n")
    assert (tmp_path / "a.txt").read_bytes() == "δ = 0.05\n".encode()
    assert names(tmp_path) == ["a.txt"]


class Interrupted(BaseException):
    """Whatever ends the writing."""


@pytest.mark.parametrize("trouble", [Interrupted(), ValueError("mine"), KeyboardInterrupt()], ids=repr)
def test_what_was_there_stays_when_the_writing_ends_early(
    trouble: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("old")

    def stop(descriptor: int) -> None:
        assert len(names(tmp_path)) == 2, "a draft stands beside it"
        raise trouble

    monkeypatch.setattr(atomic_write.os, "fsync", stop)
    with pytest.raises(type(trouble)):
        write_text(tmp_path / "a", "half")
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_what_is_refused_by_its_check_stays(tmp_path: Path) -> None:
    def check(existing: bytes) -> None:
        if existing == b"old":
            raise InvalidFile(ErrorCode.PROBLEM_MISMATCH, "the file belongs to another agent")

    write_bytes(tmp_path / "a", b"old", check)
    with refused(InvalidFile, ErrorCode.PROBLEM_MISMATCH):
        write_bytes(tmp_path / "a", b"new", check)
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EDQUOT], ids=os.strerror)
def test_what_the_system_refuses_is_said_in_a_sentence(step: str, code: int, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "a").write_text("old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(atomic_write.os, step, fail)
    with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, tmp_path / "a", os.strerror(code)):
        write_text(tmp_path / "a", "new")
    monkeypatch.undo()
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]


FULL = """
import resource, sys
from pathlib import Path
from stagewise import Agent, InvalidFile, OPB, SafeAction
from stagewise.files.paths import write_bytes
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
agent = Agent(OPB(arms=300, safe_action=SafeAction(arm=0, reward=0.1, cost=0.1), threshold=0.5))
for save in (lambda: write_bytes(Path(sys.argv[1]), bytes(10**6)), lambda: agent.save(sys.argv[1], overwrite=True)):
    try:
        save()
    except InvalidFile as refusal:
        print(refusal)
"""


@pytest.mark.long
def test_a_disk_that_takes_no_more_leaves_the_old_file(tmp_path: Path) -> None:
    """The system itself stops the writing, in the middle of it."""
    path = tmp_path / "a"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert len(said) == 2
    assert all(str(path) in line and os.strerror(errno.EFBIG) in line for line in said)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the superuser")
def test_a_folder_that_must_not_be_written_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with refused(InvalidFile, tmp_path / "a", os.strerror(errno.EACCES)):
        write_text(tmp_path / "a", "new")


def special(folder: Path) -> dict[str, Path]:
    """Return what is no plain file."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(folder)  # a socket's name must be short
        one.bind("socket")
        os.chdir(here)
    (folder / "link").symlink_to(folder / "pipe")
    return {
        "a folder": folder / "folder",
        "a pipe": folder / "pipe",
        "a socket": folder / "socket",
        "a device": Path(os.devnull),
    } | {"a pipe ": folder / "link"}


def test_what_is_no_plain_file_is_neither_replaced_nor_read(tmp_path: Path) -> None:
    """A pipe would keep the reader waiting, and a device would be gone."""
    places = special(tmp_path)
    before = names(tmp_path)
    for kind, place in places.items():
        mode = os.stat(place).st_mode
        with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, place, kind.strip()):
            write_text(place, "new")
        with refused(InvalidFile, ErrorCode.FILE_WRONG_KIND, place, kind.strip()):
            read_file(place)
        assert os.stat(place).st_mode == mode
    assert names(tmp_path) == before


def test_a_link_is_followed_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "inner" / "a")
    for text in ("first", "second"):
        write_text(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "inner" / "a").read_text() == text
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, tmp_path / "round"):
        write_text(tmp_path / "round", "text")
    assert (names(tmp_path), names(tmp_path / "inner")) == (["inner", "link", "round"], ["a"])


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual_one(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    (tmp_path / "a").chmod(0o600)
    write_text(tmp_path / "a", "newer")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_the_longest_name_there_is_can_be_written_and_a_longer_one_is_refused(tmp_path: Path) -> None:
    write_text(tmp_path / ("x" * 255), "new")
    assert (tmp_path / ("x" * 255)).read_text() == "new"
    for name in ("x" * 256, "/".join(["y" * 200] * 30)):
        with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE, os.strerror(errno.ENAMETOOLONG)):
            write_text(tmp_path / name, "new")


@pytest.mark.parametrize("name", ["a\nb", "a\tb. c", "δ", " ", "…"], ids=repr)
def test_an_odd_name_is_a_name(name: str, tmp_path: Path) -> None:
    write_bytes(tmp_path / name, b"new")
    assert read_file(parse_path(str(tmp_path / name))) == b"new"
    with pytest.raises(InvalidFile) as refusal:
        write_bytes(tmp_path / name / "b", b"new")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "path", [None, b"agent.json", 3, 0.5, True, "", "a\0b", "a\udcff", ["a"], object, Path], ids=repr
)
def test_what_is_no_path_is_refused(path: Any) -> None:
    with refused(InvalidFile, "path"):
        parse_path(path)
