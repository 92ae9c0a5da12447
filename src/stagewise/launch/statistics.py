"""Statistics of doctor, evaluation and forecast: intervals, exact and permutation tests, e-values, sequences, bands.

**Permutation tests within strata**, valid for any number of rows. If a column f is independent of which rows are
marked, the marked rows of every stratum are a draw without replacement, which is at most as far from its mean as one
with replacement (Hoeffding 1963, Theorem 4). So Bennett's inequality holds with the known variance of the stratum:

    P(|Σ (f − f̄)| ≥ s) ≤ 2 exp(−V/b² h(b s/V)),   V = Σ min(m, N − m) σ²,   |f − f̄| ≤ b,   h(u) = (1+u) log(1+u) − u.

If that is small, Chernoff's bound is used, which is smaller: the values of a stratum are known, and so is the mean of
exp(λ (f − f̄)) of a random one of them.

**Confidence sequences**, empirical Bernstein bounds for all times at once, are proved in docs/theory/evaluation.md.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc, expit, gammainc, gammaincinv, gammaln  # type: ignore[import-untyped]

from stagewise.engine.compile import Flags, Floats, Ints, as_python
from stagewise.models.intervals import compute_kl_interval
from stagewise.problem.columns import GOLDEN_GAMMA, Hashes, finalize_bits

# OPB's "kl" interval (rows, mean, log 1/error): for outcomes in [0, 1], all numbers of rows, and every logging policy.
KL_INTERVAL = as_python(compute_kl_interval)
MAX_ROWS = 10_000_000  # that `compute_rows_needed` looks for
MAX_CELLS = 2_000  # groups times strata that are tested one by one
SHARPEN_BELOW = 0.1  # p-value below which a sharper bound is computed
SLOPE_FACTORS = (0.8, 1.0, 1.25, 1.6)
MIN_PROBABILITY = 1e-150  # a probability or variance that counts as zero
BET_FRACTIONS = tuple(0.6 / 3.0**k for k in range(8))  # of the wealth, that bets against the probabilities stake
MIXTURE_SHAPE = 2.0  # ρ of the mixture, fixed before any data: nearly best where the squares add up to 1 to 100
BISECTION_STEPS = 50
FIRST_GUESS = 0.5  # of a mean in [0, 1]
BAND_LEVEL = 0.9
BAND_CONFIDENCE = 0.9  # that a band contains BAND_LEVEL of all runs
MIN_ACTIONS = 2  # to compare
MIN_VARIANCE = 1e-10


# Rows by hash: the same in every process.


def hash_row_numbers(rows: int, key: int = 0) -> Hashes:
    """Return 64 bits for every row (n,), by a key of 64 bits (SplitMix64)."""
    return finalize_bits(np.arange(1, rows + 1, dtype=np.uint64) * GOLDEN_GAMMA + np.uint64(key))


def fit_logistic(design: Floats, outcomes: Floats, prior: float | Floats = 0.01) -> Floats:
    """Return the likeliest parameter (d,) of a logistic mean under a normal prior of this precision (of all, or (d,)).

    A weak prior is there so that there always is one.
    """
    parameter = np.zeros(design.shape[1])
    for _ in range(50):
        means = expit(design @ parameter)
        curvature = (design * (means * (1.0 - means))[:, np.newaxis]).T @ design + np.diag(
            np.full(parameter.size, prior)
        )
        step = np.linalg.solve(curvature, design.T @ (outcomes - means) - prior * parameter)
        parameter += step * min(1.0, 2.0 / max(float(np.linalg.norm(step)), 1e-12))
        if float(np.abs(step).max()) < 1e-9:
            break
    return parameter


def uniform_hash(rows: int) -> Floats:
    """Return a number in [0, 1) for every row (n,)."""
    return np.asarray((hash_row_numbers(rows) >> np.uint64(11)) / float(2**53))


# Means of independent outcomes in [0, 1].


def kl_divergence(observed: float, expected: float) -> float:
    """Return kl(observed, expected) = q log q/p + (1 − q) log (1 − q)/(1 − p), for 0 < p < 1."""
    low = (1.0 - observed) * math.log((1.0 - observed) / (1.0 - expected)) if observed < 1.0 else 0.0
    return low + (observed * math.log(observed / expected) if observed > 0.0 else 0.0)


def chernoff_lower_bound(mean: float, count: float, confidence: float) -> float:
    """Return the least p with count · kl(mean, p) ≤ confidence (Hoeffding 1963)."""
    low, high = 0.0, mean
    for _ in range(60):
        p = 0.5 * (low + high)
        low, high = (low, p) if count * kl_divergence(mean, p) <= confidence else (p, high)
    return high


def compute_rows_needed(room: float, p_value: float) -> int:
    """Return how many outcomes without an event show that a rate is below some room."""
    low, high = 1, MAX_ROWS
    while low < high:
        middle = (low + high) // 2
        is_enough = KL_INTERVAL(float(middle), 0.0, math.log(1.0 / p_value)).high <= room
        low, high = (low, middle) if is_enough else (middle + 1, high)
    return low


# Sums of bounded terms, and permutation tests within strata.


def bennett_bound(sums: Any, variances: Any, largest: Any) -> Any:
    """Return Bennett's bound on the probability of a sum this far from 0 on either side."""
    positive = np.maximum(np.asarray(variances, dtype=float), MIN_PROBABILITY)  # without variance every sum is 0
    scale = np.maximum(np.asarray(largest, dtype=float), 1e-100)
    ratio = scale * np.abs(np.asarray(sums, dtype=float)) / positive
    exponent = positive / scale**2 * ((1.0 + ratio) * np.log1p(ratio) - ratio)
    return np.clip(2.0 * np.exp(-exponent), MIN_PROBABILITY, 1.0)


