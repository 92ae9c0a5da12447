"""Whether rows stand in the log twice: an outcome that counts twice makes bounds too narrow."""

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.finding import Finding
from stagewise.problem.words import several

# What a row is called by; a session has several rows, and a user too.
IDS = re.compile(r"(decision|request|event|row|message|impression|log)?_?(id|uuid|key)", re.IGNORECASE)
REMEDY = "keep one of each: an outcome that counts twice makes bounds too narrow"
SPREAD = 0.2  # of the disagreement of an action's rows is left among alike users: they explain four fifths at most
FEW = 4  # rows that agree in all but the outcomes: where more do, the columns tell users apart too badly


def check(chart: Chart, alpha: float) -> Finding:
    """Find ids that come twice, or rows that agree in everything more often than rows of alike users would.

    Two rows that agree in all but the outcomes agree in the outcomes too with some probability q < 1, where they are
    two rows. With D such pairs out of J that agree in all else, exp(−J kl(D/J, q)) bounds the chance of as many, with q
    the mean over pairs. Which rows are a pair is decided without a look at the outcomes: neighbours, in the order of
    the log, among the few that agree in all else.
    """
    log = chart.log
    for name, array in log.arrays.items():
        if isinstance(name, str) and IDS.fullmatch(name):
            entries = [entry for entry in array.tolist() if entry is not None and entry == entry]
            twice = len(entries) - len(set(entries))
            if twice:
                words = f"{several(twice, 'row')} of {log.rows:,} have an {name!r} that another row has"
                return Finding("duplicates", "contradicts", words, REMEDY)
            if entries:
                return Finding("duplicates", "ok", f"every row has an {name!r} of its own")
    whole, rest = digests(chart)
    copies = log.rows - np.unique(whole).size
    if not copies:
        return Finding("duplicates", "ok", "no two rows are the same in every column")
    one, other = paired(rest)
    words = f"{several(copies, 'row')} of {log.rows:,} {'is' if copies == 1 else 'are'} another's copy in every column"
    few = Finding("duplicates", "note", f"{words}, as may well be where columns have few values")
    if not one.size:
        return few
    same, agreeing = int((whole[one] == whole[other]).sum()), 1.0 - SPREAD * float(disagreement(chart)[one].mean())
    if math.log(1.0 / alpha) <= one.size * apart(same / one.size, agreeing):
        return Finding("duplicates", "contradicts", words, REMEDY)
    return few


def paired(rest: npt.NDArray[np.uint64]) -> tuple[Ints, Ints]:
    """Return pairs of rows, by number, that agree in all but the outcomes, of groups of a few; no row is in two pairs.

    >>> [places.tolist() for places in paired(np.array([7, 5, 7, 7, 5, 9], dtype=np.uint64))]
    [[1, 0], [4, 2]]
    """
    _, groups, sizes = np.unique(rest, return_inverse=True, return_counts=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    within = np.arange(rest.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    first = np.flatnonzero((size <= FEW) & (within % 2 == 0) & (within + 1 < size))
    return np.asarray(order[first]), np.asarray(order[first + 1])


def disagreement(chart: Chart) -> Floats:
    """Return for every row (n,) how often two rows of its action differ in some outcome."""
    values = np.where(np.isnan(chart.log.values), np.inf, chart.log.values)  # what is missing agrees too
    codes = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    told = np.zeros(chart.log.rows)
    for action in np.unique(chart.log.actions).tolist():
        rows = chart.log.actions == action
        shares = np.bincount(codes[rows]) / rows.sum()
        told[rows] = max(1.0 - float(shares @ shares), 0.0)
    return told


def apart(seen: float, chance: float) -> float:
    """Return kl(seen, chance) where more is seen than chance has, else 0."""
    if seen <= chance:
        return 0.0
    low = (1.0 - seen) * math.log((1.0 - seen) / (1.0 - chance)) if seen < 1.0 else 0.0
    return low + seen * math.log(seen / chance)


def digests(chart: Chart) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return a hash of every row (n,), and of all in it but the outcomes."""
    outcomes = {chart.called.get(name, name) for name in chart.names}
    outcomes |= {f"signal.{name}" for name in chart.names}
    whole, rest = np.zeros((2, chart.log.rows), dtype=np.uint64)
    for name, array in chart.log.arrays.items():
        mixed = mixture(array)
        whole = stirred(whole, mixed)
        rest = rest if name in outcomes else stirred(rest, mixed)
    return whole, rest


def stirred(before: npt.NDArray[np.uint64], more: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return hashes with one column more (FNV's multiplication, SplitMix64's finish)."""
    z = before * np.uint64(0x100000001B3) + more + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(z ^ (z >> np.uint64(27)))


def mixture(array: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a column as 64 bits a row, the same for equal values."""
    if array.dtype.kind in "bfiu":
        return np.ascontiguousarray(array.astype(np.float64) + 0.0).view(np.uint64)
    if array.dtype.kind in "mM":
        return np.ascontiguousarray(array).view(np.uint64)
    places: dict[Any, int] = {}
    return np.array([places.setdefault(str(entry), len(places)) for entry in array.tolist()], dtype=np.uint64)
