"""Sets of their own for candidates that come back, beside the ellipsoid (docs/theory/caps.md).

On a ray from an action whose value y₀ is known, y − y₀ = s a + noise: the plays of one ray are a regression on the step
s with a single slope a. Where y₀ is unknown, the plays of one action are a mean. Either way

    |a − Σ s (y − y₀)/n| ≤ h(n),    n = Σ s²

at all times, each end with a δ of its own. The ends that are kept are the tightest so far, of this set, of the
ellipsoid and of ‖θ‖ ≤ S: all hold at once, at all times.

    rows (1 + 3k, F): Σ s² | Σ s (y − y₀) | lowest means | highest means, k rows each
    and, where outcomes lie in [0, 1], (2 + k, F): Σ s | Σ (1 − s) | Σ (y − low), from which `rare` makes the ends
    settings, behind the regression's own, (k,) each: how far lower ends reach | upper ends | the lowest outcome.
    For noise that is A of one candidate (`edge`), for outcomes in [0, 1] log 1/δ.
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import RARE, Part
from stagewise.kernels.signals.look import look_ridge, radius_of, recall_ridge
from stagewise.kernels.signals.rare import rare_ends
from stagewise.kernels.signals.ridge import SAFE_TAKEN, SQUARES, declared_of_ridge, place

SCALE = 100.0  # ℓ/R²: the set is narrowest where n is about as large as ℓ
SHARED_WITH_SAFE = math.log(2.0)  # where the safe action is learned it has half of δ, and all that are listed the other


class Own(NamedTuple):
    """What a part keeps of the candidates it follows, row after row."""

    weights: Floats  # (F,) n = Σ s²
    sums: Floats  # (k, F) Σ s (y − y₀)
    lows: Floats  # (k, F)
    highs: Floats  # (k, F)
    rare: Floats  # (2 + k, F) where outcomes lie in [0, 1]


@kernel
def own_of(part: Part) -> Own:
    """Return what a part keeps of its candidates, as views of its sets."""
    sets, sums, block = part.sets, part.width, part.signals * part.width
    lows, highs, end = sums + block, sums + 2 * block, sums + 3 * block
    return Own(sets[:sums], sets[sums:lows], sets[lows:highs], sets[highs:end], sets[end:])


class Edges(NamedTuple):
    """How far each end reaches, (k,), and where outcomes begin."""

    low: Floats
    high: Floats
    least: Floats


@kernel
def edges_of(part: Part, settings: Floats) -> Edges:
    """Return how far the ends of a part's sets reach, as views of the settings."""
    at, k = part.settings + 3 + part.reflected * (part.size + 1) + 4 * part.signals, part.signals
    return Edges(settings[at : at + k], settings[at + k : at + 2 * k], settings[at + 2 * k : at + 3 * k])


@kernel
def edge(delta: float) -> float:
    """Return A = z₀² − 2 log Φ(z₀), z₀² = 2 log(1/2δ): how far z² may go with no play behind it. Requires δ ≤ ½."""
    square = -2.0 * math.log(2.0 * delta)
    return square - 2.0 * math.log(0.5 * math.erfc(-math.sqrt(0.5 * square)))


@kernel
def own_half(noise: float, weight: float, edge_: float) -> float:
    """Return h with P(∃n: a > Σ s (y − y₀)/n + h) ≤ δ, and as much for the other end.

        h = R √((n + ℓ) (log(1 + n/ℓ) + A))/n

    exp(−b Σ s ξ − b² R² n/2), averaged over a half-normal b of variance 1/(R² ℓ), is 2 (1 + n/ℓ)^(−½) exp(z²/2) Φ(z)
    with z = −Σ s ξ/(R √(n + ℓ)): a supermartingale, so it stays under 1/δ (Ville); beyond h it would be above.
    """
    scale = SCALE * noise * noise
    return noise * math.sqrt((weight + scale) * (math.log1p(weight / scale) + edge_)) / weight


class Placed(NamedTuple):
    """What is certain of an action beforehand: its mean is the known part, give or take S times the length."""

    share: float
    length: float


@kernel
def placed(part: Part, settings: Floats, action: Floats, coordinates: Floats) -> Placed:
    """Return the share <x, x₀>/‖x₀‖² and ‖z‖."""
    share, square = place(part, settings, action, coordinates), 0.0
    for i in range(part.size):
        square += coordinates[i] * coordinates[i]
    return Placed(share, math.sqrt(square))


