"""Histories of servers while they and PostgreSQL are killed, links are cut and slow, and clocks are set."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psycopg")
pytestmark = pytest.mark.long


def check(kills: int, seed: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.server.histories", str(kills), str(seed)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=6000, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout)
    assert found["violations"] == []
    assert sum(found["killed"].values()) == kills
    assert len(found["killed"]) == 3, "servers died, and PostgreSQL in both ways"
    assert found["acknowledged"]["decision"] > 2 * kills


def test_a_history_of_crashes_passes() -> None:
    check(12, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_histories_of_a_thousand_crashes_pass(seed: int) -> None:
    check(100, 100 + seed)
