"""The evidence of a certificate: statistics of audited runs, intervals of what went wrong in them, and a verdict."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.models.intervals import Interval, compute_kl_interval, compute_kl_upper
from stagewise.reports.result import Result

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"
MAX_RUNS = 2**50  # more runs are not feasible
FORMAT, VERSION = "stagewise-certificate", 1
VERIFY_COMMAND = "stagewise certify --verify certificate.json"  # the command that checks a certificate

# What a digest hashes: columns in this order, each under a label. The labels are a file format: certificates hold
# digests that were made with them, so a label stays when its column is renamed.
DIGEST_LABELS = {
    "runs": b"runs",
    "violations": b"violations",
    "first_violation": b"first_violation",
    "optimism_failures": b"hopeless",
    "first_near_optimal_round": b"settled",
    "missed": b"missed",
    "regret": b"regret",
    "margin": b"margin",
}
QUANTILES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
LEVELS = tuple(f"{level:g}" for level in QUANTILES)
BARS = 40  # of the histogram


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
        "coverage_verdict": next((word for word in (REFUTED, UNDECIDED) if word in verdicts), SUPPORTED),
        "claim": {"delta": terms.delta, "confidence": terms.confidence, "rounds": terms.rounds},
        "violations": claim,
        "coverage": coverage,
        "verify": VERIFY_COMMAND,
    }


def is_decided(counts: list[int], terms: ClaimTerms) -> bool:
    """Say whether more runs would change nothing: the claim is refuted, or it and its coverage are decided."""
    summary = summarize_evidence(counts, terms, complete=False)
    return summary["verdict"] == REFUTED or UNDECIDED not in (summary["verdict"], summary["coverage_verdict"])


def get_column(result: Result, name: str) -> Any:
    """Return a column of a result or of its audit, one row per run."""
    return {**vars(result), **(result.audit or {})}[name]


def compute_digest(result: Result) -> str:
    """Return a SHA-256 of everything that was counted in the runs."""
    digest = hashlib.sha256()
    for name, label in DIGEST_LABELS.items():
        values = get_column(result, name)
        digest.update(label + str(values.shape).encode())
        digest.update(np.ascontiguousarray(values, dtype="<f8" if values.dtype.kind == "f" else "<i8").tobytes())
    return digest.hexdigest()


def compute_totals(result: Result) -> dict[str, Any]:
    """Return totals that can be compared where arithmetic rounds differently."""
    return {
        "first": int(result.runs[0]),
        "runs": len(result.runs),
        "violating_runs": int((result.violations > 0).sum()),
        "missing": (get_column(result, "missed") > 0).sum(axis=0).tolist(),
        "regret": float(result.regret[:, -1].mean()),
        "margin": get_column(result, "margin").min(axis=0).tolist(),
        "digest": compute_digest(result),
    }


def summarize_runs(result: Result, limits: Sequence[str]) -> dict[str, Any]:
    """Return the quantiles and histograms of all runs."""
    failures, near_optimal = get_column(result, "optimism_failures"), get_column(result, "first_near_optimal_round")
    optimism = {"runs": int((failures > 0).sum()), "rounds": int(failures.sum())}
    return {
        "first_violation": compute_first_round_quantiles(get_column(result, "first_violation")),
        "optimism": None if failures.min() < 0 else optimism,
        "regret": summarize_regret(result.rounds, result.regret, get_column(result, "bound")),
        "margins": {
            name: summarize_margins(values) for name, values in zip(limits, get_column(result, "margin").T, strict=True)
        },
        "first_near_optimal_round": {
            "never": int((near_optimal == 0).sum()),
            "quantiles": compute_first_round_quantiles(near_optimal),
        },
    }


def compute_quantiles(values: Any) -> dict[str, float]:
    return dict(zip(LEVELS, np.quantile(values, QUANTILES).tolist(), strict=True))


def compute_first_round_quantiles(rounds: Ints) -> dict[str, float] | None:
    """Return the quantiles of a first round, over the runs that have one; None: no run has."""
    happened = rounds[rounds > 0]
    return None if happened.size == 0 else compute_quantiles(happened)


def summarize_regret(rounds: Ints, regret: Floats, bound: Floats) -> dict[str, Any]:
    """Return quantiles of regret at every recorded round, and how many runs exceed the bound."""
    cuts = np.quantile(regret, QUANTILES, axis=0)
    bounded = not np.isnan(bound).any()
    return {
        "rounds": rounds.tolist(),
        "quantiles": {level: row.tolist() for level, row in zip(LEVELS, cuts, strict=True)},
        "bound": np.median(bound, axis=0).tolist() if bounded else None,
        "above": int((regret > bound).any(axis=1).sum()) if bounded else None,
    }


def summarize_margins(values: Floats) -> dict[str, Any]:
    """Return quantiles and a histogram of the distance to a threshold."""
    low, high = float(values.min()), float(values.max())
    room = max(0.02 * (high - low), 1e-3)  # a margin of exactly 0 is common, and would have no width
    counts, edges = np.histogram(values, bins=BARS, range=(min(low, 0.0) - room, max(high, 0.0) + room))
    return {"quantiles": compute_quantiles(values), "counts": counts.tolist(), "edges": edges.tolist()}
