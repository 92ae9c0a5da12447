"""Per-candidate confidence sets for recurring candidates, beside the ellipsoid (docs/theory/caps.md).

On a ray from an action whose value y₀ is known, y − y₀ = s a + noise: the plays of one ray are a regression on the step
s with a single slope a. Where y₀ is unknown, the plays of one action are a mean. Either way

    |a − Σ s (y − y₀)/n| ≤ h(n),    n = Σ s²

at all times, each end with its own δ. The ends that are kept are the tightest so far of this set, the ellipsoid and
‖θ‖ ≤ S: all are valid at once, at all times.

    rows (1 + 3k, F): Σ s² | Σ s (y − y₀) | lowest means | highest means, k rows each
    and, where outcomes lie in [0, 1], (2 + k, F): Σ s | Σ (1 − s) | Σ (y − low), used by rare intervals
    settings, after the regression's own, (k,) each: level of lower ends | of upper ends | the lowest outcome.
    For noise the level is A of one candidate (`compute_edge`), for outcomes in [0, 1] it is log 1/δ.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.layout import UNIT_RANGE, get_safe_action
from stagewise.engine.model import EVERY
from stagewise.engine.workspace import CENTRE, HALF, clip_at_ceilings, is_same_action
from stagewise.models.intervals import compute_sum_interval
from stagewise.models.regression import (
    SAFE_OBSERVATIONS,
    SQUARES,
    Regression,
    compute_cached_ridge_bounds,
    compute_radius,
    compute_ridge_bounds,
    fill_coordinates,
    get_ridge_assumptions,
)
from stagewise.models.ridge import RIDGE, change_ridge, learn_ridge_block

SCALE = 100.0  # ℓ/R²: the set is narrowest where n is about as large as ℓ
SHARED_WITH_SAFE = math.log(2.0)  # a learned safe action has half of δ, the listed ones share the other half


class CandidateSets(NamedTuple):
    """The per-candidate sets of a block, row after row."""

    weights: Floats  # (F,) n = Σ s²
    sums: Floats  # (k, F) Σ s (y − y₀)
    lows: Floats  # (k, F)
    highs: Floats  # (k, F)
    rare: Floats  # (2 + k, F) where outcomes lie in [0, 1]


@kernel
def get_candidate_sets(block: Regression) -> CandidateSets:
    """Return the per-candidate sets of a block, as views of its memory."""
    sets, sums, stride = block.sets, block.width, block.signals * block.width
    lows, highs, end = sums + stride, sums + 2 * stride, sums + 3 * stride
    return CandidateSets(sets[:sums], sets[sums:lows], sets[lows:highs], sets[highs:end], sets[end:])


class Edges(NamedTuple):
    """The level of each end, (k,), and the lowest outcomes."""

    low: Floats
    high: Floats
    least: Floats


@kernel
def get_edges(block: Regression, settings: Floats) -> Edges:
    """Return the levels of a block's ends, as views of the settings."""
    at, k = block.settings + 3 + block.reflected * (block.size + 1) + 4 * block.signals, block.signals
    return Edges(settings[at : at + k], settings[at + k : at + 2 * k], settings[at + 2 * k : at + 3 * k])


@kernel
def compute_edge(delta: float) -> float:
    """Return A = z₀² − 2 log Φ(z₀), z₀² = 2 log(1/2δ): the bound on z² before any play. Requires δ ≤ ½."""
    square = -2.0 * math.log(2.0 * delta)
    return square - 2.0 * math.log(0.5 * math.erfc(-math.sqrt(0.5 * square)))


@kernel
def compute_half_width(noise: float, weight: float, edge: float) -> float:
    """Return h with P(∃n: a > Σ s (y − y₀)/n + h) ≤ δ, and the same for the other end.

        h = R √((n + ℓ) (log(1 + n/ℓ) + A))/n

    exp(−b Σ s ξ − b² R² n/2), averaged over a half-normal b of variance 1/(R² ℓ), is 2 (1 + n/ℓ)^(−½) exp(z²/2) Φ(z)
    with z = −Σ s ξ/(R √(n + ℓ)): a supermartingale, so it stays under 1/δ (Ville); beyond h it would be above.
    """
    scale = SCALE * noise * noise
    return noise * math.sqrt((weight + scale) * (math.log1p(weight / scale) + edge)) / weight


