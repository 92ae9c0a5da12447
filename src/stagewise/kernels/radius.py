"""How far the truth may lie from a ridge estimate: three radii β with P(∀t: ‖θ* − θ̂‖_V ≤ β) ≥ 1 − δ."""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel

MIXTURE, LOGDET, PAPER = 0, 1, 2


class Belief(NamedTuple):
    """What is assumed of the k signals regressed together: the reward, the costs, or both."""

    kind: int  # MIXTURE, LOGDET or PAPER
    ridge: float  # λ
    action_bound: float  # L ≥ ‖x‖; only the paper's radius uses it
    noise: Floats  # (k,) R
    norm_bound: Floats  # (k,) S ≥ ‖θ*‖ of the part that is learned
    confidence: Floats  # (k,) log 1/δ_k


@kernel
def mixture(noise: float, norm_bound: float, ridge: float, confidence: float, log_det: float) -> float:
    """Return β = √(R² (log det V/λⁿ + 2 log 1/δ) + λS²)        (docs/theory/mixture-radius.md)."""
    return math.sqrt(noise * noise * (log_det + 2.0 * confidence) + ridge * norm_bound * norm_bound)


@kernel
def log_determinant(noise: float, norm_bound: float, ridge: float, confidence: float, log_det: float) -> float:
    """Return β = R √(log det V/λⁿ + 2 log 1/δ) + S√λ        (Abbasi-Yadkori et al. 2011, Theorem 2)."""
    return noise * math.sqrt(log_det + 2.0 * confidence) + norm_bound * math.sqrt(ridge)


@kernel
def closed_form(
    noise: float, norm_bound: float, ridge: float, confidence: float, dimension: int, reach: float
) -> float:
    """Return β = R √(n log((1 + (t−1)L²/λ)/δ)) + S√λ        (the paper, Theorem 2; needs n ≥ 2).

    `reach` is (t−1)L².
    """
    return noise * math.sqrt(dimension * (math.log1p(reach / ridge) + confidence)) + norm_bound * math.sqrt(ridge)


@kernel
def fill_radii(belief: Belief, dimension: int, log_det: float, count: float, radii: Floats) -> None:
    """Write the radius of every signal after `count` observations."""
    for signal in range(radii.size):
        noise, bound, confidence = belief.noise[signal], belief.norm_bound[signal], belief.confidence[signal]
        if belief.kind == MIXTURE:
            radii[signal] = mixture(noise, bound, belief.ridge, confidence, log_det)
        elif belief.kind == LOGDET:
            radii[signal] = log_determinant(noise, bound, belief.ridge, confidence, log_det)
        else:
            reach = count * belief.action_bound * belief.action_bound
            radii[signal] = closed_form(noise, bound, belief.ridge, confidence, dimension, reach)
