"""Claims and their evidence: intervals for all times and for a fixed number of runs, and a verdict."""

import math
from typing import Any, NamedTuple

from stagewise.models.intervals import Interval, compute_kl_interval, compute_kl_upper

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"
MAX_RUNS = 2**50  # more runs are not feasible
FORMAT, VERSION = "stagewise-certificate", 1
VERIFY_COMMAND = "stagewise certify --verify certificate.json"  # the command that checks a certificate


class ClaimTerms(NamedTuple):
    """The terms of a claim."""

    delta: float  # the largest probability of a broken run
    confidence: float
    rounds: int
    names: tuple[str, ...]  # the reward, then every cost
    shares: tuple[float | None, ...]  # allowed probability that each signal's intervals fail; None: it has none


def assess_evidence(occurrences: int, runs: int, allowed: float, confidence: float, complete: bool) -> dict[str, Any]:
    """Assess an event that occurred in some runs and may with probability `allowed`; `complete`: all planned runs.

    Both intervals hold at once with this confidence, each with half of the error: `anytime` for every number of runs at
    once, so also after early stopping; `exact`, Clopper and Pearson's, for the planned number. `runs_needed` is how
    many runs would support the claim at the present rate; None: it is decided, or no number would.
    """
    half = (1.0 - confidence) / 2.0
    anytime = list(compute_kl_interval(float(runs), occurrences / runs, math.log(1.0 / half)))
    exact = list(clopper_pearson(occurrences, runs, half)) if complete else None
    low, high = max(anytime[0], (exact or anytime)[0]), min(anytime[1], (exact or anytime)[1])
    verdict = REFUTED if low > allowed else SUPPORTED if high <= allowed else UNDECIDED
    needed = compute_runs_needed(occurrences / runs, allowed, confidence) if verdict == UNDECIDED else None
    found = {"occurrences": occurrences, "runs": runs, "allowed": allowed}
    return {**found, "anytime": anytime, "exact": exact, "verdict": verdict, "runs_needed": needed}


def clopper_pearson(occurrences: int, runs: int, error: float) -> Interval:
    """Return the exact two-sided interval for a fixed number of runs: at most `error`/2 lies beyond either end.

    P(Bin(n, low) ≥ k) = error/2,    P(Bin(n, high) ≤ k) = error/2        (Clopper, Pearson 1934)
    """
    from scipy.stats import beta  # type: ignore[import-untyped]

    low = float(beta.ppf(error / 2.0, occurrences, runs - occurrences + 1)) if occurrences > 0 else 0.0
    high = float(beta.ppf(1.0 - error / 2.0, occurrences + 1, runs - occurrences)) if occurrences < runs else 1.0
    return Interval(low, high)


def compute_runs_needed(rate: float, allowed: float, confidence: float) -> int | None:
    """Return after how many runs at this rate the upper end falls to the allowed rate; None: never."""
    log_level = math.log(2.0 / (1.0 - confidence))
    if not rate < allowed:
        return None
    high = 1
    while compute_kl_upper(float(high), rate, log_level) > allowed:
        high *= 2
        if high > MAX_RUNS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if compute_kl_upper(float(middle), rate, log_level) <= allowed else (middle, high)
    return high


def add_batch(counts: list[int], batch: dict[str, Any]) -> list[int]:
    """Return the counts with one more batch: runs, broken runs, and runs with a missed interval by signal."""
    more = [batch["runs"], batch["violating_runs"], *batch["missing"]]
    return [one + other for one, other in zip(counts or [0] * len(more), more, strict=True)]


def summarize_evidence(counts: list[int], terms: ClaimTerms, complete: bool) -> dict[str, Any]:
    """Return the verdicts of a certificate from its totals; `complete`: all planned runs."""
    runs, violating, *missing = counts

    def one(occurrences: int, allowed: float) -> dict[str, Any]:
        return assess_evidence(occurrences, runs, allowed, terms.confidence, complete)

    claim, signals = one(violating, terms.delta), zip(terms.names, missing, terms.shares, strict=True)
    coverage = [{"signal": name, **one(missed, share)} for name, missed, share in signals if share is not None]
    verdicts = [one["verdict"] for one in coverage]
    return {
        "format": FORMAT,
        "version": VERSION,
        "verdict": claim["verdict"],
        "coverage_verdict": next(
            (word for word in (REFUTED, UNDECIDED) if word in verdicts), SUPPORTED
        ),  # the intervals
        "claim": {"delta": terms.delta, "confidence": terms.confidence, "rounds": terms.rounds},
        "violations": claim,
        "coverage": coverage,
        "verify": VERIFY_COMMAND,
    }


def is_decided(counts: list[int], terms: ClaimTerms) -> bool:
    """Say whether more runs would change nothing: the claim is refuted, or it and its coverage are decided."""
    summary = summarize_evidence(counts, terms, complete=False)
    return summary["verdict"] == REFUTED or UNDECIDED not in (summary["verdict"], summary["coverage_verdict"])