class PriorRange(NamedTuple):
    """A-priori range of an action's mean: the known part plus or minus S times the length."""

    share: float
    length: float


@kernel
def compute_prior_range(block: Regression, settings: Floats, action: Floats, coordinates: Floats) -> PriorRange:
    """Return the share <x, x₀>/‖x₀‖² and ‖z‖."""
    share, square = fill_coordinates(block, settings, action, coordinates), 0.0
    for i in range(block.size):
        square += coordinates[i] * coordinates[i]
    return PriorRange(share, math.sqrt(square))


@kernel
def start_per_candidate(block: Regression, features: Floats, settings: Floats, work: Floats) -> None:
    """Write the a-priori ranges of candidates without plays; `work` is (n + F,)."""
    k, width, declared = block.signals, block.width, get_ridge_assumptions(block, settings)
    state = get_candidate_sets(block)
    lows, highs = state.lows, state.highs
    state.weights[:] = 0.0
    state.sums[:] = 0.0
    state.rare[:] = 0.0
    lows[:] = -math.inf
    highs[:] = math.inf
    for candidate in range(features.shape[0]):
        prior = compute_prior_range(block, settings, features[candidate], work[: block.size])
        for signal in range(k):
            known, farthest = prior.share * declared.known[signal], declared.bound[signal] * prior.length
            lows[signal * width + candidate], highs[signal * width + candidate] = known - farthest, known + farthest
    if block.anchored == 0 and block.tally[SAFE_OBSERVATIONS] > 0.0:
        record_safe_plays(block, settings)
        tighten_candidate(block, block.cached - 1, settings)
    tighten_by_ellipsoid(block, settings, work)


@kernel
def clip_new_candidates(block: Regression, features: Floats, settings: Floats, bounds: Floats, work: Floats) -> None:
    """Clip the bounds of candidates that are not cached at their a-priori ranges; `work` is (n,)."""
    declared = get_ridge_assumptions(block, settings)
    for candidate in range(features.shape[0]):
        prior = compute_prior_range(block, settings, features[candidate], work[: block.size])
        for signal in range(block.signals):
            centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
            known, farthest = prior.share * declared.known[signal], declared.bound[signal] * prior.length
            low = max(known - farthest, centre[candidate] - half[candidate])
            high = min(known + farthest, centre[candidate] + half[candidate])
            centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * abs(high - low)


@kernel
def learn_per_candidate(
    block: Regression, index: int, step: float, at_safe: bool, values: Floats, settings: Floats
) -> None:
    """Learn an outcome (k,) at a step on a cached candidate's ray, or at the safe action where it is learned."""
    if block.cached == 0:
        return
    if block.anchored == 0 and at_safe:
        record_safe_plays(block, settings)
        tighten_candidate(block, block.cached - 1, settings)
    if index < 0 or not step > 0.0 or (block.anchored == 0 and step != 1.0):
        return
    known, edges = get_ridge_assumptions(block, settings).known, get_edges(block, settings)
    state, width = get_candidate_sets(block), block.width
    state.weights[index] += step * step
    for signal in range(block.signals):
        state.sums[signal * width + index] += step * (values[signal] - known[signal])
    if block.per_candidate == UNIT_RANGE:
        state.rare[index] += step
        state.rare[width + index] += 1.0 - step
        for signal in range(block.signals):
            state.rare[(2 + signal) * width + index] += values[signal] - edges.least[signal]
    tighten_candidate(block, index, settings)


@kernel
def record_safe_plays(block: Regression, settings: Floats) -> None:
    """Copy all plays of the safe action, including those before anything was cached, into its set."""
    state, edges, width, safe = get_candidate_sets(block), get_edges(block, settings), block.width, block.cached - 1
    tally = block.tally
    observations, sums = tally[SAFE_OBSERVATIONS], SQUARES + block.signals
    state.weights[safe] = observations
    for signal in range(block.signals):
        state.sums[signal * width + safe] = tally[sums + signal]
    if block.per_candidate == UNIT_RANGE:
        state.rare[safe] = observations
        for signal in range(block.signals):
            state.rare[(2 + signal) * width + safe] = tally[sums + signal] - observations * edges.least[signal]


