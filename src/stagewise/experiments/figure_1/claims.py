"""What the paper says of the figure, checked against the result files."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from stagewise.experiments.figure_1.plan import POLICIES, THRESHOLDS, Cell, load


class Claim(NamedTuple):
    """A statement, the number that decides it, and the verdict."""

    experiment: str
    name: str
    value: str
    criterion: str
    verdict: str
    must_hold: bool


def verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def check(folder: Path, size: str) -> list[Claim]:
    """Return every claim with its verdict."""
    claims, relative = [], []
    for threshold in THRESHOLDS:
        regret, best = {}, 1.0
        for name in POLICIES:
            results = load(folder, Cell(name, threshold), size)
            regret[name] = float(np.mean([result.regret[0, -1] for result in results]))
            best = float(results[0].optimum[0, 0] * results[0].rounds[-1])
            largest = max(float(result.max_cost[0, 0]) for result in results)
            statement = f"{name}, threshold {threshold:g}: the cost of every round of every run stays within it"
            safe = verdict(largest <= threshold)
            claims.append(Claim("figure-1", statement, f"{largest:.6f}", f"≤ {threshold:g}", safe, True))
        relative.append(regret["LC-LUCB"] / best)
        statement = f"threshold {threshold:g}: LC-LUCB regrets less than Safe-LTS"
        value, bar = f"{regret['LC-LUCB']:,.0f}", f"< {regret['Safe-LTS']:,.0f}"
        lower = verdict(regret["LC-LUCB"] < regret["Safe-LTS"])
        claims.append(Claim("figure-1", statement, value, bar, lower, False))
    falling = verdict(bool(np.all(np.diff(relative) < 0)))
    value = ", ".join(f"{share:.3f}" for share in relative)
    statement = "the problem is harder as the threshold falls: LC-LUCB's regret relative to the optimum"
    claims.append(Claim("figure-1", statement, value, "falls with the threshold", falling, False))
    return claims
