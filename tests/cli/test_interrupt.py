"""Ctrl+C and kill, for real: one line, exit code 130, what was played is kept, and no worker is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.commands import GOOD, spec

import stagewise as sw

LONG = GOOD.replace("rounds = 20", "rounds = 100").replace("runs = 2", "runs = 500")
BOTH = LONG.replace("[policy]", "[policies.one]")
COMMANDS = {
    "simulate": (LONG, ("--quiet", "--executor", "processes:2")),
    "compare": (BOTH, ("--quiet",)),
    "certify": (GOOD.replace("rounds = 20", "rounds = 5"), ("--quiet", "--runs", "2000", "--exhaustive")),
}
TIMEOUT = 60.0
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")


def begun(words: list[str]) -> "subprocess.Popen[str]":
    """Start a command as a terminal does: in a group of its own, that Ctrl+C reaches as a whole."""
    line = [sys.executable, "-m", "stagewise.cli.main", *words]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(line, env=env, start_new_session=True, **told)  # type: ignore[call-overload, no-any-return]


def wait_for_parts(out: Path, running: "subprocess.Popen[str]") -> None:
    """Wait until a run is kept."""
    end = time.monotonic() + TIMEOUT
    while not any(out.glob("**/parts/*/manifest.json")):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(group: int) -> bool:
    """Say whether a process of a group is left."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def assert_nobody_left(group: int) -> None:
    end = time.monotonic() + TIMEOUT
    while alive(group) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(group)


@pytest.mark.parametrize("command", ["simulate", "certify", pytest.param("compare", marks=pytest.mark.slow)])
def test_after_an_interrupt_one_line_says_how_to_go_on(command: str, tmp_path: Path) -> None:
    text, words = COMMANDS[command]
    out = tmp_path / "out"
    running = begun([command, str(spec(tmp_path, text)), "--out", str(out), *words])
    wait_for_parts(out, running)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=TIMEOUT)
    assert running.returncode == 130, said
    assert said.count("\n") == 1, said
    assert said.startswith("stagewise: interrupted; ")
    assert said.endswith("run the same command again to continue\n")
    assert str(out) in said
    assert_nobody_left(running.pid)


def test_what_was_kept_before_an_interrupt_is_not_played_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = begun(["simulate", str(spec(tmp_path, LONG)), "--out", str(out), "--quiet"])
    wait_for_parts(out, running)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=TIMEOUT)
    first = sorted(out.glob("parts/*/curves.parquet"))[0]
    written = first.stat().st_mtime_ns
    few = LONG.replace("runs = 500", "runs = 3")
    again = begun(["simulate", str(spec(tmp_path, few)), "--out", str(out), "--quiet"])
    assert again.wait(TIMEOUT) == 0
    again.communicate()
    assert first.stat().st_mtime_ns == written
    assert len(sw.Result.load(out).runs) == 3


def test_workers_end_when_the_command_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = begun(["simulate", str(spec(tmp_path, LONG)), "--out", str(out), "--quiet", "--executor", "processes:2"])
    wait_for_parts(out, running)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=TIMEOUT)  # ends when the last process that has its output does
    assert_nobody_left(running.pid)


def test_ctrl_c_while_it_is_still_being_imported_is_quiet() -> None:
    code = (
        "import os, runpy, signal, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "runpy.run_module('stagewise', run_name='__main__')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, "problem"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