def freedman_bound(sums: Any, variances: Any, largest: float, rows: int) -> Any:
    """Return the same for a sum of draws whose variances depend on the past, as under an adaptive policy.

    Freedman's inequality (1975) is Bennett's for such a sum, if its variance is at most some v; a union over
    v = b², 2 b², 4 b², ..., rows b² makes it hold for all v.
    """
    scales = np.ceil(np.log2(np.maximum(np.asarray(variances, dtype=float) / largest**2, 1.0)))
    count = 1 + math.ceil(math.log2(max(rows, 1)))
    return np.minimum(count * bennett_bound(sums, largest**2 * 2.0**scales, largest), 1.0)


class Shift(NamedTuple):
    """The difference between some rows and the others of their strata, and its p-value; arrays for several groups."""

    p_value: Any
    difference: Any


def measure_shift(values: Floats, marked: Flags, strata: Ints) -> Shift:
    """Return the difference between marked rows and the others of their stratum in a finite column."""
    count = np.bincount(strata)
    deviations, variance = center_by_stratum(values, strata, count)
    hits = np.bincount(strata, marked, minlength=count.size)
    fewer = np.minimum(hits, count - hits)
    total = float(deviations[marked].sum())
    pairs = float((hits * (count - hits) / np.maximum(count, 1)).sum())
    p_value = float(bennett_bound(total, fewer @ variance, np.max(np.abs(deviations), initial=0.0)))
    if MIN_PROBABILITY < p_value <= SHARPEN_BELOW:
        signs = np.where(hits <= count - hits, 1.0, -1.0) * np.sign(total)  # the others' sum is minus the marked's
        sharper = chernoff_bound(abs(total), signs[strata] * deviations, strata, fewer, float(fewer @ variance))
        p_value = min(p_value, sharper)
    high = values == values.max() if count.size == 1 and values.size else marked[:0]
    if high.any() and (high | (values == values.min())).all():
        exact = hypergeometric_p_value(int((high & marked).sum()), int(hits[0]), int(high.sum()), int(count[0]))
        p_value = min(p_value, exact)
    return Shift(p_value, total / pairs if pairs > 0.0 else 0.0)


def center_by_stratum(values: Floats, strata: Ints, count: Ints) -> tuple[Floats, Floats]:
    """Return each value's deviation (n,) from the mean of its stratum, and the variance of every stratum."""
    mean = np.bincount(strata, values) / np.maximum(count, 1)
    deviations = values - mean[strata]
    return deviations, np.bincount(strata, deviations**2) / np.maximum(count, 1)


