"""The rows of an action with a logistic mean, and the confidence set of its parameter.

    set = {θ: L(θ) ≤ Λ + log 1/δ'},    Λ = E_Q L + KL(Q‖π) ≥ −log ∫ e^−L dπ,    Q = N(θ̂, (H + P₀)⁻¹)

L(θ) = Σ log(1 + e^<x, θ>) − <Σ y x, θ> is minus the log-likelihood, π = N(m₀, P₀⁻¹) the prior, H the Hessian of L at θ̂,
which is near the maximum of the posterior. The set holds for every θ̂ (docs/theory/logistic.md). Rows are kept, since a
fit needs them; outcomes are not, since Σ y x is enough.
"""

import math
from typing import NamedTuple

from stagewise.engine.compile import Floats, kernel
from stagewise.engine.layout import ModelBlock
from stagewise.models.cholesky import compute_log_determinant, dot, factorise, solve, solve_lower

LANES = 64  # rows of a chunk
CHUNK_HEADER = 8  # numbers before the rows: the next chunk, and padding
SAMPLE = 512  # rows on which Newton's method looks for an end
LARGEST_LOGISTIC = 32  # coefficients of one action
FIRST_FIT, TURN = 16, 16  # rows before the first fit; a fit is renewed after 1/TURN more
SETTINGS = 7  # numbers before the shares
PRIOR_DEVIATION, PRIOR_BOUND = 1.5, 10.0  # of the intercept; R
REGULARISATION = 0.002  # ε: the set is cut off at R by adding ε/2 (‖θ − m₀‖² − R²) ≤ 0
FIT_STEPS = 30
FLAT = 30.0  # half the variance of log-odds from which E max(u, 0) is the better bound; no exponential overflows
ROUNDING = 1e-9

COUNT, FITTED, TURN_AT, FIRST_CHUNK, LAST_CHUNK, SAMPLED_ROWS, WEIGHT, LEVEL, RADIUS, REACH = range(10)  # of a tally
TALLY = 10


class ActionFit(NamedTuple):
    """What was learned of one action, as views of the memory. H is the Hessian of L at θ̂, V = H + εP₀."""

    tally: Floats  # (10,) rows, rows of the fit, rows at which it is renewed, first and last chunk, sampled rows, their
    # weight, level of the set, radius of an ellipsoid that contains it, the largest ‖x‖_V⁻¹ of a row
    outcomes: Floats  # (n,) Σ y x
    theta: Floats  # (n,) θ̂
    gradient: Floats  # (n,) of L + ε/2 ‖θ − m₀‖² at θ̂
    means: Floats  # (n,) Σ p x
    root: Floats  # (n, n) of V
    posterior: Floats  # (n, n) root of H + P₀
    rest: Floats  # (n, n) V less the Hessian of the sampled rows
    sample: Floats  # (SAMPLE, n + 1) x, p


class Prior(NamedTuple):
    """The prior N(m₀, P₀⁻¹) of an action's parameter, and what is declared about it."""

    intercept: float  # m₀ has no slopes
    precision: float  # of the intercept
    slope_precision: float
    bound: float  # R


@kernel
def get_prior(block: ModelBlock, settings: Floats) -> Prior:
    at = block.settings + 3
    return Prior(settings[at], settings[at + 1], settings[at + 2], settings[at + 3])


@kernel
def get_precision(prior: Prior, index: int) -> float:
    return prior.precision if index == 0 else prior.slope_precision


@kernel
def get_offset(prior: Prior, theta: Floats, index: int) -> float:
    """Return a coefficient's distance from the prior mean."""
    return theta[index] - prior.intercept if index == 0 else theta[index]


@kernel
def fit_size(n: int) -> int:
    """Return the length of an `ActionFit`."""
    return TALLY + 4 * n + 3 * n * n + SAMPLE * (n + 1)


@kernel
def chunk_size(n: int) -> int:
    """Return the length of a chunk; the constant feature is not kept."""
    return CHUNK_HEADER + LANES * n


@kernel
def get_fit(block: ModelBlock, memory: Floats, action: int) -> ActionFit:
    """Return what was learned of an action."""
    n = block.size
    tally = block.memory + 1 + action * fit_size(n)
    vectors = tally + TALLY
    root = vectors + 4 * n
    sample, end = root + 3 * n * n, tally + fit_size(n)
    return ActionFit(
        memory[tally:vectors], memory[vectors : vectors + n], memory[vectors + n : vectors + 2 * n],
        memory[vectors + 2 * n : vectors + 3 * n], memory[vectors + 3 * n : root],
        memory[root : root + n * n].reshape(n, n), memory[root + n * n : root + 2 * n * n].reshape(n, n),
        memory[root + 2 * n * n : sample].reshape(n, n), memory[sample:end].reshape(SAMPLE, n + 1),
    )  # fmt: skip


@kernel
def get_chunk_offset(block: ModelBlock, chunk: int) -> int:
    """Return where a chunk begins; the first has number 1."""
    return block.memory + 1 + block.detail * fit_size(block.size) + (chunk - 1) * chunk_size(block.size)