class Ends(NamedTuple):
    """The ends of an interval of a mean."""

    low: float
    high: float


@kernel
def compute_candidate_ends(
    block: Regression, signal: int, log_count: float, weight: float, sum_: float, settings: Floats
) -> Ends:
    """Return known + Σ s (y − y₀)/n ± h(n), for one of `exp(log_count)` sets that share δ."""
    declared, edges, mean = get_ridge_assumptions(block, settings), get_edges(block, settings), sum_ / weight
    low = compute_half_width(declared.noise[signal], weight, edges.low[signal] + 2.0 * log_count)
    high = compute_half_width(declared.noise[signal], weight, edges.high[signal] + 2.0 * log_count)
    return Ends(declared.known[signal] + mean - low, declared.known[signal] + mean + high)


@kernel
def compute_unit_range_ends(
    block: Regression, signal: int, log_count: float, steps: float, rests: float, count: float, settings: Floats
) -> Ends:
    """Return the same for outcomes in [0, 1], from Σ s, Σ (1 − s) and Σ (y − low)."""
    edges = get_edges(block, settings)
    least, known = edges.least[signal], get_ridge_assumptions(block, settings).known[signal]
    ends = compute_sum_interval(count, edges.low[signal] + log_count, edges.high[signal] + log_count)
    start = (known - least) * rests
    return Ends(least + (ends.low - start) / steps, least + (ends.high - start) / steps)


@kernel
def tighten_candidate(block: Regression, candidate: int, settings: Floats) -> None:
    """Tighten a candidate's ends by its own set; the safe action alone has half of δ."""
    state, width = get_candidate_sets(block), block.width
    lows, highs, rare, log_count = state.lows, state.highs, state.rare, math.log(float(block.cached - 1))
    if block.anchored == 0:
        log_count = SHARED_WITH_SAFE + (log_count if candidate < block.cached - 1 else 0.0)
    for signal in range(block.signals):
        at = signal * width + candidate
        if block.per_candidate == UNIT_RANGE:
            count = rare[2 * width + at]
            ends = compute_unit_range_ends(
                block, signal, log_count, rare[candidate], rare[width + candidate], count, settings
            )
        else:
            ends = compute_candidate_ends(block, signal, log_count, state.weights[candidate], state.sums[at], settings)
        lows[at], highs[at] = max(lows[at], ends.low), min(highs[at], ends.high)


@kernel
def tighten_by_ellipsoid(block: Regression, settings: Floats, work: Floats) -> None:
    """Tighten the ends of every cached candidate by the ellipsoid; `work` is (F,)."""
    if block.cached == 0:
        return
    n, k, width = block.size, block.signals, block.width
    state, rows, widths, forms = get_candidate_sets(block), block.rows, work[:width], block.rows[n + k]
    for candidate in range(width):
        widths[candidate] = math.sqrt(forms[candidate])
    for signal in range(k):
        beta, estimates = compute_radius(block, settings, 0.0, signal), rows[n + signal]
        lows = state.lows[signal * width : (signal + 1) * width]
        highs = state.highs[signal * width : (signal + 1) * width]
        for candidate in range(width):
            half = beta * widths[candidate]
            lows[candidate] = max(lows[candidate], estimates[candidate] - half)
            highs[candidate] = min(highs[candidate], estimates[candidate] + half)


@kernel
def compute_cached_candidate_bounds(block: Regression, bounds: Floats) -> None:
    """Write the bounds of the cached candidates, and of the safe action.

    Ends that have crossed contradict an assumption; the larger is then the upper one.
    """
    state, width = get_candidate_sets(block), block.width
    for signal in range(block.signals):
        centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
        lows = state.lows[signal * width : (signal + 1) * width]
        highs = state.highs[signal * width : (signal + 1) * width]
        for candidate in range(block.cached):
            centre[candidate] = 0.5 * (lows[candidate] + highs[candidate])
            half[candidate] = 0.5 * abs(highs[candidate] - lows[candidate])


