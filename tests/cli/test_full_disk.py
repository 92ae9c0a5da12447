"""On a full disk every command says so in one sentence and leaves with 2; with room again, the same call goes on."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import GOOD, called, spec
from tests.sizes import sized

PAGE = 4096
SIZE = 2**20
SPEC = GOOD.replace("rounds = 20", "rounds = 2")
SEVERAL = SPEC.replace("[policy]", "[policies.one]")
COMMANDS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "simulate": (SPEC, ("--quiet",)),
    "compare": (SEVERAL, ("--quiet",)),
    "certify": (SPEC, ("--quiet", "--runs", 20, "--exhaustive", "--delta", 0.9, "--confidence", 0.5)),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of one mebibyte."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this machine lets nobody mount a small disk here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def leave(disk: Path, pages: int) -> Path:
    """Fill a disk but for so many pages."""
    stats = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes((stats.f_bavail * stats.f_frsize // PAGE - pages) * PAGE))
    return ballast


def assert_one_sentence(said: str) -> None:
    lines = said.strip().splitlines()
    assert len(lines) == 1, said
    assert lines[0].startswith("stagewise: ")
    assert "No space left on device" in lines[0]
    assert "free some space" in lines[0]


@sized((0, 9), (0, 1, 2, 3, 4, 6, 9, 14, 20, 255))
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_sentence_wherever_it_fills_up(
    command: str, size: tuple[int, ...], disk: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, words = COMMANDS[command]
    file, codes = spec(tmp_path, text), []
    for pages in size:
        ballast, out = leave(disk, min(pages, SIZE // PAGE - 4)), disk / "out"
        code, said = called(command, file, "--out", out, *words)
        codes.append(code)
        if code != 0:
            assert code == 2, said
            assert_one_sentence(said)
            ballast.unlink()
            assert called(command, file, "--out", out, *words)[0] == 0
        ballast.unlink(missing_ok=True)
        subprocess.run(["rm", "-r", str(out)], check=True)
    assert codes[0] == 2
    assert codes[-1] == 0 or len(size) == 2
    assert "panicked" not in capfd.readouterr().err


def full(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_takes_no_file_is_one_sentence(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, words = COMMANDS[command]
    file = spec(tmp_path, text)
    monkeypatch.setattr(os, "fsync", full)
    code, said = called(command, file, "--out", tmp_path / "out", *words)
    assert code == 2
    assert_one_sentence(said)


PRINTED = {
    "help": ("help", "cli"),
    "the options": ("--help",),
    "the options of a command": ("simulate", "--help"),
    "simulate": ("simulate", "spec.toml", "--out", "out", "--quiet"),
}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("words", PRINTED.values(), ids=PRINTED)
def test_an_output_that_cannot_be_written_is_one_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    if words[-1] == "--quiet":
        assert called("simulate", spec(tmp_path, SPEC), "--out", tmp_path / "out", "--quiet")[0] == 0
    line = [sys.executable, "-m", "stagewise.cli.main", *words]
    with open("/dev/full", "w", encoding="utf-8") as full_device:
        told: dict[str, Any] = {"stdout": full_device, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
        done = subprocess.run(line, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False, **told)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert_one_sentence(done.stderr)


def test_who_has_read_enough_hears_nothing(tmp_path: Path) -> None:
    line = f"{sys.executable} -m stagewise.cli.main help cli | head -n 1"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(line, shell=True, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("# Command line\n", "")