@kernel
def start_own(part: Part, features: Floats, settings: Floats, work: Floats) -> None:
    """Write what is certain beforehand, and that nothing was played yet; `work` is (n + F,)."""
    k, width, declared, own = part.signals, part.width, declared_of_ridge(part, settings), own_of(part)
    lows, highs = own.lows, own.highs
    own.weights[:] = 0.0
    own.sums[:] = 0.0
    own.rare[:] = 0.0
    lows[:] = -math.inf
    highs[:] = math.inf
    for candidate in range(features.shape[0]):
        where = placed(part, settings, features[candidate], work[: part.size])
        for signal in range(k):
            known, farthest = where.share * declared.known[signal], declared.bound[signal] * where.length
            lows[signal * width + candidate], highs[signal * width + candidate] = known - farthest, known + farthest
    if part.anchored == 0 and part.tally[SAFE_TAKEN] > 0.0:
        count_safe(part, settings)
        renew(part, part.followed - 1, settings)
    narrow(part, settings, work)


@kernel
def clip_own(part: Part, features: Floats, settings: Floats, bounds: Floats, work: Floats) -> None:
    """Cut the bounds of candidates that do not come back to what is certain beforehand; `work` is (n,)."""
    declared = declared_of_ridge(part, settings)
    for candidate in range(features.shape[0]):
        where = placed(part, settings, features[candidate], work[: part.size])
        for signal in range(part.signals):
            centre, half = bounds[part.first + signal, CENTRE], bounds[part.first + signal, HALF]
            known, farthest = where.share * declared.known[signal], declared.bound[signal] * where.length
            low, high = (
                max(known - farthest, centre[candidate] - half[candidate]),
                min(known + farthest, centre[candidate] + half[candidate]),
            )
            centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * abs(high - low)


@kernel
def learn_own(part: Part, index: int, step: float, at_safe: bool, values: Floats, settings: Floats) -> None:
    """Take in what was seen (k,) at a step on a followed candidate's ray, or at the safe action where it is learned."""
    if part.followed == 0:
        return
    if part.anchored == 0 and at_safe:
        count_safe(part, settings)
        renew(part, part.followed - 1, settings)
    if index < 0 or not step > 0.0 or (part.anchored == 0 and step != 1.0):
        return
    known, edges = declared_of_ridge(part, settings).known, edges_of(part, settings)
    own, width = own_of(part), part.width
    own.weights[index] += step * step
    for signal in range(part.signals):
        own.sums[signal * width + index] += step * (values[signal] - known[signal])
    if part.sharp == RARE:
        own.rare[index] += step
        own.rare[width + index] += 1.0 - step
        for signal in range(part.signals):
            own.rare[(2 + signal) * width + index] += values[signal] - edges.least[signal]
    renew(part, index, settings)


@kernel
def count_safe(part: Part, settings: Floats) -> None:
    """Write down what the safe action has shown so far, all of it: it came back before anything was followed."""
    own, edges, width, safe, tally = own_of(part), edges_of(part, settings), part.width, part.followed - 1, part.tally
    taken, sums = tally[SAFE_TAKEN], SQUARES + part.signals
    own.weights[safe] = taken
    for signal in range(part.signals):
        own.sums[signal * width + safe] = tally[sums + signal]
    if part.sharp == RARE:
        own.rare[safe] = taken
        for signal in range(part.signals):
            own.rare[(2 + signal) * width + safe] = tally[sums + signal] - taken * edges.least[signal]


class Ends(NamedTuple):
    """What a mean lies between."""

    low: float
    high: float


@kernel
def own_ends(part: Part, signal: int, among: float, weight: float, sum_: float, settings: Floats) -> Ends:
    """Return known + Σ s (y − y₀)/n ± h(n), for one of `exp(among)` sets that share δ."""
    declared, edges, mean = declared_of_ridge(part, settings), edges_of(part, settings), sum_ / weight
    low = own_half(declared.noise[signal], weight, edges.low[signal] + 2.0 * among)
    high = own_half(declared.noise[signal], weight, edges.high[signal] + 2.0 * among)
    return Ends(declared.known[signal] + mean - low, declared.known[signal] + mean + high)


@kernel
def rare_own_ends(
    part: Part, signal: int, among: float, steps: float, rests: float, count: float, settings: Floats
) -> Ends:
    """Return the same for outcomes in [0, 1], from Σ s, Σ (1 − s) and Σ (y − low)."""
    edges = edges_of(part, settings)
    least, known = edges.least[signal], declared_of_ridge(part, settings).known[signal]
    ends, start = rare_ends(count, edges.low[signal] + among, edges.high[signal] + among), (known - least) * rests
    return Ends(least + (ends.low - start) / steps, least + (ends.high - start) / steps)


