"""What audited runs say: a digest and a few totals of every batch, and how all of them together spread."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.reports.result import Result

COUNTED = ("runs", "violations", "first_violation", "hopeless", "settled", "missed", "regret", "margin")
QUANTILES = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
LEVELS = tuple(f"{level:g}" for level in QUANTILES)
BARS = 40  # of the histogram


def column(result: Result, name: str) -> Any:
    """Return what was counted under a name, a row a run."""
    return {**vars(result), **(result.audit or {})}[name]


def digest(result: Result) -> str:
    """Return a fingerprint of what the runs did."""
    text = hashlib.sha256()
    for name in COUNTED:
        values = column(result, name)
        text.update(f"{name}{values.shape}".encode())
        text.update(np.ascontiguousarray(values, dtype="<f8" if values.dtype.kind == "f" else "<i8").tobytes())
    return text.hexdigest()


def totals(result: Result) -> dict[str, Any]:
    """Return what can be compared where other arithmetic rounds differently."""
    return {
        "first": int(result.runs[0]),
        "runs": len(result.runs),
        "violating": int((result.violations > 0).sum()),
        "missing": (column(result, "missed") > 0).sum(axis=0).tolist(),
        "regret": float(result.regret[:, -1].mean()),
        "margin": column(result, "margin").min(axis=0).tolist(),
        "digest": digest(result),
    }


def spread(result: Result, limits: Sequence[str]) -> dict[str, Any]:
    """Return what a certificate says of all runs together: how they spread."""
    hopeless, settled = column(result, "hopeless"), column(result, "settled")
    hope = {"runs": int((hopeless > 0).sum()), "rounds": int(hopeless.sum())}
    return {
        "first_violation": reached(column(result, "first_violation")),
        "optimism": None if hopeless.min() < 0 else hope,
        "regret": regrets(result.rounds, result.regret, column(result, "bound")),
        "margins": {name: margins(values) for name, values in zip(limits, column(result, "margin").T, strict=True)},
        "settled": {"never": int((settled == 0).sum()), "quantiles": reached(settled)},
    }


def quantiles(values: Any) -> dict[str, float]:
    """Return the quantiles that are shown."""
    return dict(zip(LEVELS, np.quantile(values, QUANTILES).tolist(), strict=True))


def reached(rounds: Ints) -> dict[str, float] | None:
    """Return when something first happened, of the runs in which it did; None: in none."""
    happened = rounds[rounds > 0]
    return None if happened.size == 0 else quantiles(happened)


def regrets(rounds: Ints, regret: Floats, bound: Floats) -> dict[str, Any]:
    """Return quantiles of regret at every recorded round, and how often it was above what a theorem allows."""
    cuts = np.quantile(regret, QUANTILES, axis=0)
    bounded = not np.isnan(bound).any()
    return {
        "rounds": rounds.tolist(),
        "quantiles": {level: row.tolist() for level, row in zip(LEVELS, cuts, strict=True)},
        "bound": np.median(bound, axis=0).tolist() if bounded else None,
        "above": int((regret > bound).any(axis=1).sum()) if bounded else None,
    }


def margins(values: Floats) -> dict[str, Any]:
    """Return quantiles and a histogram of what was left to a threshold."""
    low, high = float(values.min()), float(values.max())
    room = max(0.02 * (high - low), 1e-3)  # a margin of exactly nothing is common, and would have no width
    counts, edges = np.histogram(values, bins=BARS, range=(min(low, 0.0) - room, max(high, 0.0) + room))
    return {"quantiles": quantiles(values), "counts": counts.tolist(), "edges": edges.tolist()}
