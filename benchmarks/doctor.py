"""The doctor on the notification job: how long it takes, and its picture.

OPENBLAS_NUM_THREADS=1 .venv/bin/python benchmarks/doctor.py speed  # processor time of up to 1,000,000 rows
.venv/bin/python benchmarks/doctor.py picture  # docs/pictures/doctor.png: half a year, opt-outs of one template rise
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.reports.style import write_figure

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
            "checked": lambda: sw.check_log(frame, PROBLEM),  # noqa: B023
            "proposed": lambda: sw.check_log(frame, limits={"opt_out": 0.02, "complaint": 0.005}),  # noqa: B023
        }.items():
            seconds = []
            for _ in range(3):
                started = time.process_time()
                found = ask()
                seconds.append(time.process_time() - started)
            print(f"| {rows:,} rows, {what} | {min(seconds):.1f} s | contradicted: {found.contradicted} |", flush=True)


def picture() -> None:
    """Draw half a year in which the opt-outs of one template rise from the third month on."""
    rows, chance = 50_000, np.random.default_rng(1)
    frame, part = month(rows), np.linspace(0.0, 1.0, rows)
    frame["at"] = 1.7e9 + part * 180 * 86_400.0
    risen = chance.random(rows) < 0.06 * np.maximum(part - 1 / 3, 0.0)
    frame["opt_out"] = np.maximum(frame["opt_out"], (frame["action"] == "digest") & risen)
    report = sw.check_log(frame, PROBLEM)
    print(report)
    write_figure(report.plot(), ROOT / "docs" / "pictures" / "doctor.png")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["speed"]:
        {"speed": speed, "picture": picture}[chosen]()
