"""A logistic model of one signal with values in [0, 1]: its mean at x is σ(<x, θ*>), with ‖θ*‖ ≤ S.

It becomes `kernels/models/logistic.py` of a copy of the package (see `test_new_model.py`).

    memory:   root (n + 1, n): T, lower triangular with V⁻¹ = TᵀT, then the fit θ̂ | the excess (1,) | outcomes (1,)
    settings: λ, S, log 1/δ, known at x₀

**Theorem.** Begin with V = λI, θ̂ = 0. When y is observed at x, forecast the logit z = <x, θ̂>, cut to ±S‖x‖, and let

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
from stagewise.kernels.layout import ModelBlock

LOGITS, MEANS = 0, 1  # what is bounded, by the block's `radius`: logits, which are affine along a ray, or means
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
    """Return the length of its memory."""
    return (size + 1) * size + 2


@kernel
def length(vector: Floats) -> float:
    """Return ‖x‖."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * vector[i]
    return math.sqrt(total)


class LogisticStatistics(NamedTuple):
    """Statistics of the model."""

    root: Floats  # (n, n) T
    fit: Floats  # (n,) θ̂
    excess: float
    outcomes: float


@kernel
def get_logistic_statistics(block: ModelBlock, memory: Floats) -> LogisticStatistics:
    """Return the statistics, as views of the memory."""
    n, at, end = block.size, block.memory, block.memory + (block.size + 1) * block.size
    return LogisticStatistics(
        memory[at : at + n * n].reshape(n, n), memory[at + n * n : end], memory[end], memory[end + 1]
    )


class LogisticAssumptions(NamedTuple):
    """Assumptions of the model."""

    ridge: float
    bound: float


@kernel
def get_logistic_assumptions(block: ModelBlock, settings: Floats) -> LogisticAssumptions:
    """Return the assumptions."""
    return LogisticAssumptions(settings[block.settings], settings[block.settings + 1])


@kernel
def start_logistic(block: ModelBlock, settings: Floats, memory: Floats) -> None:
    """Write V = λI."""
    for i in range(block.size):
        memory[block.memory + i * block.size + i] = 1.0 / math.sqrt(settings[block.settings])


@kernel
def fill_image(root_: Floats, vector: Floats, image: Floats) -> None:
    """Write Tx."""
    for i in range(vector.size):
        image[i] = 0.0
        for j in range(i + 1):
            image[i] += root_[i, j] * vector[j]


@kernel
def update_root(root_: Floats, image: Floats, gain: Floats) -> float:
    """Add zzᵀ to V by updating T, given Tz; write V⁻¹z and return 1 + zᵀV⁻¹z for the old V        (Carlson 1973)."""
    before = 1.0
    gain[:] = 0.0
    for i in range(image.size):
        after = before + image[i] * image[i]
        scale = 1.0 / math.sqrt(before * after)
        for j in range(i + 1):
            old = root_[i, j]
            root_[i, j] = (before * old - image[i] * gain[j]) * scale
            gain[j] += image[i] * old
        before = after
    return before


@kernel
def learn_logistic(
    block: ModelBlock, action: Floats, values: Floats, settings: Floats, memory: Floats, work: Floats
) -> None:
    """Learn the outcome (1,) of the action x; `work` is (2n,)."""
    n, at, end = block.size, block.memory, block.memory + (block.size + 1) * block.size
    root_, fit, image, gain = memory[at : at + n * n].reshape(n, n), memory[at + n * n : end], work[:n], work[n : 2 * n]
    estimate, reach = 0.0, settings[block.settings + 1] * length(action)
    memory[end + 1] += 1.0
    for i in range(n):
        estimate += fit[i] * action[i]
    logit = min(max(estimate, -reach), reach)
    kappa = curvature(logit, reach)
    if not kappa > FLATTEST:
        return
    slope, root = sigmoid(logit) - values[0], math.sqrt(kappa)
    error = logit - slope / kappa - estimate
    fill_image(root_, action, image)
    for i in range(n):
        image[i] *= root
    after = update_root(root_, image, gain)
    for i in range(n):
        fit[i] += gain[i] * root * error / after
    memory[end] += slope * slope / kappa - kappa * error * error / after


@kernel
def compute_logistic_radius(block: ModelBlock, settings: Floats, memory: Floats) -> float:
    """Return β."""
    ridge, bound, confidence = settings[block.settings], settings[block.settings + 1], settings[block.settings + 2]
    excess = memory[block.memory + (block.size + 1) * block.size]
    return math.sqrt(max(ridge * bound * bound + 2.0 * confidence + excess, 0.0))


@kernel
def compute_logistic_bounds(
    block: ModelBlock, features: Floats, safe: Floats, settings: Floats, memory: Floats, bounds: Floats, work: Floats
) -> None:
    """Write the bounds of any candidates, and of the safe action; `work` is (n,).

    Logits lie within <x, θ̂> ± β ‖x‖_{V⁻¹} and within ±S‖x‖; means are between the σ of both ends.
    """
    n, count, at, bound = block.size, features.shape[0], block.memory, settings[block.settings + 1]
    root_, fit, image = memory[at : at + n * n].reshape(n, n), memory[at + n * n : at + n * n + n], work[:n]
    beta, centre, half = (
        compute_logistic_radius(block, settings, memory),
        bounds[block.first, CENTRE],
        bounds[block.first, HALF],
    )
    for candidate in range(count + 1):
        action = features[candidate] if candidate < count else safe
        fill_image(root_, action, image)
        reach, width, estimate = bound * length(action), beta * length(image), 0.0
        for i in range(n):
            estimate += fit[i] * action[i]
        low, high = max(min(estimate - width, reach), -reach), max(min(estimate + width, reach), -reach)
        if block.radius == MEANS:
            low, high = sigmoid(low), sigmoid(high)
        centre[candidate], half[candidate] = 0.5 * (low + high), 0.5 * (high - low)
    if block.anchored == 1:
        centre[count], half[count] = settings[block.settings + 3], 0.0
    cross, start = bounds[block.first, CROSS], half[count]
    for candidate in range(count + 1):
        cross[candidate] = start * half[candidate]  # at most, so widths are straight between the ends