def chernoff_bound(total: float, deviations: Floats, strata: Ints, drawn: Floats, variance: float) -> float:
    """Return a bound on the probability of a sum this far from 0, on either side, of `drawn` values of every stratum.

    2 min over λ of exp(−λ s) Π (mean of exp(λ f) in a stratum)^drawn, for a few λ around s/V.
    """
    size, best = np.maximum(np.bincount(strata), 1), 0.0
    for factor in SLOPE_FACTORS:
        slope = factor * total / variance
        growth = np.bincount(strata, np.exp(np.minimum(slope * deviations, 600.0))) / size
        best = min(best, float(drawn @ np.log(np.maximum(growth, MIN_PROBABILITY))) - slope * total)
    return float(np.clip(2.0 * math.exp(best), MIN_PROBABILITY, 1.0))


def measure_group_shifts(values: Floats, groups: Ints, strata: Ints, count: int) -> Shift:
    """Return the difference of each of `count` groups from the mean of its strata."""
    deviations, variance = center_by_stratum(values, strata, np.bincount(strata))
    totals = np.bincount(groups, deviations, minlength=count)
    variances = np.bincount(groups, variance[strata], minlength=count)
    rows = np.bincount(groups, minlength=count)
    p_value = bennett_bound(totals, variances, np.max(np.abs(deviations), initial=0.0))
    return Shift(p_value, totals / np.maximum(rows, 1))


class ExtremeGroup(NamedTuple):
    """The group that differs most from the others, with a corrected p-value."""

    p_value: float
    group: int
    difference: float


def find_extreme_group(marked: Flags, groups: Ints, strata: Ints, count: int) -> ExtremeGroup:
    """Return the group whose share of marked rows differs most, in all strata together or in one."""
    hits = marked.astype(float)
    shifts = measure_group_shifts(hits, groups, strata, count)
    first = int(shifts.p_value.argmin())
    best = ExtremeGroup(float(shifts.p_value[first]), first, float(shifts.difference[first]))
    layers = np.flatnonzero(np.bincount(strata))
    tests = count * (1 + (layers.size if count * layers.size <= MAX_CELLS else 0))
    for layer in layers.tolist() if tests > count else []:
        in_layer = strata == layer
        rows, high = int(in_layer.sum()), int(hits[in_layer].sum())
        size = np.bincount(groups[in_layer], minlength=count)
        own = np.bincount(groups[in_layer], hits[in_layer], minlength=count)
        for group in np.flatnonzero(size).tolist():
            p_value = hypergeometric_p_value(int(own[group]), int(size[group]), high, rows)
            if p_value < best.p_value:
                best = ExtremeGroup(p_value, group, float(own[group] / size[group] - high / rows))
    return best._replace(p_value=min(best.p_value * tests, 1.0))