@kernel
def count_chunks(block: ModelBlock, memory: Floats) -> int:
    """Return the number of chunks in use."""
    return int(memory[block.memory])


@kernel
def squash(log_odds: float) -> float:
    """Return 1/(1 + e^−t)."""
    if log_odds >= 0.0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1.0 + odds)


@kernel
def append_row(block: ModelBlock, fit: ActionFit, context: Floats, value: float, memory: Floats) -> None:
    """Append a row to the last chunk of its action, or to a new one; a chunk must be free."""
    count = int(fit.tally[COUNT])
    lane = count % LANES
    if lane == 0:
        memory[block.memory] += 1.0
        chunk = memory[block.memory]
        if count == 0:
            fit.tally[FIRST_CHUNK] = chunk
        else:
            memory[get_chunk_offset(block, int(fit.tally[LAST_CHUNK]))] = chunk
        fit.tally[LAST_CHUNK] = chunk
    at = get_chunk_offset(block, int(fit.tally[LAST_CHUNK])) + CHUNK_HEADER + lane
    for i in range(1, block.size):
        memory[at + (i - 1) * LANES] = context[i]
    for i in range(block.size):
        fit.outcomes[i] += value * context[i]
    fit.tally[COUNT] += 1.0


@kernel
def gather_row(block: ModelBlock, memory: Floats, at: int, position: int, row: Floats) -> float:
    """Write the features of a row of the chunk at this offset, and return its fitted mean."""
    first = at + CHUNK_HEADER + position
    row[0] = 1.0
    for i in range(1, block.size):
        row[i] = memory[first + (i - 1) * LANES]
    return memory[first + (block.size - 1) * LANES]


# The fit.


@kernel
def evaluate_fit(block: ModelBlock, fit: ActionFit, memory: Floats, row: Floats) -> None:
    """Write Σ p x, its gradient and the Hessian H of L at θ̂ (in `rest`), and every row's p."""
    n, count, chunk, done = block.size, int(fit.tally[COUNT]), int(fit.tally[FIRST_CHUNK]), 0
    for i in range(n):
        fit.means[i] = 0.0
        for j in range(i + 1):
            fit.rest[i, j] = 0.0
    while done < count:
        at = get_chunk_offset(block, chunk)
        for lane in range(min(LANES, count - done)):
            gather_row(block, memory, at, lane, row)
            p = squash(dot(row, fit.theta))
            memory[at + CHUNK_HEADER + (n - 1) * LANES + lane] = p
            v = p * (1.0 - p)
            for i in range(n):
                fit.means[i] += p * row[i]
                weighted = v * row[i]
                for j in range(i + 1):
                    fit.rest[i, j] += weighted * row[j]
        done += LANES
        chunk = int(memory[at])
    for i in range(n):
        fit.gradient[i] = fit.means[i] - fit.outcomes[i]


@kernel
def maximise_posterior(
    block: ModelBlock, fit: ActionFit, prior: Prior, memory: Floats, row: Floats, step: Floats
) -> None:
    """Move θ̂ towards the maximum of the posterior by Newton's method; what follows is valid wherever it stops."""
    n = block.size
    for _ in range(FIT_STEPS):
        evaluate_fit(block, fit, memory, row)
        for i in range(n):
            step[i] = fit.gradient[i] + get_precision(prior, i) * get_offset(prior, fit.theta, i)
            for j in range(i + 1):
                fit.posterior[i, j] = fit.rest[i, j] + (get_precision(prior, i) if i == j else 0.0)
        factorise(fit.posterior, fit.posterior)
        decrement = solve_lower(fit.posterior, step, row)
        if decrement < 1e-8:
            return
        solve(fit.posterior, step, step)
        length = math.sqrt(dot(step, step))
        scale = 1.0 if length <= 2.0 else 2.0 / length
        for i in range(n):
            fit.theta[i] -= scale * step[i]
    evaluate_fit(block, fit, memory, row)
    for i in range(n):
        for j in range(i + 1):
            fit.posterior[i, j] = fit.rest[i, j] + (get_precision(prior, i) if i == j else 0.0)
    factorise(fit.posterior, fit.posterior)


@kernel
def compute_prior_distance(prior: Prior, theta: Floats) -> float:
    """Return ‖θ − m₀‖² in the norm of P₀."""
    total = 0.0
    for i in range(theta.size):
        total += get_precision(prior, i) * get_offset(prior, theta, i) * get_offset(prior, theta, i)
    return total


@kernel
def compute_mixture_price(block: ModelBlock, fit: ActionFit, prior: Prior, row: Floats, image: Floats) -> float:
    """Return KL(Q‖π) for Q = N(θ̂, C), C = (H + P₀)⁻¹."""
    n, total = block.size, compute_prior_distance(prior, fit.theta) + compute_log_determinant(fit.posterior)
    for i in range(n):
        for j in range(n):
            row[j] = 1.0 if i == j else 0.0
        precision = get_precision(prior, i)
        total += precision * solve_lower(fit.posterior, row, image) - math.log(precision) - 1.0
    return 0.5 * total


