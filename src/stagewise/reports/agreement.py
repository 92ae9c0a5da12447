"""Two certificates held side by side, leaf by leaf; and what a certificate says of how runs spread, if it can be so."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.reports.findings import column
from stagewise.reports.result import Result

WHOLE = "it"  # what differs is not within anything
SPREAD = ("first_violation", "optimism", "regret", "margins", "settled")  # said of all runs together


def disagreements(said: Any, due: Any, near: float, more: bool = False, path: str = "") -> Iterator[str]:
    """Yield where two plain values differ: numbers by more than `near`, relative above 1; all else at all.

    `more`: what is due may tell more than is said.

    >>> list(disagreements({"a": [1.0, 2]}, {"a": [1.0 + 1e-12, 3]}, near=1e-9))
    ['a.1']
    """
    if isinstance(due, dict) and isinstance(said, dict):
        if not said.keys() <= due.keys() or (not more and said.keys() != due.keys()):
            yield path or WHOLE
        for key in said.keys() & due.keys():
            yield from disagreements(said[key], due[key], near, more, f"{path}.{key}".lstrip("."))
    elif isinstance(due, list) and isinstance(said, list) and len(due) == len(said):
        for i, (one, other) in enumerate(zip(said, due, strict=True)):
            yield from disagreements(one, other, near, more, f"{path}.{i}".lstrip("."))
    elif isinstance(due, float) and isinstance(said, float | int) and not isinstance(said, bool):
        if not abs(said - due) <= near * max(1.0, abs(due)):
            yield path or WHOLE
    elif type(said) is not type(due) or said != due:
        yield path or WHOLE


def counts_fit(said: dict[str, Any], values: Floats, near: float) -> bool:
    """Say whether these are a histogram's counts; what lies within `near` of an edge may stand on either side."""
    edges, below = np.array(said["edges"]), np.concatenate([[0], np.cumsum(said["counts"])])
    ordered = np.sort(values)
    least, most = np.searchsorted(ordered, edges - near, "left"), np.searchsorted(ordered, edges + near, "right")
    return bool(np.all((least <= below) & (below <= most)))


def impossible(content: dict[str, Any], near: float) -> Iterator[str]:
    """Yield which sections say of all runs together what their own numbers, or the batches', rule out."""
    batches, runs = content["batches"], content["violations"]["runs"]
    first, hope, regret, settled = (content[name] for name in ("first_violation", "optimism", "regret", "settled"))
    if (first is None) != (content["violations"]["happened"] == 0) or not (first is None or ascending(first)):
        yield "first_violation"
    if hope is not None and not (hope["runs"] <= min(runs, hope["rounds"])):
        yield "optimism"
    if not all(map(ascending, curves_of(content))) or (regret["above"] or 0) > runs:
        yield "regret"
    worst = np.min([batch["margin"] for batch in batches], axis=0).tolist()
    lows = [one["quantiles"]["0"] for one in content["margins"].values()]
    whole = all(ascending(one["quantiles"]) and sum(one["counts"]) == runs for one in content["margins"].values())
    if not whole or any(disagreements(lows, worst, near)):
        yield "margins"
    cuts, never = settled["quantiles"], settled["never"]
    if never > runs or (cuts is None) != (never == runs) or not (cuts is None or ascending(cuts)):
        yield "settled"


def ascending(cuts: dict[str, float]) -> bool:
    """Say whether quantiles grow with their level."""
    ordered = [cuts[level] for level in sorted(cuts, key=float)]
    return all(one <= other + 1e-9 * max(1.0, abs(other)) for one, other in pairwise(ordered))


def outside(content: dict[str, Any], played: Result, near: float) -> Iterator[str]:
    """Yield which sections leave runs out that were played: below their least or above their largest value."""
    first, settled = column(played, "first_violation"), column(played, "settled")
    margins = [one["quantiles"] for one in content["margins"].values()]
    columns: dict[str, Any] = {
        "first_violation": [(content["first_violation"], first[first > 0])],
        "regret": zip(curves_of(content), played.regret.T, strict=False),
        "margins": zip(margins, column(played, "margin").T, strict=False),
        "settled": [(content["settled"]["quantiles"], settled[settled > 0])],
    }
    for name, rows in columns.items():
        if not all(values.size == 0 or (cuts is not None and held(cuts, values, near)) for cuts, values in rows):
            yield name


def curves_of(content: dict[str, Any]) -> list[dict[str, float]]:
    """Return the quantiles of regret at every recorded round."""
    cuts = content["regret"]["quantiles"]
    return [dict(zip(cuts, row, strict=True)) for row in zip(*cuts.values(), strict=True)]


def held(cuts: dict[str, float], values: Any, near: float) -> bool:
    """Say whether values lie between the least and the largest."""
    low, high = cuts["0"], cuts["1"]
    room = near * max(1.0, abs(low), abs(high))
    return bool(low - room <= values.min() and values.max() <= high + room)
