"""A logistic model of one signal with values in [0, 1]: its mean at x is σ(<x, θ*>), with ‖θ*‖ ≤ S.

It becomes `kernels/signals/logistic.py` of a copy of the package (see `test_new_model.py`).

    memory:   own (n + 1, n): T, lower triangular with V⁻¹ = TᵀT, then the fit θ̂ | the excess (1,) | outcomes (1,)
    settings: λ, S, log 1/δ, known at x₀

**Theorem.** Begin with V = λI, θ̂ = 0. When y is seen at x, forecast the logit z = <x, θ̂>, cut to ±S‖x‖, and let

    g = σ(z) − y,    κ = 2σ'(z)/(2 + |z| + S‖x‖),    e = z − g/κ − <x, θ̂>
    θ̂ ← θ̂ + V⁻¹x κe/(1 + κ xᵀV⁻¹x),    V ← V + κ xxᵀ,    excess ← excess + g²/κ − κe²/(1 + κ xᵀV⁻¹x)

Then with probability 1 − δ, at all times at once, ‖θ* − θ̂‖_V ≤ β = √(λS² + 2 log 1/δ + excess).

*Proof.* With ℓ(z) = log(1 + eᶻ) − yz, the ratio exp Σ (ℓ(z*) − ℓ(z)) of the forecasts' likelihood and the truth's has
expectation at most 1 given the past, times what it was: exactly 1 for y in {0, 1}, and no more in [0, 1], being convex
in y. So Σ ℓ(z*) ≤ Σ ℓ(z) + log 1/δ at all times but with probability δ (Ville; sets of this kind: Emmenegger, Mutný,
Krause 2023). As |σ''| ≤ σ', ℓ(z*) ≥ ℓ(z) + g(z* − z) + κ(z* − z)²/2 wherever |z*| ≤ S‖x‖ (Abeille, Faury, Calauzènes
2021, Lemma 8). Completing squares, with w = z − g/κ, Σ κ(<x, θ*> − w)² ≤ 2 log 1/δ + Σ g²/κ. The left side and λ‖θ*‖²
are a ridge regression of w with weights κ: ‖θ* − θ̂‖²_V and its least value, which is Σ κe²/(1 + κ xᵀV⁻¹x).
"""

import math
from typing import NamedTuple

from stagewise.kernels.bounds import CENTRE, CROSS, HALF
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import Part

LOGITS, MEANS = 0, 1  # what bounds are of, told by the part's `radius`: logits are affine along a ray, means are mixed
FLATTEST = 1e-12  # curvature below which nothing is learned


@kernel
def sigmoid(logit: float) -> float:
    """Return σ(z) = 1/(1 + e⁻ᶻ)."""
    share = math.exp(-abs(logit))
    return 1.0 / (1.0 + share) if logit >= 0.0 else share / (1.0 + share)


@kernel
def curvature(logit: float, reach: float) -> float:
    """Return κ = 2σ'(z)/(2 + |z| + Z): ℓ lies above its parabola at z wherever |z*| ≤ Z."""
    mean = sigmoid(logit)
    return 2.0 * mean * (1.0 - mean) / (2.0 + abs(logit) + reach)


@kernel
def logistic_size(size: int) -> int:
    """Return how many numbers of memory it takes."""
    return (size + 1) * size + 2


