"""kill -9 at any instant: nothing acknowledged is lost or doubled, the chain holds, places have no gaps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def killed(address: str, kills: int, seed: int) -> None:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}
    told = [sys.executable, "-m", "tests.server.store.kill_writers", address, str(kills), str(seed)]
    done = subprocess.run(told, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    numbers = [int(number) for number in re.findall(r"\d+", done.stdout)]
    dead, _ended, acknowledged, ids, rows = numbers
    assert dead > kills / 2, done.stdout
    assert acknowledged > 10 * kills, done.stdout
    assert rows >= ids > 0, done.stdout


def test_sqlite(tmp_path: Path) -> None:
    killed(str(tmp_path / "server.db"), 20, 1)


def test_postgres(postgres: str) -> None:
    killed(postgres, 20, 2)


@pytest.mark.slow
def test_sqlite_a_thousand_times(tmp_path: Path) -> None:
    killed(str(tmp_path / "server.db"), 1000, 3)


@pytest.mark.slow
def test_postgres_a_thousand_times(postgres: str) -> None:
    killed(postgres, 1000, 4)
