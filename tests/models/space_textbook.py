"""The witness for kernel ridge regression: dense matrices, one row an observation, solved with numpy."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gamma, kv

from stagewise import RBF, LinearKernel
from stagewise.engine.compile import Floats


def matrix(kernel: Any, rows: Floats, columns: Floats) -> Floats:
    """Return k between points; Matérn in its general form 2^(1−ν)/Γ(ν) (√(2ν) r)^ν K_ν(√(2ν) r)."""
    if isinstance(kernel, LinearKernel):
        return rows @ columns.T
    distances = np.linalg.norm(rows[:, None] - columns[None], axis=2) / kernel.lengthscale
    if isinstance(kernel, RBF):
        return np.exp(-(distances**2) / 2.0)
    nu, scaled = kernel.smoothness, np.sqrt(2.0 * kernel.smoothness) * distances
    with np.errstate(invalid="ignore"):
        values = 2.0 ** (1.0 - nu) / gamma(nu) * scaled**nu * kv(nu, scaled)
    return np.where(scaled == 0.0, 1.0, values)


class Signal(NamedTuple):
    """One signal: its kernel, and what is known of it at the safe action."""

    kernel: Any
    safe: Floats
    value: float | None  # at the safe action; None: unknown
    noise: float
    norm_bound: float
    level: float  # δ_k
    ridge: float

    @property
    def anchored(self) -> bool:
        return self.value is not None and matrix(self.kernel, self.safe[None], self.safe[None])[0, 0] > 0.0

    def mean(self, points: Floats) -> Floats:
        """Return the known part c₀ k(x, x₀)/k(x₀, x₀)."""
        if not self.anchored:
            return np.zeros(len(points))
        ties = matrix(self.kernel, points, self.safe[None])[:, 0]
        return self.value * ties / matrix(self.kernel, self.safe[None], self.safe[None])[0, 0]

    def unknown(self, rows: Floats, columns: Floats) -> Floats:
        """Return k₀ between points."""
        full = matrix(self.kernel, rows, columns)
        if not self.anchored:
            return full
        own = matrix(self.kernel, self.safe[None], self.safe[None])
        return full - matrix(self.kernel, rows, self.safe[None]) @ matrix(self.kernel, self.safe[None], columns) / own

    @property
    def learned_bound(self) -> float:
        if not self.anchored:
            return self.norm_bound
        own = matrix(self.kernel, self.safe[None], self.safe[None])[0, 0]
        return math.sqrt(max(self.norm_bound**2 - self.value**2 / own, 0.0))


class Bounds(NamedTuple):
    """What kernel ridge regression says of points."""

    estimates: Floats
    widths: Floats  # σ_t(x)/√λ
    radius: float


def textbook(signal: Signal, actions: Floats, outcomes: Floats, points: Floats) -> Bounds:
    """Return f̂ = m + k'(K + λI)⁻¹(y − m), σ² = k₀(x, x) − k'(K + λI)⁻¹k and the joint radius."""
    gram = signal.unknown(actions, actions)
    cross, own = signal.unknown(actions, points), np.diag(signal.unknown(points, points))
    ridged = gram + signal.ridge * np.eye(len(actions))
    solved = np.linalg.solve(ridged, cross)
    estimates = signal.mean(points) + solved.T @ (outcomes - signal.mean(actions))
    squares = own - np.einsum("ij,ij->j", cross, solved)
    log_det = np.linalg.slogdet(np.eye(len(actions)) + gram / signal.ridge)[1]
    deviation = signal.noise**2 * (log_det + 2.0 * math.log(1.0 / signal.level))
    radius = math.sqrt(deviation + signal.ridge * signal.learned_bound**2)
    return Bounds(estimates, np.sqrt(np.maximum(squares, 0.0) / signal.ridge), radius)
