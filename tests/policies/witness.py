"""The witness for beliefs: confidence sets and true optima recomputed with numpy from what was observed."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from tests.engine.highs import Program, best_value, quiet_solver

from stagewise.engine.compile import Floats

SOLVER = quiet_solver()


class Signal(NamedTuple):
    """One signal's truth, what is known of it at the safe action, and what was declared of its noise."""

    truth: Floats  # (d,) of norm at most 1, the declared bound
    safe: Floats  # (d,) x₀
    known: bool  # whether the value at x₀ was declared
    noise: float  # R
    level: float  # δ_k
    ridge: float = 1.0  # λ

    @property
    def anchored(self) -> bool:
        return self.known and bool(np.any(self.safe))

    @property
    def basis(self) -> Floats:
        """The directions (d, n) in which the signal is learned."""
        return null_space(self.safe[np.newaxis]) if self.anchored else np.eye(self.safe.size)

    @property
    def carried(self) -> Floats:
        """The vector (d,) whose product with an action is what is known of its value."""
        if not self.anchored:
            return np.zeros(self.safe.size)
        return (self.safe @ self.truth) / (self.safe @ self.safe) * self.safe

    def value(self, actions: Floats) -> Floats:
        return actions @ self.truth


class Belief(NamedTuple):
    """An ellipsoid that should contain the truth: ‖Uᵀθ* − θ̂‖_V ≤ β."""

    signal: Signal
    gram: Floats  # (n, n) V
    fit: Floats  # (n,) θ̂
    radius: float  # β

    def holds(self) -> bool:
        miss = self.signal.basis.T @ self.signal.truth - self.fit
        return math.sqrt(miss @ self.gram @ miss) <= self.radius

    def estimates(self, actions: Floats) -> Floats:
        return actions @ self.signal.carried + actions @ self.signal.basis @ self.fit

    def widths(self, actions: Floats) -> Floats:
        """Return β ‖x‖ in V⁻¹, for every row."""
        z = actions @ self.signal.basis
        return self.radius * np.sqrt(np.einsum("ij,ji->i", z, np.linalg.solve(self.gram, z.T)))


def radius_of(signal: Signal, gram: Floats, kind: str) -> float:
    """Return β as docs/theory/joint-radius.md has it."""
    n = len(gram)
    log_det = np.linalg.slogdet(gram / signal.ridge)[1]
    spread = signal.noise * math.sqrt(log_det + 2.0 * math.log(1.0 / signal.level))
    along = np.linalg.norm(signal.carried)
    bias = math.sqrt(signal.ridge * (1.0 - along**2))
    assert n == signal.safe.size - signal.anchored
    return math.hypot(spread, bias) if kind == "joint" else spread + bias


def believed(signal: Signal, actions: Floats, observed: Floats, kind: str = "joint") -> Belief:
    """Return the belief that these observations (n,) of these actions (n, d) lead to."""
    z = actions @ signal.basis
    gram = signal.ridge * np.eye(z.shape[1]) + z.T @ z
    fit = np.linalg.solve(gram, z.T @ (observed - actions @ signal.carried))
    return Belief(signal, gram, fit, radius_of(signal, gram, kind))


def unlucky(signal: Signal, actions: Floats, towards: Floats, sign: float, share: float, kind: str = "joint") -> Floats:
    """Return observations (n,) after which the truth is `share` of the radius away, the value of `towards` most of all.

    Among all data that leave the truth in its confidence set these are the worst: a random walk hardly ever finds them.
    The actions must span the directions that are learned.
    """
    z, goal = actions @ signal.basis, towards @ signal.basis
    gram = signal.ridge * np.eye(z.shape[1]) + z.T @ z
    pull = np.linalg.solve(gram, goal)
    size = math.sqrt(max(goal @ pull, 1e-300))
    fit = signal.basis.T @ signal.truth + sign * share * radius_of(signal, gram, kind) * pull / size
    return actions @ signal.carried + z @ np.linalg.solve(z.T @ z, gram @ fit)


def best_on_rays(safe: Floats, targets: Floats, reward: Floats, costs: Floats, thresholds: Floats) -> tuple[float, int]:
    """Return the largest true reward of a truly safe point on a ray, and the ray; −1: the safe action."""
    best, ray = float(safe @ reward), -1
    for i, target in enumerate(targets):
        slack, slope = thresholds - costs @ safe, costs @ (target - safe)
        step = min([1.0, *(slack[slope > slack] / slope[slope > slack])])
        value = float((safe + step * (target - safe)) @ reward)
        if value > best:
            best, ray = value, i
    return best, ray


def best_mixture(reward: Floats, costs: Floats, safe_reward: float, safe_costs: Floats, limits: Floats) -> float:
    """Return the largest expected reward of a mixture whose expected costs (m, K) obey the limits, by HiGHS."""
    return best_value(SOLVER, Program(reward, costs, safe_reward, safe_costs, limits))
