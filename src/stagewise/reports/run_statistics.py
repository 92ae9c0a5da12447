"""Statistics of audited runs: digest and totals of every batch, and quantiles of all runs."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.reports.result import Result

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
    optimism_failures, first_near_optimal_round = (
        get_column(result, "optimism_failures"),
        get_column(result, "first_near_optimal_round"),
    )
    optimism = {"runs": int((optimism_failures > 0).sum()), "rounds": int(optimism_failures.sum())}
    return {
        "first_violation": compute_first_round_quantiles(get_column(result, "first_violation")),
        "optimism": None if optimism_failures.min() < 0 else optimism,
        "regret": summarize_regret(result.rounds, result.regret, get_column(result, "bound")),
        "margins": {
            name: summarize_margins(values) for name, values in zip(limits, get_column(result, "margin").T, strict=True)
        },
        "first_near_optimal_round": {
            "never": int((first_near_optimal_round == 0).sum()),
            "quantiles": compute_first_round_quantiles(first_near_optimal_round),
        },
    }


def compute_quantiles(values: Any) -> dict[str, float]:
    """Return the quantiles of a certificate."""
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