@kernel
def compute_safe_ends(block: Regression, signal: int, settings: Floats) -> Ends:
    """Return the interval of the safe action's mean from its own plays, where it is not known."""
    observations, sum_ = block.tally[SAFE_OBSERVATIONS], block.tally[SQUARES + block.signals + signal]
    if block.cached > 0:
        at, state = signal * block.width + block.cached - 1, get_candidate_sets(block)
        return Ends(state.lows[at], state.highs[at])
    if observations == 0.0:
        return Ends(-math.inf, math.inf)
    if block.per_candidate == UNIT_RANGE:
        count = sum_ - observations * get_edges(block, settings).least[signal]
        return compute_unit_range_ends(block, signal, SHARED_WITH_SAFE, observations, 0.0, count, settings)
    return compute_candidate_ends(block, signal, SHARED_WITH_SAFE, observations, sum_, settings)


@kernel
def clip_safe_bounds(block: Regression, straight: bool, settings: Floats, bounds: Floats) -> None:
    """Clip the safe action's bounds at its own set; along rays symmetrically, so that they curve as a norm does."""
    safe = bounds.shape[2] - 1
    for signal in range(block.signals):
        centre, half = bounds[block.first + signal, CENTRE], bounds[block.first + signal, HALF]
        ends = compute_safe_ends(block, signal, settings)
        if straight:
            low, high = max(ends.low, centre[safe] - half[safe]), min(ends.high, centre[safe] + half[safe])
            if low < high:
                centre[safe], half[safe] = 0.5 * (low + high), 0.5 * (high - low)
        elif ends.low < ends.high:
            half[safe] = min(half[safe], max(ends.high - centre[safe], centre[safe] - ends.low))


@kernel
def fill_candidate_bounds(
    layout: Ints, block: Regression, features: Floats, known: bool, settings: Floats, memory: Floats, bounds: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of any candidates.

    Along rays whose start is learned (`detail` is 0) they are curved: those of the ellipsoid, but for the safe action.
    """
    safe, straight = get_safe_action(layout, settings).features, block.detail == 1 or block.anchored == 1
    if known and straight:
        compute_cached_candidate_bounds(block, bounds)
        return
    if known:
        compute_cached_ridge_bounds(block, settings, memory, bounds, work)
    else:
        compute_ridge_bounds(block, features, safe, settings, memory, bounds, work)
        if straight:
            clip_new_candidates(block, features, settings, bounds, work)
    if block.anchored == 0:
        clip_safe_bounds(block, straight, settings, bounds)


@kernel
def adjust_per_candidate(layout: Ints, settings: Floats, bounds: Floats, mixes: int, samples: int) -> int:
    """Clip the bounds at their ceilings, unless the rule does so itself."""
    if samples != EVERY:
        clip_at_ceilings(layout, settings, bounds, mixes > 0)
    return 0


@kernel
def learn_candidate(
    layout: Ints, block: Regression, action: Floats, index: int, cached_index: int, step: float, cached_only: bool,
    observed: Floats, settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Learn an outcome by the regression and by the candidate's own set."""
    learn_ridge_block(layout, block, action, index, cached_index, step, cached_only, observed, settings, memory, work)
    at_safe = is_same_action(action, get_safe_action(layout, settings).features)
    learn_per_candidate(block, cached_index, step, at_safe, observed, settings)
    tighten_by_ellipsoid(block, settings, work)


@kernel
def change_per_candidate(
    layout: Ints, old: Regression, new: Regression, features: Floats, settings: Floats, memory: Floats, changed: Floats,
    work: Floats,
) -> None:  # fmt: skip
    """Copy what was learned, and cache other candidates with sets of their own."""
    change_ridge(layout, old, new, features, settings, memory, changed, work)
    if features.shape[0] > 0:
        start_per_candidate(new, features, settings, work)


PER_CANDIDATE_RIDGE = RIDGE._replace(
    name="stagewise.models.per_candidate:PER_CANDIDATE_RIDGE", bounds=fill_candidate_bounds, learn=learn_candidate,
    change=change_per_candidate, adjust=adjust_per_candidate,
)  # fmt: skip