@kernel
def length(vector: Floats) -> float:
    """Return ‖x‖."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * vector[i]
    return math.sqrt(total)


class Kept(NamedTuple):
    """What it remembers."""

    root: Floats  # (n, n) T
    fit: Floats  # (n,) θ̂
    excess: float
    outcomes: float


@kernel
def kept_of(part: Part, memory: Floats) -> Kept:
    """Return what it remembers."""
    n, at, end = part.size, part.memory, part.memory + (part.size + 1) * part.size
    return Kept(memory[at : at + n * n].reshape(n, n), memory[at + n * n : end], memory[end], memory[end + 1])


class Stated(NamedTuple):
    """What is assumed of it."""

    ridge: float
    bound: float


@kernel
def stated_of_logistic(part: Part, settings: Floats) -> Stated:
    """Return what is assumed of it."""
    return Stated(settings[part.settings], settings[part.settings + 1])


@kernel
def start_logistic(part: Part, settings: Floats, memory: Floats) -> None:
    """Write V = λI."""
    for i in range(part.size):
        memory[part.memory + i * part.size + i] = 1.0 / math.sqrt(settings[part.settings])


@kernel
def fill_image(own: Floats, vector: Floats, image: Floats) -> None:
    """Write Tx."""
    for i in range(vector.size):
        image[i] = 0.0
        for j in range(i + 1):
            image[i] += own[i, j] * vector[j]


@kernel
def weigh_in(own: Floats, image: Floats, gain: Floats) -> float:
    """Take zzᵀ into T, given Tz; write V⁻¹z and return 1 + zᵀV⁻¹z, for the V before        (Carlson 1973)."""
    before = 1.0
    gain[:] = 0.0
    for i in range(image.size):
        after = before + image[i] * image[i]
        scale = 1.0 / math.sqrt(before * after)
        for j in range(i + 1):
            old = own[i, j]
            own[i, j] = (before * old - image[i] * gain[j]) * scale
            gain[j] += image[i] * old
        before = after
    return before


@kernel
def learn_logistic(part: Part, action: Floats, values: Floats, settings: Floats, memory: Floats, work: Floats) -> None:
    """Take in what was seen (1,) when the action x was played; `work` is (2n,)."""
    n, at, end = part.size, part.memory, part.memory + (part.size + 1) * part.size
    own, fit, image, gain = memory[at : at + n * n].reshape(n, n), memory[at + n * n : end], work[:n], work[n : 2 * n]
    estimate, reach = 0.0, settings[part.settings + 1] * length(action)
    memory[end + 1] += 1.0
    for i in range(n):
        estimate += fit[i] * action[i]
    logit = min(max(estimate, -reach), reach)
    kappa = curvature(logit, reach)
    if not kappa > FLATTEST:
        return
    slope, root = sigmoid(logit) - values[0], math.sqrt(kappa)
    surprise = logit - slope / kappa - estimate
    fill_image(own, action, image)
    for i in range(n):
        image[i] *= root
    after = weigh_in(own, image, gain)
    for i in range(n):
        fit[i] += gain[i] * root * surprise / after
    memory[end] += slope * slope / kappa - kappa * surprise * surprise / after


@kernel
def radius_of(part: Part, settings: Floats, memory: Floats) -> float:
    """Return β."""
    ridge, bound, confidence = settings[part.settings], settings[part.settings + 1], settings[part.settings + 2]
    excess = memory[part.memory + (part.size + 1) * part.size]
    return math.sqrt(max(ridge * bound * bound + 2.0 * confidence + excess, 0.0))


@kernel
def look_logistic(
    part: Part, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action; `work` is (n,).

    Logits lie within <x, θ̂> ± β ‖x‖_{V⁻¹} and within ±S‖x‖; means are between the σ of both ends.
    """
    n, count, at, bound = part.size, features.shape[0], part.memory, settings[part.settings + 1]
    own, fit, image = memory[at : at + n * n].reshape(n, n), memory[at + n * n : at + n * n + n], work[:n]
    beta, centre, half = radius_of(part, settings, memory), bounds[part.first, CENTRE], bounds[part.first, HALF]
    for candidate in range(count + 1):
        action = features[candidate] if candidate < count else safe
        fill_image(own, action, image)
        reach, width, estimate = bound * length(action), beta * length(image), 0.0
        for i in range(n):
            estimate += fit[i] * action[i]
        low, high = max(min(estimate - width, reach), -reach), max(min(estimate + width, reach), -reach)
        if part.radius == MEANS:
            low, high = sigmoid(low), sigmoid(high)
        centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * (high - low)
    if part.anchored == 1:
        centre[count], half[count] = settings[part.settings + 3], 0.0
    cross, start = bounds[part.first, CROSS], half[count]
    for candidate in range(count + 1):
        cross[candidate] = start * half[candidate]  # at most, so widths are straight between the ends
