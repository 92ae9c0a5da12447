"""What is claimed, and what runs say of it: intervals, one for all times and one for a fixed number, and a verdict."""

import math
from typing import Any, NamedTuple

from stagewise.kernels.signals.interval import Interval, kl_high, kl_interval

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"
MOST = 2**50  # runs nobody will play
FORMAT, VERSION = "stagewise-certificate", 1
VERIFY = "stagewise certify --verify certificate.json"  # what anybody types to check one


class Terms(NamedTuple):
    """What is claimed, and how sure one wants to be."""

    delta: float  # a run may break a limit with this probability at most
    confidence: float
    rounds: int
    names: tuple[str, ...]  # the reward, then every cost
    shares: tuple[float | None, ...]  # the probability that each signal's intervals may fail with; None: it has none


def evidence(happened: int, runs: int, allowed: float, confidence: float, complete: bool) -> dict[str, Any]:
    """Weigh what happened in so many runs and may with probability `allowed`; `complete`: as many as were planned.

    Both intervals hold at once with this confidence, each taking half of what may go wrong: `anytime` at every number
    of runs at once, so also when they were stopped by looking at it; `exact`, Clopper and Pearson's, for the number
    planned. `needed` is how many runs more or less would support it at the present rate; None: decided, or never.
    """
    half = (1.0 - confidence) / 2.0
    anytime = list(kl_interval(float(runs), happened / runs, math.log(1.0 / half)))
    exact = list(clopper_pearson(happened, runs, half)) if complete else None
    low, high = max(anytime[0], (exact or anytime)[0]), min(anytime[1], (exact or anytime)[1])
    verdict = REFUTED if low > allowed else SUPPORTED if high <= allowed else UNDECIDED
    needed = runs_needed(happened / runs, allowed, confidence) if verdict == UNDECIDED else None
    found = {"happened": happened, "runs": runs, "allowed": allowed}
    return {**found, "anytime": anytime, "exact": exact, "verdict": verdict, "needed": needed}


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


def plus(counts: list[int], batch: dict[str, Any]) -> list[int]:
    """Return, with one batch more: runs, those that broke a limit, those in which an interval of each signal missed."""
    more = [batch["runs"], batch["violating"], *batch["missing"]]
    return [one + other for one, other in zip(counts or [0] * len(more), more, strict=True)]


def weighed(counts: list[int], terms: Terms, complete: bool) -> dict[str, Any]:
    """Return what a certificate says by its totals; `complete`: these runs are all that were planned."""
    runs, violating, *missing = counts

    def one(happened: int, allowed: float) -> dict[str, Any]:
        return evidence(happened, runs, allowed, terms.confidence, complete)

    claim, signals = one(violating, terms.delta), zip(terms.names, missing, terms.shares, strict=True)
    coverage = [{"signal": name, **one(missed, share)} for name, missed, share in signals if share is not None]
    verdicts = [one["verdict"] for one in coverage]
    return {
        "format": FORMAT,
        "version": VERSION,
        "verdict": claim["verdict"],
        "grounds": next((word for word in (REFUTED, UNDECIDED) if word in verdicts), SUPPORTED),  # the intervals
        "claim": {"delta": terms.delta, "confidence": terms.confidence, "rounds": terms.rounds},
        "violations": claim,
        "coverage": coverage,
        "verify": VERIFY,
    }


def clear(counts: list[int], terms: Terms) -> bool:
    """Say whether more runs would change nothing: the claim is refuted, or it and all its grounds are decided."""
    said = weighed(counts, terms, complete=False)
    return said["verdict"] == REFUTED or UNDECIDED not in (said["verdict"], said["grounds"])
