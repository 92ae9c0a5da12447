"""A statement about an experiment, the number that decides it, and the verdict."""

from typing import NamedTuple

import numpy as np

from stagewise.reports.result import Result

HOLDS, REMARK, FAILS = "holds", "holds with a remark", "does not hold"


class Claim(NamedTuple):
    """One line of the table of claims."""

    name: str
    value: float | str
    criterion: str
    verdict: str
    must_hold: bool = False  # safety and bounds: the command fails if it does not
    remark: str = ""
    experiment: str = ""  # filled in when all claims are gathered


def verdict(holds: bool) -> str:
    """Return the word for it."""
    return HOLDS if holds else FAILS


def final(result: Result) -> float:
    """Return the mean final regret."""
    return float(result.regret[:, -1].mean())


def safety(results: dict[str, Result]) -> Claim:
    """Every round of every run: the true expected costs are within their thresholds."""
    broken = sum(int(result.violations.sum()) for result in results.values())
    rounds = sum(int(result.rounds[-1]) * len(result.runs) for result in results.values())
    statement = f"no expected cost above its threshold in any of {rounds:,} rounds"
    return Claim(statement, float(broken), "0 violations", verdict(broken == 0), True)


def smaller(name: str, one: float, other: float, remark: str = "") -> Claim:
    """One number is below another."""
    return Claim(name, one, f"below {other:,.6g}", verdict(one < other), False, remark)


def clearly_smaller(name: str, one: Result, other: Result, disclosed: str) -> Claim:
    """One policy regrets less than another in the same runs, by more than two standard errors of the difference."""
    gains = other.regret[:, -1] - one.regret[:, -1]
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / len(gains) ** 0.5)
    word = HOLDS if gain > 2.0 * error else REMARK if gain > 0.0 else FAILS
    remark = f"by {gain:,.1f}, standard error {error:,.1f}"
    if not gains.any():
        remark = "the same in every run: so few rounds, or equal settings, do not tell the two apart"
    elif word != HOLDS:
        remark += f"; {disclosed}" if word == FAILS else "; within the scatter of the runs"
    return Claim(name, round(final(one), 1), f"below {final(other):,.6g}", word, False, remark)


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
