"""A statement about an experiment, the number that decides it, and the verdict."""

from typing import NamedTuple

import numpy as np

from stagewise.reports.result import Result

HOLDS, REMARK, FAILS = "holds", "holds with a remark", "does not hold"


class Claim(NamedTuple):
    """One line of the table of claims."""

    experiment: str
    name: str
    value: float | str
    criterion: str
    verdict: str
    must_hold: bool = False  # safety and bounds: the command fails if it does not
    remark: str = ""


def verdict(holds: bool) -> str:
    """Return the word for it."""
    return HOLDS if holds else FAILS


def final(result: Result) -> float:
    """Return the mean final regret."""
    return float(result.regret[:, -1].mean())


def safety(experiment: str, results: dict[str, Result]) -> Claim:
    """Every round of every run: the true expected costs are within their thresholds."""
    broken = sum(int(result.violations.sum()) for result in results.values())
    rounds = sum(int(result.rounds[-1]) * len(result.runs) for result in results.values())
    statement = f"no expected cost above its threshold in any of {rounds:,} rounds"
    return Claim(experiment, statement, float(broken), "0 violations", verdict(broken == 0), True)


def smaller(experiment: str, name: str, one: float, other: float, remark: str = "") -> Claim:
    """One number is below another."""
    return Claim(experiment, name, one, f"below {other:,.6g}", verdict(one < other), False, remark)


def exponent(result: Result) -> float:
    """Return the slope of log regret against log rounds over the last half of the horizon."""
    mean, half = result.regret.mean(axis=0), result.rounds >= result.rounds[-1] // 2
    first, last = np.argmax(half), -1
    growth = float(mean[last] / mean[first])
    return float(np.log(growth) / np.log(result.rounds[last] / result.rounds[first])) if growth > 0.0 else 0.0


def approach(result: Result) -> float:
    """Return the mean reward of the last tenth of the rounds, relative to the optimum."""
    tail = result.rounds > 0.9 * result.rounds[-1]
    return float(result.reward[:, tail].mean() / result.optimum[:, tail].mean())