@kernel
def renew(part: Part, candidate: int, settings: Floats) -> None:
    """Keep the tighter ends of what is kept and of a candidate's own set; the safe action alone has half of δ."""
    own, width = own_of(part), part.width
    lows, highs, rare, among = own.lows, own.highs, own.rare, math.log(float(part.followed - 1))
    if part.anchored == 0:
        among = SHARED_WITH_SAFE + (among if candidate < part.followed - 1 else 0.0)
    for signal in range(part.signals):
        at = signal * width + candidate
        if part.sharp == RARE:
            count = rare[2 * width + at]
            ends = rare_own_ends(part, signal, among, rare[candidate], rare[width + candidate], count, settings)
        else:
            ends = own_ends(part, signal, among, own.weights[candidate], own.sums[at], settings)
        lows[at], highs[at] = max(lows[at], ends.low), min(highs[at], ends.high)


@kernel
def narrow(part: Part, settings: Floats, work: Floats) -> None:
    """Keep the tighter ends of what is kept and of the ellipsoid, for every followed candidate; `work` is (F,)."""
    if part.followed == 0:
        return
    n, k, width = part.size, part.signals, part.width
    own, rows, widths, forms = own_of(part), part.rows, work[:width], part.rows[n + k]
    for candidate in range(width):
        widths[candidate] = math.sqrt(forms[candidate])
    for signal in range(k):
        beta, estimates = radius_of(part, settings, 0.0, signal), rows[n + signal]
        lows, highs = own.lows[signal * width : (signal + 1) * width], own.highs[signal * width : (signal + 1) * width]
        for candidate in range(width):
            half = beta * widths[candidate]
            lows[candidate] = max(lows[candidate], estimates[candidate] - half)
            highs[candidate] = min(highs[candidate], estimates[candidate] + half)


@kernel
def recall_own(part: Part, bounds: Floats) -> None:
    """Write the bounds of the followed candidates, and of the safe action.

    Ends that have passed each other contradict a declared fact; the larger then stands above the smaller one.
    """
    own, width = own_of(part), part.width
    for signal in range(part.signals):
        centre, half = bounds[part.first + signal, CENTRE], bounds[part.first + signal, HALF]
        lows, highs = own.lows[signal * width : (signal + 1) * width], own.highs[signal * width : (signal + 1) * width]
        for candidate in range(part.followed):
            centre[candidate] = 0.5 * (lows[candidate] + highs[candidate])
            half[candidate] = 0.5 * abs(highs[candidate] - lows[candidate])


@kernel
def safe_ends(part: Part, signal: int, settings: Floats) -> Ends:
    """Return what the plays of the safe action alone say of its mean, where it is not known."""
    taken, sum_ = part.tally[SAFE_TAKEN], part.tally[SQUARES + part.signals + signal]
    if part.followed > 0:
        at, own = signal * part.width + part.followed - 1, own_of(part)
        return Ends(own.lows[at], own.highs[at])
    if taken == 0.0:
        return Ends(-math.inf, math.inf)
    if part.sharp == RARE:
        count = sum_ - taken * edges_of(part, settings).least[signal]
        return rare_own_ends(part, signal, SHARED_WITH_SAFE, taken, 0.0, count, settings)
    return own_ends(part, signal, SHARED_WITH_SAFE, taken, sum_, settings)


@kernel
def hold_safe(part: Part, straight: bool, settings: Floats, bounds: Floats) -> None:
    """Cut the safe action's bounds to its own set; along rays around the estimate, so that they bend as a norm does."""
    safe = bounds.shape[2] - 1
    for signal in range(part.signals):
        centre, half, ends = (
            bounds[part.first + signal, CENTRE],
            bounds[part.first + signal, HALF],
            safe_ends(part, signal, settings),
        )
        if straight:
            low, high = max(ends.low, centre[safe] - half[safe]), min(ends.high, centre[safe] + half[safe])
            if low < high:
                centre[safe], half[safe] = 0.5 * (low + high), 0.5 * (high - low)
        elif ends.low < ends.high:
            half[safe] = min(half[safe], max(ends.high - centre[safe], centre[safe] - ends.low))


@kernel
def look_own(
    part: Part, features: Floats, safe: Floats, known: bool, straight: bool, settings: Floats, memory: Floats,
    bounds: Floats, work: Floats,
) -> None:  # fmt: skip
    """Write the bounds of any candidates; without `straight`, those of the ellipsoid, but for the safe action's."""
    if known and straight:
        recall_own(part, bounds)
        return
    if known:
        recall_ridge(part, settings, memory, bounds, work)
    else:
        look_ridge(part, features, safe, settings, memory, bounds, work)
        if straight:
            clip_own(part, features, settings, bounds, work)
    if part.anchored == 0:
        hold_safe(part, straight, settings, bounds)
