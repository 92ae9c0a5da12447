"""Tests that hold for any number of rows: whether rows could have come in any other order, within their strata.

Where a column f has nothing to do with which rows are marked, the marked rows of every stratum are a draw without
replacement. Such a draw is at most as far from its mean as one with replacement (Hoeffding 1963, Theorem 4), so that
Bennett's inequality holds with the variance that the stratum is known to have:

    P(|Σ (f − f̄)| ≥ s) ≤ 2 exp(−V/b² h(b s/V)),   V = Σ min(m, N − m) σ²,   |f − f̄| ≤ b,   h(u) = (1+u) log(1+u) − u.

Where that is small, Chernoff's bound is taken, which is smaller: the values of a stratum are known, and so is the mean
of exp(λ (f − f̄)) of one of them drawn by lot.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats, Ints

Flags = npt.NDArray[np.bool_]
MOST_CELLS = 2_000  # groups of strata that are looked at one by one
SMALL = 0.1  # a chance below which it is worth to know it more sharply
SLOPES = (0.8, 1.0, 1.25, 1.6)
LEAST = 1e-150  # a chance, or a variance, that is as good as none


class Shift(NamedTuple):
    """How far marked rows lie from the others, and how likely that is where being marked has nothing to do with it."""

    chance: float
    difference: float  # mean of the marked less mean of the others, within strata


def tail(sums: Any, variances: Any, most: Any) -> Any:
    """Return Bennett's bound on the chance of a sum this far from 0 on either side.

    >>> float(tail(0.0, 1.0, 1.0)), bool(tail(50.0, 10.0, 1.0) < 1e-20)
    (1.0, True)
    """
    room = np.maximum(np.asarray(variances, dtype=float), LEAST)  # where nothing varies every sum is 0
    scale = np.maximum(np.asarray(most, dtype=float), 1e-100)
    far = scale * np.abs(np.asarray(sums, dtype=float)) / room
    exponent = room / scale**2 * ((1.0 + far) * np.log1p(far) - far)
    return np.clip(2.0 * np.exp(-exponent), LEAST, 1.0)


def drawn_tail(sums: Any, variances: Any, most: float, rows: int) -> Any:
    """Return the same for a sum of draws whose variances what came before has chosen, as an adaptive policy does.

    Freedman's inequality (1975) is Bennett's for such a sum, wherever its variance is at most some v; a union over
    v = b², 2 b², 4 b², ..., rows b² frees v.

    >>> bool(drawn_tail(50.0, 10.0, 1.0, 1000) < 1e-10), float(drawn_tail(3.0, 10.0, 1.0, 1000))
    (True, 1.0)
    """
    scales = np.ceil(np.log2(np.maximum(np.asarray(variances, dtype=float) / most**2, 1.0)))
    count = 1 + math.ceil(math.log2(max(rows, 1)))
    return np.minimum(count * tail(sums, most**2 * 2.0**scales, most), 1.0)


def shift(values: Floats, marked: Flags, strata: Ints) -> Shift:
    """Return how far marked rows lie from the others of their stratum in some column, which must be finite.

    >>> rows, none = np.arange(100) / 100, np.zeros(100, dtype=np.int64)
    >>> bool(shift(rows, rows > 0.5, none).chance < 1e-4), bool(shift(rows, np.arange(100) % 2 == 0, none).chance > 0.9)
    (True, True)
    """
    count = np.bincount(strata)
    mean = np.bincount(strata, values) / np.maximum(count, 1)
    apart = values - mean[strata]
    variance = np.bincount(strata, apart**2) / np.maximum(count, 1)
    hits = np.bincount(strata, marked, minlength=count.size)
    fewer = np.minimum(hits, count - hits)
    total = float(apart[marked].sum())
    pairs = float((hits * (count - hits) / np.maximum(count, 1)).sum())
    chance = float(tail(total, fewer @ variance, np.max(np.abs(apart), initial=0.0)))
    if LEAST < chance <= SMALL:
        drawn = np.where(hits <= count - hits, 1.0, -1.0) * np.sign(
            total
        )  # the others' sum is minus that of the marked
        chance = min(chance, chernoff(abs(total), drawn[strata] * apart, strata, fewer, float(fewer @ variance)))
    high = values == values.max() if count.size == 1 and values.size else marked[:0]
    if high.any() and (high | (values == values.min())).all():
        chance = min(chance, exact(int((high & marked).sum()), int(hits[0]), int(high.sum()), int(count[0])))
    return Shift(chance, total / pairs if pairs > 0.0 else 0.0)


def chernoff(total: float, apart: Floats, strata: Ints, drawn: Floats, variance: float) -> float:
    """Return a bound on the chance of a sum this far from 0, on either side, of `drawn` values of every stratum.

    2 min over λ of exp(−λ s) Π (mean of exp(λ f) in a stratum)^drawn, for a few λ around s/V.
    """
    size = np.maximum(np.bincount(strata), 1)
    best = 0.0
    for factor in SLOPES:
        slope = factor * total / variance
        grown = np.bincount(strata, np.exp(np.minimum(slope * apart, 600.0))) / size
        best = min(best, float(drawn @ np.log(np.maximum(grown, LEAST))) - slope * total)
    return float(np.clip(2.0 * math.exp(best), LEAST, 1.0))


def exact(hits: int, drawn: int, high: int, rows: int) -> float:
    """Return twice the chance of as many hits or more (or fewer) among `drawn` of `rows`, of which `high` are high.

    >>> round(exact(3, 3, 3, 6), 9)  # 2/20
    0.1
    """
    least, most = max(0, drawn + high - rows), min(drawn, high)
    k = np.arange(least, most + 1)
    logs = -(log_factorial(k) + log_factorial(high - k) + log_factorial(drawn - k))
    logs = logs - log_factorial(np.array(rows - high - drawn) + k)
    weights = np.exp(logs - logs.max())
    sums = weights[k >= hits].sum(), weights[k <= hits].sum()
    return float(np.clip(2.0 * min(sums) / weights.sum(), LEAST, 1.0))


def log_factorial(k: Any) -> Any:
    """Return log k!."""
    from scipy.special import gammaln  # type: ignore[import-untyped]

    return gammaln(k + 1.0)


class Groups(NamedTuple):
    """How far the rows of every group lie from all others."""

    chance: Floats
    difference: Floats  # mean of the group less what its strata have


def shifts(values: Floats, groups: Ints, strata: Ints, count: int) -> Groups:
    """Return the same for every one of `count` groups that rows belong to."""
    size = np.bincount(strata)
    mean = np.bincount(strata, values) / np.maximum(size, 1)
    apart = values - mean[strata]
    variance = np.bincount(strata, apart**2) / np.maximum(size, 1)
    totals = np.bincount(groups, apart, minlength=count)
    spread = np.bincount(groups, variance[strata], minlength=count)
    rows = np.bincount(groups, minlength=count)
    chance = tail(totals, spread, np.max(np.abs(apart), initial=0.0))
    return Groups(chance, totals / np.maximum(rows, 1))


class Parted(NamedTuple):
    """The group that lies farthest from the others: by chance so often, all that was tried counted."""

    chance: float
    group: int
    difference: float


def parted(marked: Flags, groups: Ints, strata: Ints, count: int) -> Parted:
    """Return the group whose rows are marked otherwise than all, in all strata together or in one of them."""
    hits = marked.astype(float)
    told = shifts(hits, groups, strata, count)
    place = int(told.chance.argmin())
    best = Parted(float(told.chance[place]), place, float(told.difference[place]))
    layers = np.flatnonzero(np.bincount(strata))
    tests = count * (1 + (layers.size if count * layers.size <= MOST_CELLS else 0))
    for layer in layers.tolist() if tests > count else []:
        some = strata == layer
        rows, high = int(some.sum()), int(hits[some].sum())
        size = np.bincount(groups[some], minlength=count)
        own = np.bincount(groups[some], hits[some], minlength=count)
        for group in np.flatnonzero(size).tolist():
            chance = exact(int(own[group]), int(size[group]), high, rows)
            if chance < best.chance:
                best = Parted(chance, group, float(own[group] / size[group] - high / rows))
    return best._replace(chance=min(best.chance * tests, 1.0))


def ranks(values: Floats) -> Floats:
    """Return where every value stands among all, in (0, 1); equal values stand together.

    >>> ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist()
    [0.75, 0.125, 0.75, 0.375]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray(((ends - 0.5 * counts) / max(values.size, 1))[places.reshape(-1)])
