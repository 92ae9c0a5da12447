"""What shows and measures the server runs: the Makefile's commands, and the benchmark for a moment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_serve_is_a_command_that_there_is() -> None:
    told = subprocess.run(["make", "-n", "serve"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in told.splitlines() if "stagewise serve" in line)
    words = line.split()[1:]
    assert words[:2] == ["serve", "examples/notifications.toml"]
    assert (ROOT / words[1]).is_file()
    help_ = [sys.executable, "-m", "stagewise.cli.main", "serve", "--help"]
    known = subprocess.run(help_, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    assert [word for word in words if word.startswith("--") and word not in known.stdout] == []


def test_the_benchmark_of_the_server_measures_something() -> None:
    words = ["--seconds", "0.2", "--turns", "1", "--clients", "4", "--decisions", "200"]
    told = subprocess.run(
        [sys.executable, "benchmarks/server.py", *words], cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    rates = [line.split("/s")[0].split()[-1] for line in told.stdout.splitlines() if "/s   p50" in line]
    assert len(rates) == 3  # the server and both echoes
    assert all(int(rate.replace(",", "")) > 0 for rate in rates)
    assert "A log and its state" in told.stdout
