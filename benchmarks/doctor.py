"""The doctor on the notification job: how long it takes.

OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/doctor.py  # processor time of up to 1,000,000 rows
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
from templates import PROBLEM, log, truth  # noqa: E402


def month(rows: int, seed: int = 0) -> dict[str, Any]:
    """Return the log of examples/templates.py with times: arrays of 12 columns."""
    frame = {name: np.array(column) for name, column in log(truth(), rows, np.random.default_rng(seed)).items()}
    return {"at": 1.7e9 + np.linspace(0.0, 30 * 86_400.0, rows), **frame}


def speed() -> None:
    """Print seconds of processor time, the least of three."""
    for rows in (50_000, 1_000_000):
        frame = month(rows)
        for what, ask in {
            "checked": lambda: sw.doctor(frame, PROBLEM),  # noqa: B023
            "proposed": lambda: sw.doctor(frame, limits={"opt_out": 0.02, "complaint": 0.005}),  # noqa: B023
        }.items():
            seconds = []
            for _ in range(3):
                started = time.process_time()
                found = ask()
                seconds.append(time.process_time() - started)
            print(f"| {rows:,} rows, {what} | {min(seconds):.1f} s | contradicted: {found.contradicted} |", flush=True)


if __name__ == "__main__":
    speed()
