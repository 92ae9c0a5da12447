"""The largest <x, θ> in the confidence set of a logistic mean.

Newton's method on a sample of the rows proposes a point; one pass over all rows there bounds the maximum, by convexity,
whatever the point. So an end is never too small, and it is exact up to a gap that the pass knows.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Floats, distinct, kernel
from stagewise.engine.layout import ModelBlock
from stagewise.models.cholesky import compute_norm, dot, factorise, solve, solve_lower
from stagewise.models.logistic_fit import (
    CHUNK_HEADER,
    FIRST_CHUNK,
    FITTED,
    LANES,
    LEVEL,
    RADIUS,
    REACH,
    REGULARISATION,
    SAMPLED_ROWS,
    WEIGHT,
    ActionFit,
    Prior,
    chunk_size,
    get_chunk_offset,
    get_precision,
)

NEWTON_STEPS, PASSES = 12, 8
SHORT = 1.5  # no step of Newton's method changes a row's log-odds by more
FAR = 30.0  # the largest change of a row's log-odds for which an end is computed
GAP = 0.1  # an end is within this much of the set's level of the exact one
NEAR = 2.0  # and its point this near to the set's boundary


@kernel
def exponential(x: float) -> float:
    """Return e^x for |x| ≤ 32 without a call, so that loops become vector instructions: (e^(x/256))^256 by its series.

    Its relative error is below 1e-12.
    """
    y = x * 0.00390625
    s = y * (1.0 / 7.0) + 1.0
    s = y * (1.0 / 6.0) * s + 1.0
    s = y * 0.2 * s + 1.0
    s = y * 0.25 * s + 1.0
    s = y * (1.0 / 3.0) * s + 1.0
    s = y * 0.5 * s + 1.0
    s = y * s + 1.0
    s *= s
    s *= s
    s *= s
    s *= s
    s *= s
    s *= s
    s *= s
    return s * s


@kernel
def evaluate_sample(fit: ActionFit, delta: Floats, gradient: Floats, curvature: Floats) -> float:
    """Return the excess of L at θ̂ + Δ as the sample has it; write its gradient and Hessian."""
    n, total, weight = delta.size, 0.0, fit.tally[WEIGHT]
    for i in range(n):
        for j in range(i + 1):
            curvature[i, j] = fit.rest[i, j]
        gradient[i] = 0.0
    for k in range(int(fit.tally[SAMPLED_ROWS])):
        row = fit.sample[k]
        t, p = 0.0, row[n]
        for i in range(n):
            t += row[i] * delta[i]
        odds = exponential(min(max(t, -FAR), FAR))
        z = 1.0 + p * (odds - 1.0)
        u = p * odds / z
        total += math.log(z) - p * t
        first, second = weight * (u - p), weight * u * (1.0 - p) / z
        for i in range(n):
            gradient[i] += first * row[i]
            weighted = second * row[i]
            for j in range(i + 1):
                curvature[i, j] += weighted * row[j]
    total *= weight
    for i in range(n):
        image = 0.0
        for j in range(n):
            image += (fit.rest[i, j] if j <= i else fit.rest[j, i]) * delta[j]
        total += delta[i] * (fit.gradient[i] + 0.5 * image)
        gradient[i] += fit.gradient[i] + image
    return total


@kernel
def move(
    fit: ActionFit, root: Floats, x: Floats, excess: float, gradient: Floats, delta: Floats, a: Floats, b: Floats
) -> float:
    """Move Δ to the maximum of <x, Δ> where the quadratic model of the excess is at the set's level; return ‖step‖."""
    solve(root, x, a)
    solve(root, gradient, b)
    ratio = (2.0 * (fit.tally[LEVEL] - excess) + dot(gradient, b)) / dot(x, a)
    multiplier = math.sqrt(max(ratio, 0.0))
    for i in range(delta.size):
        a[i] = multiplier * a[i] - b[i]
    length = compute_norm(fit.root, a)
    scale = 1.0 if length * fit.tally[REACH] <= SHORT else SHORT / (length * fit.tally[REACH])
    for i in range(delta.size):
        delta[i] += scale * a[i]
    return length


@kernel
@distinct
def add_chunk(
    rows: Floats, delta: Floats, shift: Floats, odds: Floats, products: Floats, least: Floats, sums: Floats
) -> None:
    """Add a chunk's rows to the sums, lane by lane: Π z, min r''/v, and Σ u x, u the mean at θ̂ + Δ.

    With p the mean at θ̂ and t = <x, Δ>: z = 1 + p (e^t − 1), u = p e^t/z, r''/v = e^t/z².
    """
    n, used = delta.size, shift.size
    means = rows[(n - 1) * LANES : n * LANES]
    for lane in range(used):
        shift[lane] = delta[0]
    for i in range(1, n):
        feature, factor = rows[(i - 1) * LANES : i * LANES], delta[i]
        for lane in range(used):
            shift[lane] += factor * feature[lane]
    for lane in range(used):
        odds[lane] = exponential(shift[lane])
    for lane in range(used):
        p, e = means[lane], odds[lane]
        z = 1.0 + p * (e - 1.0)
        inverse = 1.0 / z
        products[lane] *= z
        curved = e * inverse * inverse
        least[lane] = curved if curved < least[lane] else least[lane]
        odds[lane] = p * e * inverse
    for lane in range(used):
        sums[0, lane] += odds[lane]
    for i in range(1, n):
        feature, total = rows[(i - 1) * LANES : i * LANES], sums[i]
        for lane in range(used):
            total[lane] += odds[lane] * feature[lane]


