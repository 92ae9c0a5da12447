"""A log of six templates as a campaign leaves it behind: mostly what is done today (docs/how-to/forecast.md).

python examples/templates_log.py log.csv
stagewise forecast log.csv examples/templates.toml --limits opt_out=0.015,0.02,0.03 --days 30 --users-per-day 1000
"""

import csv
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

import templates

ROWS, DAYS = 20_000, 30
ODDS = (0.6, 0.08, 0.08, 0.08, 0.08, 0.08)


def write(path: Path, rows: int = ROWS) -> None:
    """Write the log: when, for whom, what was done and what came of it."""
    chance, truth = np.random.default_rng(4), templates.truth()
    named, scaled = templates.users(rows, chance)
    done = chance.choice(len(ODDS), rows, p=ODDS)
    click = chance.random(rows) < (scaled * truth.clicks[done]).sum(axis=1)
    costs = chance.random((2, rows)) < truth.costs[:, done]
    begin, names = datetime(2026, 3, 1), list(templates.PROBLEM.context)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["at", "action", *names, "click", "opt_out", "complaint"])
        for i in range(rows):
            at = (begin + timedelta(days=DAYS * i / rows)).isoformat(timespec="seconds")
            numbers = [f"{value:.4g}" for value in named[i].values()]
            outcome = [int(click[i]), int(costs[0, i]), int(costs[1, i])]
            table.writerow([at, templates.PROBLEM.action_names[done[i]], *numbers, *outcome])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
