"""A statement about an experiment, the number that decides it, and the verdict."""

import math
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.instances import DELTA
from stagewise_reproduction.stored import RUNS, Stored

HOLDS, REMARK, FAILS = "holds", "holds with a remark", "does not hold"
CHANCE = 0.01  # of finding fault with policies that keep their δ


class LimitCount(NamedTuple):
    """How often policies that promise to keep their limits broke one."""

    runs_over: int  # with at least one round over a limit
    runs: int
    rounds_over: int
    rounds: int
    delta: float  # the share of runs that may; 0: the settings state none


class Claim(NamedTuple):
    """One line of the table of claims."""

    name: str
    value: float | str
    criterion: str
    verdict: str
    must_hold: bool = False  # safety and bounds: the command fails if it does not
    remark: str = ""
    experiment: str = ""  # filled in when all claims are gathered, as is the next
    preset: str = ""  # where the experiment distinguishes several
    limits: LimitCount | None = None  # what a claim about limits counted


def verdict(holds: bool) -> str:
    """Return the word for it."""
    return HOLDS if holds else FAILS


def final(result: Result) -> float:
    """Return the mean final regret."""
    return float(result.regret[:, -1].mean())


def safety(results: dict[str, Result], delta: float = DELTA) -> Claim:
    """Count the runs in which a true expected cost was above its threshold, in whichever round.

    Policies are judged one by one, since they are shown the same noise: only the runs of one are independent. The
    chance of a false alarm is shared among them, so that it is `CHANCE` for all together. With δ = 0, for settings that
    state none, every run over a limit is one too many, and the claim need not hold.
    """
    over = [int((result.violations > 0).sum()) for result in results.values()]
    runs = [len(result.runs) for result in results.values()]
    most = [allowed(count, 1.0 - CHANCE / len(results), delta) for count in runs]
    rounds = sum(int(result.rounds[-1]) * len(result.runs) for result in results.values())
    broken = sum(int(result.violations.sum()) for result in results.values())
    limits = LimitCount(sum(over), sum(runs), broken, rounds, delta)
    kept = all(count <= may for count, may in zip(over, most, strict=True))
    word = FAILS if not kept else REMARK if limits.runs_over else HOLDS
    if delta > 0.0:
        statement = f"no policy breaks a limit in clearly more than δ = {delta:g} of its runs"
        criterion = f"at most {max(most)} of any policy's runs; a false alarm has a chance of {CHANCE:g}"
    else:
        statement, criterion = "no run breaks a limit", "no run, as these settings state no δ"
    value = f"{limits.runs_over:,} of {limits.runs:,} runs, {broken:,} of {rounds:,} rounds"
    return Claim(statement, value, criterion, word, delta > 0.0, limits=limits)


def allowed(runs: int, least: float, delta: float = DELTA) -> int:
    """Return the fewest runs k such that no more than k break a limit with probability `least`, if each does with δ.

    >>> allowed(10, 0.9, 0.01), allowed(10, 0.9998, 0.01), allowed(2, 0.9998, 0.01), allowed(10, 0.9998, 0.0)
    (0, 2, 1, 0)
    """
    chances = (math.comb(runs, k) * delta**k * (1.0 - delta) ** (runs - k) for k in range(runs + 1))
    return next((k for k, sure in enumerate(accumulate(chances)) if sure >= least), runs)


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


def like_stored(name: str, result: Result, stored: Stored, remark: str = "") -> Claim:
    """The mean final regret is the stored one, up to three standard errors of the difference."""
    own = result.regret[:, -1]
    error = math.sqrt(stored.spread**2 / (RUNS - 1) + float(own.var()) / (len(own) - 1))
    statement = f"{name}'s final regret is the stored {stored.mean:,.0f} (sd {stored.spread:,.0f})"
    criterion = (
        f"within {3.0 * error:,.0f}, three standard errors of the difference; ratio {final(result) / stored.mean:.3f}"
    )
    close = verdict(abs(final(result) - stored.mean) <= 3.0 * error)
    return Claim(statement, round(final(result)), criterion, close, False, f"stored in {stored.file}{remark}")
