"""Radius of a ridge estimate: β with P(∀t: ‖θ* − θ̂‖_V ≤ β) ≥ 1 − δ, by name and by formula.

To add a radius, add a name to `Radius` and a branch to `radius`. A name without a branch is infinite, so that only the
safe action is played.
"""

import math
from typing import Literal, get_args

from stagewise.kernels.compile import kernel

Radius = Literal["joint", "logdet", "paper"]
RADII = get_args(Radius)
JOINT, LOGDET, PAPER = 0, 1, 2


@kernel
def radius(
    kind: int, noise: float, bound: float, ridge: float, confidence: float, log_det: float, size: int, energy: float
) -> float:
    """Return β from R, S, λ, log 1/δ, log det V/λⁿ, n and (t−1)L².

    joint:    √(R² (log det V/λⁿ + 2 log 1/δ) + λS²)              (docs/theory/joint-radius.md)
    logdet:   R √(log det V/λⁿ + 2 log 1/δ) + S√λ                 (Abbasi-Yadkori et al. 2011, Theorem 2)
    paper:    R √(n log((1 + (t−1)L²/λ)/δ)) + S√λ                 (the paper, Theorem 2; needs n ≥ 2)
    """
    if kind == JOINT:
        return math.sqrt(noise * noise * (log_det + 2.0 * confidence) + ridge * bound * bound)
    if kind == LOGDET:
        return noise * math.sqrt(log_det + 2.0 * confidence) + bound * math.sqrt(ridge)
    if kind == PAPER:
        return noise * math.sqrt(size * (math.log1p(energy / ridge) + confidence)) + bound * math.sqrt(ridge)
    return math.inf
