"""What runs say of a probability: intervals, one for all times and one for a fixed number, and the verdict."""

import math
from typing import NamedTuple

from stagewise.kernels.signals.interval import Interval, kl_high, kl_interval

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"
MOST = 2**50  # runs nobody will play


class Evidence(NamedTuple):
    """How often something happened that may happen with probability `allowed` at most.

    Both intervals hold at once with the confidence asked for, each taking half of what may go wrong.
    """

    happened: int
    runs: int
    allowed: float
    anytime: Interval  # holds at every number of runs at once, so also when the runs were stopped by looking at it
    exact: Interval | None  # Clopper and Pearson's, for the number of runs planned; None: they were not all played
    verdict: str
    needed: int | None  # more or less, until it is supported at the present rate; None: decided, or never


def evidence(happened: int, runs: int, allowed: float, confidence: float, complete: bool) -> Evidence:
    """Weigh so many occurrences in so many runs; `complete`: all runs that were planned have been played."""
    half = (1.0 - confidence) / 2.0
    anytime = kl_interval(float(runs), happened / runs, math.log(1.0 / half))
    exact = clopper_pearson(happened, runs, half) if complete else None
    low = anytime.low if exact is None else max(anytime.low, exact.low)
    high = anytime.high if exact is None else min(anytime.high, exact.high)
    verdict = REFUTED if low > allowed else SUPPORTED if high <= allowed else UNDECIDED
    needed = runs_needed(happened / runs, allowed, confidence) if verdict == UNDECIDED else None
    return Evidence(happened, runs, allowed, Interval(*anytime), exact, verdict, needed)


def clopper_pearson(happened: int, runs: int, error: float) -> Interval:
    """Return the exact two-sided interval for a fixed number of runs: at most `error`/2 lies beyond either end.

    P(Bin(n, low) ≥ k) = error/2,    P(Bin(n, high) ≤ k) = error/2        (Clopper, Pearson 1934)
    """
    from scipy.stats import beta  # type: ignore[import-untyped]

    low = float(beta.ppf(error / 2.0, happened, runs - happened + 1)) if happened > 0 else 0.0
    high = float(beta.ppf(1.0 - error / 2.0, happened + 1, runs - happened)) if happened < runs else 1.0
    return Interval(low, high)


def runs_needed(rate: float, allowed: float, confidence: float) -> int | None:
    """Return after how many runs at this rate the upper end falls to what is allowed; None: it never would."""
    spent = math.log(2.0 / (1.0 - confidence))
    if not rate < allowed:
        return None
    high = 1
    while kl_high(float(high), rate, spent) > allowed:
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kl_high(float(middle), rate, spent) <= allowed else (middle, high)
    return high
