"""Two certificates held side by side, leaf by leaf; and what one says of all runs together, if it can be so."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.reports.findings import column
from stagewise.reports.result import Result

SPREAD = ("first_violation", "optimism", "regret", "margins", "settled")  # said of all runs together
SLIGHT = 1e-9


def disagreements(said: Any, due: Any, near: float, more: bool = False, path: str = "it") -> Iterator[str]:
    """Yield where two plain values differ: numbers by more than `near`, relative above 1; all else at all.

    `more`: what is due may tell more than is said.

    >>> list(disagreements({"a": [1.0, 2]}, {"a": [1.0 + 1e-12, 3]}, near=1e-9))
    ['it.a.1']
    """
    if isinstance(due, dict) and isinstance(said, dict):
        if not said.keys() <= due.keys() or (not more and said.keys() != due.keys()):
            yield path
        for key in said.keys() & due.keys():
            yield from disagreements(said[key], due[key], near, more, f"{path}.{key}")
    elif isinstance(due, list) and isinstance(said, list) and len(due) == len(said):
        for i, (one, other) in enumerate(zip(said, due, strict=True)):
            yield from disagreements(one, other, near, more, f"{path}.{i}")
    elif isinstance(due, float) and isinstance(said, float | int) and not isinstance(said, bool):
        if not abs(said - due) <= near * max(1.0, abs(due)):
            yield path
    elif type(said) is not type(due) or said != due:
        yield path


def counts_fit(said: dict[str, Any], values: Floats, near: float) -> bool:
    """Say whether these are a histogram's counts; what lies within `near` of an edge may stand on either side."""
    edges, below = np.array(said["edges"]), np.concatenate([[0], np.cumsum(said["counts"])])
    ordered = np.sort(values)
    least, most = np.searchsorted(ordered, edges - near, "left"), np.searchsorted(ordered, edges + near, "right")
    return bool(np.all((least <= below) & (below <= most)))


def impossible(content: dict[str, Any], played: Result, near: float) -> Iterator[str]:
    """Yield sections that say of all runs what their own numbers, the batches' totals or the played runs rule out."""
    runs, margins = content["violations"]["runs"], list(content["margins"].values())
    first, hope, regret, settled = (content[name] for name in ("first_violation", "optimism", "regret", "settled"))
    worst = np.min([batch["margin"] for batch in content["batches"]], axis=0).tolist()
    lows = [one["quantiles"]["0"] for one in margins]
    counted = {
        "first_violation": (first is None) == (content["violations"]["happened"] == 0),
        "optimism": hope is None or hope["runs"] <= min(runs, hope["rounds"]),
        "regret": (regret["above"] or 0) <= runs,
        "margins": all(sum(one["counts"]) == runs for one in margins) and not any(disagreements(lows, worst, near)),
        "settled": settled["never"] <= runs and (settled["quantiles"] is None) == (settled["never"] == runs),
    }
    yield from (name for name, possible in counted.items() if not possible)
    yield from (name for name, cuts, values in quantiles_in(content, played) if not spans(cuts, values, near))


def quantiles_in(content: dict[str, Any], played: Result) -> Iterator[tuple[str, dict[str, float] | None, Floats]]:
    """Yield the quantiles of each section, beside the same of the runs that were played."""
    for name, cuts in (("first_violation", content["first_violation"]), ("settled", content["settled"]["quantiles"])):
        rounds = column(played, name)
        yield name, cuts, rounds[rounds > 0]
    for one, values in zip(content["margins"].values(), column(played, "margin").T, strict=False):
        yield "margins", one["quantiles"], values
    curves = content["regret"]["quantiles"]
    for row, values in zip(zip(*curves.values(), strict=True), played.regret.T, strict=False):
        yield "regret", dict(zip(curves, row, strict=True)), values


def spans(cuts: dict[str, float] | None, values: Floats, near: float) -> bool:
    """Say whether quantiles grow with their level and leave none of these values out; None: there are no values."""
    if cuts is None:
        return values.size == 0
    ordered = [cuts[level] for level in sorted(cuts, key=float)]
    grow = all(one <= other + SLIGHT * max(1.0, abs(other)) for one, other in pairwise(ordered))
    room = near * max(1.0, abs(cuts["0"]), abs(cuts["1"]))
    return grow and bool(np.all((cuts["0"] - room <= values) & (values <= cuts["1"] + room)))
