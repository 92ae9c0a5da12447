"""A claim about an experiment: the value that decides it, the criterion, and the verdict."""

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.stored import RUNS, StoredResult

HOLDS, REMARK, FAILS = "holds", "holds with a remark", "does not hold"
FALSE_ALARM_RATE = 0.01  # probability of a false alarm for policies that keep their δ


class LimitCount(NamedTuple):
    """How often policies with a guarantee violated a limit."""

    runs_over: int  # with at least one round over a limit
    runs: int
    rounds_over: int
    rounds: int
    delta: float  # allowed share of runs; 0: the settings state none


class Claim(NamedTuple):
    """One row of the table of claims."""

    name: str
    value: float | str
    criterion: str
    verdict: str
    must_hold: bool = False  # safety and bounds: the command fails if it does not hold
    remark: str = ""
    experiment: str = ""  # set when all claims are collected, as is the next
    preset: str = ""  # where the experiment distinguishes several
    limits: LimitCount | None = None  # counts of a claim about limits


def to_verdict(holds: bool) -> str:
    """Return the verdict of a condition."""
    return HOLDS if holds else FAILS


def compute_final_regret(result: Result) -> float:
    """Return the mean final regret."""
    return float(result.regret[:, -1].mean())


def check_safety(results: dict[str, Result], delta: float = DELTA) -> Claim:
    """Count the runs in which a true expected cost was above its threshold in any round.

    Policies are tested one by one, because they share the same noise: only the runs of one policy are independent. The
    false-alarm probability is divided among them, so that it is `FALSE_ALARM_RATE` in total. With δ = 0, for settings
    that state none, every run over a limit counts against the claim, and the claim is not required.
    """
    over = [int((result.violations > 0).sum()) for result in results.values()]
    runs = [len(result.runs) for result in results.values()]
    most = [compute_allowed_runs(count, 1.0 - FALSE_ALARM_RATE / len(results), delta) for count in runs]
    rounds = sum(int(result.rounds[-1]) * len(result.runs) for result in results.values())
    violated_rounds = sum(int(result.violations.sum()) for result in results.values())
    limits = LimitCount(sum(over), sum(runs), violated_rounds, rounds, delta)
    within_limits = all(count <= most_runs for count, most_runs in zip(over, most, strict=True))
    word = FAILS if not within_limits else REMARK if limits.runs_over else HOLDS
    if delta > 0.0:
        statement = f"no policy breaks a limit in clearly more than δ = {delta:g} of its runs"
        criterion = f"at most {max(most)} of any policy's runs; a false alarm has a chance of {FALSE_ALARM_RATE:g}"
    else:
        statement, criterion = "no run breaks a limit", "no run, as these settings state no δ"
    value = f"{limits.runs_over:,} of {limits.runs:,} runs, {violated_rounds:,} of {rounds:,} rounds"
    return Claim(statement, value, criterion, word, delta > 0.0, limits=limits)


def compute_allowed_runs(runs: int, least: float, delta: float = DELTA) -> int:
    """Return the smallest k such that at most k runs violate a limit with probability `least`, if each does with δ.

    >>> compute_allowed_runs(10, 0.9, 0.01), compute_allowed_runs(10, 0.9998, 0.01)
    (0, 2)
    >>> compute_allowed_runs(2, 0.9998, 0.01), compute_allowed_runs(10, 0.9998, 0.0)
    (1, 0)
    """
    probabilities = (math.comb(runs, k) * delta**k * (1.0 - delta) ** (runs - k) for k in range(runs + 1))
    return next((k for k, probability in enumerate(accumulate(probabilities)) if probability >= least), runs)


def check_smaller(name: str, one: float, other: float, remark: str = "") -> Claim:
    """Return the claim that one number is below another."""
    return Claim(name, one, f"below {other:,.6g}", to_verdict(one < other), False, remark)


def check_clearly_smaller(name: str, one: Result, other: Result, disclosed: str) -> Claim:
    """Return the claim that one policy has less regret, by two standard errors of the paired difference."""
    gains = other.regret[:, -1] - one.regret[:, -1]
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / len(gains) ** 0.5)
    word = HOLDS if gain > 2.0 * error else REMARK if gain > 0.0 else FAILS
    remark = f"by {gain:,.1f}, standard error {error:,.1f}"
    if not gains.any():
        remark = "the same in every run: so few rounds, or equal settings, do not tell the two apart"
    elif word != HOLDS:
        remark += f"; {disclosed}" if word == FAILS else "; within the scatter of the runs"
    return Claim(
        name, round(compute_final_regret(one), 1), f"below {compute_final_regret(other):,.6g}", word, False, remark
    )


def compute_exponent(result: Result) -> float:
    """Return the slope of log regret against log rounds over the last half of the horizon."""
    mean, half = result.regret.mean(axis=0), result.rounds >= result.rounds[-1] // 2
    first, last = np.argmax(half), -1
    growth = float(mean[last] / mean[first])
    return float(np.log(growth) / np.log(result.rounds[last] / result.rounds[first])) if growth > 0.0 else 0.0


def compute_approach(result: Result) -> float:
    """Return the mean reward of the last tenth of the rounds, relative to the optimum."""
    tail = result.rounds > 0.9 * result.rounds[-1]
    return float(result.reward[:, tail].mean() / result.optimum[:, tail].mean())


def check_stored(name: str, result: Result, stored: StoredResult, remark: str = "") -> Claim:
    """Return the claim that the mean final regret equals the stored one, up to three standard errors."""
    regrets = result.regret[:, -1]
    error = math.sqrt(stored.deviation**2 / (RUNS - 1) + float(regrets.var()) / (len(regrets) - 1))
    statement = f"{name}'s final regret is the stored {stored.mean:,.0f} (sd {stored.deviation:,.0f})"
    mean = compute_final_regret(result)
    criterion = f"within {3.0 * error:,.0f}, three standard errors of the difference; ratio {mean / stored.mean:.3f}"
    close = to_verdict(abs(mean - stored.mean) <= 3.0 * error)
    return Claim(statement, round(mean), criterion, close, False, f"stored in {stored.file}{remark}")