@kernel
def compute_row_price(p: float, variance: float) -> float:
    """Return an upper bound of E log(1 + e^(a + u)) − log(1 + e^a), u ~ N(0, σ²), p = 1/(1 + e^−a).

    log((1 − p) e^(p² σ²/2) + p e^((1 − p)² σ²/2)), by Jensen's inequality after a tilt by −pu; or E max(u, 0).
    """
    q, half = 1.0 - p, 0.5 * variance
    if half > FLAT:
        return math.sqrt(half / math.pi)
    return math.log(q * math.exp(p * p * half) + p * math.exp(q * q * half))


@kernel
def compute_radius(level: float, slope: float, reach: float, largest: float) -> float:
    """Return the largest ρ with χ(mρ)/m² − γρ ≤ level, χ(u) = e^−u + u − 1, or `largest` if that is less.

    By Newton's method from outside on a convex function, so that every iterate is outside.
    """
    if not slope * reach < 1.0 - 1e-9:
        return largest
    radius = (level + 1.0 / (reach * reach)) / (1.0 / reach - slope)
    for _ in range(60):
        u = reach * radius
        shrunk = math.exp(-u)
        step = ((shrunk + u - 1.0) / (reach * reach) - slope * radius - level) / ((1.0 - shrunk) / reach - slope)
        if not step > 1e-9 * radius:
            break
        radius -= step
    return min(radius, largest)


@kernel
def sample_rows(block: ModelBlock, fit: ActionFit, memory: Floats, row: Floats) -> None:
    """Copy every k-th row to the sample, and subtract the Hessian of the sample from `rest`."""
    n, count, chunk, done, taken = block.size, int(fit.tally[COUNT]), int(fit.tally[FIRST_CHUNK]), 0, 0
    stride = (count + SAMPLE - 1) // SAMPLE
    fit.tally[SAMPLED_ROWS] = float((count + stride - 1) // stride)
    weight = float(count) / fit.tally[SAMPLED_ROWS]
    fit.tally[WEIGHT] = weight
    while done < count:
        at = get_chunk_offset(block, chunk)
        for lane in range(min(LANES, count - done)):
            if (done + lane) % stride == 0:
                p = gather_row(block, memory, at, lane, row)
                fit.sample[taken, n] = p
                for i in range(n):
                    fit.sample[taken, i] = row[i]
                    for j in range(i + 1):
                        fit.rest[i, j] -= weight * p * (1.0 - p) * row[i] * row[j]
                taken += 1
        done += LANES
        chunk = int(memory[at])


@kernel
def renew_fit(
    block: ModelBlock, fit: ActionFit, confidence: float, settings: Floats, memory: Floats, work: Floats
) -> None:
    """Fit the rows of an action and write its confidence set; `work` is (3n,), `confidence` is log 1/δ'."""
    n, prior, count = block.size, get_prior(block, settings), int(fit.tally[COUNT])
    row, image, spare = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    if fit.tally[FITTED] == 0.0:
        fit.theta[0] = prior.intercept
    maximise_posterior(block, fit, prior, memory, row, spare)
    trace = 0.0
    for i in range(n):
        fit.rest[i, i] += REGULARISATION * get_precision(prior, i)
        fit.gradient[i] += REGULARISATION * get_precision(prior, i) * get_offset(prior, fit.theta, i)
        trace += fit.rest[i, i] / get_precision(prior, i)
    factorise(fit.rest, fit.root)
    level, farthest, chunk, done = (
        confidence + compute_mixture_price(block, fit, prior, row, image),
        0.0,
        int(fit.tally[FIRST_CHUNK]),
        0,
    )
    while done < count:
        at = get_chunk_offset(block, chunk)
        for lane in range(min(LANES, count - done)):
            p = gather_row(block, memory, at, lane, row)
            level += compute_row_price(p, solve_lower(fit.posterior, row, image))
            farthest = max(farthest, solve_lower(fit.root, row, image))
        done += LANES
        chunk = int(memory[at])
    distance = compute_prior_distance(prior, fit.theta)
    level += 0.5 * REGULARISATION * (prior.bound * prior.bound - distance)
    level += ROUNDING * (1.0 + float(count))
    reach, slope = math.sqrt(farthest) * (1.0 + ROUNDING), math.sqrt(solve_lower(fit.root, fit.gradient, image))
    largest = (prior.bound + math.sqrt(distance)) * math.sqrt(trace)
    fit.tally[LEVEL], fit.tally[REACH] = level, reach
    fit.tally[RADIUS] = compute_radius(level, slope, reach, largest) * (1.0 + ROUNDING)
    sample_rows(block, fit, memory, row)
    fit.tally[FITTED] = float(count)
    fit.tally[TURN_AT] = float(count + max(FIRST_FIT, count // TURN))