def compute_ranks(values: Floats) -> Floats:
    """Return the rank of every value among all, in (0, 1); equal values have equal ranks."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray(((ends - 0.5 * counts) / max(values.size, 1))[codes.reshape(-1)])


# Exact counts.


def log_factorial(k: Any) -> Any:
    return gammaln(k + 1.0)


def log_choose(count: int, chosen: Ints) -> Floats:
    """Return log C(count, chosen)."""
    return np.asarray(log_factorial(float(count)) - log_factorial(chosen) - log_factorial(count - chosen))


def hypergeometric_p_value(hits: int, drawn: int, high: int, rows: int) -> float:
    """Return twice the probability of as many hits or more (or fewer) among `drawn` of `rows` with `high` high ones."""
    k = np.arange(max(0, drawn + high - rows), min(drawn, high) + 1)
    logs = -(log_factorial(k) + log_factorial(high - k) + log_factorial(drawn - k))
    logs = logs - log_factorial(np.array(rows - high - drawn) + k)
    weights = np.exp(logs - logs.max())
    sums = weights[k >= hits].sum(), weights[k <= hits].sum()
    return float(np.clip(2.0 * min(sums) / weights.sum(), MIN_PROBABILITY, 1.0))


def log_empty_probability(inside: Ints, others: Ints, events: Ints, min_odds: float) -> float:
    """Return a bound on the log probability that none of the events of any cell is among its rows inside.

    With L rows inside, N others and m events, the odds of an event inside being at least ω of their mean elsewhere, it
    is C(N, m) / Σⱼ C(L, j) ωʲ C(N, m − j) for a cell (Fisher's noncentral hypergeometric distribution). That is largest
    if the odds of the others are equal, since e_m/e_{m−1} of elementary symmetric polynomials is Schur-concave, so it
    holds for all other odds too.
    """
    total = 0.0
    for length, rest, count in zip(inside.tolist(), others.tolist(), events.tolist(), strict=True):
        if length and count:
            j = np.arange(min(length, count) + 1)
            ways = log_choose(length, j) + j * math.log(min_odds) + log_choose(rest, count - j)
            total += float(log_choose(rest, np.array(count)) - np.logaddexp.reduce(ways))
    return total


# E-values and confidence sequences.


def compute_excess_p_values(weights: Floats) -> Floats:
    """Return the p-value of each action's count, from weights 1{taken}/p (n, K).

    E[1{taken}/p] ≤ 1 given the past, for every p, without a bound on how small p can be. Bets against that,
    ∏ (1 + λ (1{taken}/p − 1)) with 0 < λ < 1, have mean at most 1, and exceed 1/c with probability at most c (Ville);
    so does their mean over several λ.
    """
    wealth = np.array([np.log1p(bet * (weights - 1.0)).sum(axis=0) for bet in BET_FRACTIONS])
    p_values = np.exp(np.log(len(BET_FRACTIONS)) - np.logaddexp.reduce(wealth, axis=0))
    return np.asarray(np.clip(p_values, MIN_PROBABILITY, 1.0))


class ConfidenceSequence(NamedTuple):
    """Running means (k,) and the ends (k,) of their intervals, after some numbers of terms (k,)."""

    after: Ints
    mean: Floats
    low: Floats
    high: Floats


def log_mixture(excess: Floats, squares: Floats, rho: float = MIXTURE_SHAPE) -> Floats:
    """Return log m(s, v), the logarithm of a non-negative supermartingale that starts at 1.

    m(s, v) = ρ^ρ / γ(ρ, ρ) · e^(s+v) γ(v + ρ, s + v + ρ) / (s + v + ρ)^(v+ρ)      (Howard et al. 2021, Prop. 9)
    """
    shape, end = squares + rho, excess + squares + rho
    start = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))
    area = start + excess + squares + gammaln(shape) + np.log(gammainc(shape, end))
    return np.asarray(area - shape * np.log(end), dtype=np.float64)


def boundary(squares: Floats, alpha: float, rho: float = MIXTURE_SHAPE) -> Floats:
    """Return u(v), the least s with m(s, v) ≥ 1/α: which the sum of the errors exceeds with probability at most α."""
    target = np.log(1.0 / alpha)
    low, high = np.zeros_like(squares), np.ones_like(squares)
    while (short := log_mixture(high, squares, rho) < target).any():
        high = np.where(short, 2.0 * high, high)
    for _ in range(BISECTION_STEPS):
        middle = 0.5 * (low + high)
        short = log_mixture(middle, squares, rho) < target
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def compute_running_means(terms: Floats) -> Floats:
    """Return for each term the mean of the earlier ones, within [0, 1]; the bound holds for any guess."""
    before = FIRST_GUESS + np.cumsum(terms, axis=-1) - terms
    return np.asarray(np.clip(before / np.arange(1.0, terms.shape[-1] + 1.0), 0.0, 1.0), dtype=np.float64)


def bound_squared_deviations(terms: Floats) -> Floats:
    """Return an upper bound of Σ (termₜ − guessₜ)² for every order of the terms (n,) (Lemma 5)."""
    centre = np.clip((FIRST_GUESS + terms.sum()) / (terms.size + 1.0), 0.0, 1.0)
    least = ((terms - centre) ** 2).sum() + (FIRST_GUESS - centre) ** 2
    farthest = np.sort(np.maximum(terms**2, (1.0 - terms) ** 2))[::-1]
    return np.asarray(least + 2.0 * (farthest / np.arange(2.0, terms.size + 2.0)).sum(), dtype=np.float64)


def compute_radius(terms: Floats, room: float, alpha: float, after: Ints, ordered: bool = True) -> Floats:
    """Return how far (k,) the mean of terms may be above its expectation, at all times with probability 1 − α.

    `room` is c with termₜ − guessₜ ≥ −c always. If terms are not `ordered` as they occurred, `after` is their number.
    """
    if ordered:
        squares = np.cumsum((terms - compute_running_means(terms)) ** 2, axis=-1)[..., after - 1] / room**2
    else:
        squares = bound_squared_deviations(terms)[None] / room**2
    return np.asarray(room * boundary(squares, alpha) / after, dtype=np.float64)


def compute_sequence(
    lower: Floats, upper: Floats, ranges: tuple[float, float], alpha: float, after: Ints, ordered: bool = True
) -> ConfidenceSequence:
    """Return the interval within [0, 1] after each of these numbers of terms.

    The mean is between the expected `lower` and the expected `upper` terms (n,), which differ only if a part of it is
    unknown. Terms (…, n) of several logs are evaluated at once. `ordered` is as for `compute_radius`.
    """
    low_mean, high_mean = (np.cumsum(terms, axis=-1)[..., after - 1] / after for terms in (lower, upper))
    low = np.clip(low_mean - compute_radius(lower, ranges[0], 0.5 * alpha, after, ordered), 0.0, 1.0)
    high = np.clip(high_mean + compute_radius(1.0 - upper, ranges[1], 0.5 * alpha, after, ordered), 0.0, 1.0)
    return ConfidenceSequence(after, np.clip(0.5 * (low_mean + high_mean), low, high), low, high)


# Runs of a simulation, and what they draw.


class Band(NamedTuple):
    """A band by day, or a single one of shape ()."""

    low: Floats
    middle: Floats
    high: Floats

    def to_dict(self) -> dict[str, object]:
        """Return the band as JSON values."""
        return {name: np.round(value, 10).tolist() for name, value in self._asdict().items()}

    def contains(self, value: Floats) -> Floats:
        return np.asarray((self.low <= value) & (value <= self.high))


@cache
def compute_tail_share(runs: int) -> float:
    """Return the share of runs below a band, and above it, so that it contains BAND_LEVEL with BAND_CONFIDENCE.

    The share of all possible runs between the i-th and the j-th of n runs has the distribution Beta(j − i,
    n + 1 − j + i) (Wilks 1941). With few runs the band is wider: of 100 runs 3 are beyond each end, of 1,000 about 44.
    With 38 it contains all of them, and fewer are not enough.
    """
    enough = (r for r in range(1, runs) if betainc(r, runs + 1 - r, BAND_LEVEL) <= 1.0 - BAND_CONFIDENCE)
    return 0.5 * (runs + 1 - next(enough, runs - 1)) / (runs + 1)


def compute_band(values: Floats) -> Band:
    """Return the band of runs (runs, …): their median, and ends that contain BAND_LEVEL of outcomes."""
    outside = compute_tail_share(len(values))
    low, middle, high = np.quantile(values, [outside, 0.5, 1.0 - outside], axis=0, method="weibull")
    return Band(low, middle, high)


class CommonPrior(NamedTuple):
    """The common prior of all actions."""

    centre: Floats  # μ
    variance: Floats  # τ², at most the widest


def draw_common_prior(
    fits: Floats, variances: Floats, widest: Floats, uniforms: Floats, deviates: Floats
) -> CommonPrior | None:
    """Return a draw of the prior (d,) given fits and variances (A, d); None: there are too few actions.

    The best looking of several actions was partly lucky, and a policy plays that one: each estimate is unbiased, but
    the played action falls short of its own. So actions are draws around a centre μ with standard deviation τ:

        θ_a ~ N(μ, τ²),    τ² + s² = Σ (θ̂_a − θ̄)²/χ²,    μ ~ N(θ̄, (τ² + s²)/A)

    for A actions with rows, χ² of A − 1 degrees, and s² the mean of their own variances. τ is drawn for every run,
    since few actions determine it poorly: some runs shrink hardly, others nearly to one point. `uniforms` and
    `deviates` are uniform and normal variates, (d,) each. NaN fits are ignored.
    """
    if len(fits) < MIN_ACTIONS:
        return None
    is_known = ~np.isnan(fits)
    counts = is_known.sum(axis=0)
    each = np.maximum(counts, 1)
    mean = np.where(is_known, fits, 0.0).sum(axis=0) / each
    mean_variance = np.where(is_known, variances, 0.0).sum(axis=0) / each
    squares = np.where(is_known, np.square(fits - mean), 0.0).sum(axis=0)
    total = squares / np.maximum(2.0 * gammaincinv(0.5 * np.maximum(counts - 1, 1), uniforms), MIN_VARIANCE)
    variance = np.where(counts < MIN_ACTIONS, widest, np.clip(total - mean_variance, MIN_VARIANCE, widest))
    return CommonPrior(mean + deviates * np.sqrt((variance + mean_variance) / each), variance)
