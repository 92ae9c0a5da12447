"""Processes that decide and learn tables: killed at any instant, and no larger than a part of the table."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long


def run(*words: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", *words], cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_command_that_is_killed_and_run_again_ends_as_if_it_was_not() -> None:
    found = run("tests.cli.kill_tables", "12")
    assert found["different"] == []
    assert found["died"] > 18  # of 24; some call fewer functions than the first


@pytest.mark.parametrize("verb", ["decide", "learn"])
def test_memory_does_not_grow_with_the_table(verb: str) -> None:
    found = run("tests.cli.measure_tables", verb)
    assert found["grown"] < found["table"] * 2 / 3