class Excess(NamedTuple):
    """The excess of L at a point, and a lower bound of every row's curvature there relative to that at θ̂."""

    value: float
    curvature: float


@kernel
def evaluate_rows(
    block: ModelBlock, fit: ActionFit, prior: Prior, memory: Floats, delta: Floats, gradient: Floats, lanes: Floats
) -> Excess:
    """Return the excess of L + ε/2 ‖θ − m₀‖² at θ̂ + Δ over all rows of the fit; write its gradient."""
    n, count, chunk, done = block.size, int(fit.tally[FITTED]), int(fit.tally[FIRST_CHUNK]), 0
    shift, odds, products, least = (
        lanes[:LANES], lanes[LANES : 2 * LANES], lanes[2 * LANES : 3 * LANES], lanes[3 * LANES : 4 * LANES]
    )  # fmt: skip
    sums, total, folds = lanes[4 * LANES : (4 + n) * LANES].reshape(n, LANES), 0.0, 0
    for lane in range(LANES):
        products[lane], least[lane] = 1.0, 1.0
        for i in range(n):
            sums[i, lane] = 0.0
    while done < count:
        at, used = get_chunk_offset(block, chunk), min(LANES, count - done)
        rows = memory[at + CHUNK_HEADER : at + chunk_size(n)]
        add_chunk(rows, delta, shift[:used], odds[:used], products[:used], least[:used], sums)
        done += LANES
        chunk = int(memory[at])
        folds += 1
        if folds == 8 or done >= count:
            folds = 0
            for lane in range(LANES):
                total += math.log(products[lane])
                products[lane] = 1.0
    curvature = 1.0
    for lane in range(LANES):
        curvature = min(curvature, least[lane])
    for i in range(n):
        gradient[i] = fit.gradient[i] - fit.means[i] + REGULARISATION * get_precision(prior, i) * delta[i]
        for lane in range(LANES):
            gradient[i] += sums[i, lane]
        total += delta[i] * (fit.gradient[i] - fit.means[i])
        total += 0.5 * REGULARISATION * get_precision(prior, i) * delta[i] * delta[i]
    return Excess(total, curvature)


@kernel
def bound_gap(residual: float, curvature: float, reach: float, length: float) -> float:
    """Return an upper bound of max_s νs − κχ(ms)/m²: what the excess may still be below its tangent plane."""
    ratio = residual * reach / curvature
    if ratio < 1.0:
        u = -math.log1p(-ratio)
        return min((residual * u - curvature * (math.exp(-u) + u - 1.0) / reach) / reach, residual * length)
    return residual * length


@kernel
def compute_end(block: ModelBlock, fit: ActionFit, prior: Prior, x: Floats, memory: Floats, work: Floats) -> float:
    """Return an upper bound of <x, Δ> over the set; `work` is ((n + 4) LANES + n² + 4n,).

    For every Δ, every λ > 0 and r = λx − ∇F(Δ), as F is convex:

        max ≤ <x, Δ> + (level − F(Δ) + gap)/λ,    gap = max_δ <r, δ> − (F(Δ + δ) − F(Δ) − <∇F(Δ), δ>)
    """
    n = block.size
    vectors, lanes = work[: n * n + 4 * n], work[n * n + 4 * n :]
    delta, gradient, a, b = vectors[:n], vectors[n : 2 * n], vectors[2 * n : 3 * n], vectors[3 * n : 4 * n]
    curvature = vectors[4 * n :].reshape(n, n)
    reach, radius, level = fit.tally[REACH], fit.tally[RADIUS], fit.tally[LEVEL]
    best = radius * math.sqrt(solve_lower(fit.root, x, a))
    for i in range(n):
        delta[i] = 0.0
    move(fit, fit.root, x, 0.0, fit.gradient, delta, a, b)
    for _ in range(NEWTON_STEPS):
        excess = evaluate_sample(fit, delta, gradient, curvature)
        if not factorise(curvature, curvature):
            break
        if not move(fit, curvature, x, excess, gradient, delta, a, b) * reach > 0.01:
            break
    for _ in range(PASSES):
        length = compute_norm(fit.root, delta)
        if not length * reach < FAR:
            break
        there = evaluate_rows(block, fit, prior, memory, delta, gradient, lanes)
        multiplier = solve_lower(fit.root, x, a)
        solve_lower(fit.root, gradient, b)
        multiplier = dot(a, b) / multiplier
        if not multiplier > 0.0:
            break
        residual = 0.0
        for i in range(n):
            residual += (multiplier * a[i] - b[i]) * (multiplier * a[i] - b[i])
        gap = bound_gap(math.sqrt(residual), there.curvature, reach, radius + length)
        end = dot(x, delta) + (level - there.value + gap) / multiplier
        best = min(best, end)
        if gap <= GAP and abs(level - there.value) <= NEAR:
            break
        evaluate_sample(fit, delta, b, curvature)
        root = curvature if factorise(curvature, curvature) else fit.root
        move(fit, root, x, there.value, gradient, delta, a, b)
    return best
