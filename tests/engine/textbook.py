"""The witness for the linear model: estimates, widths and radii in R^d, with numpy and the paper's pseudo-inverse."""

import math
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.models.ridge import LinearModel


class Fit(NamedTuple):
    """One signal, estimated."""

    parameter: Floats  # (d,) known part and fitted part together
    across: Floats  # (d, d) the projection onto what is learned
    spread: Floats  # (d, d) (Σ⊥)⁺, or Σ⁻¹ where nothing is known
    log_det: float  # log det Σ⊥/λⁿ
    dimension: int  # n

    def estimates(self, actions: Floats) -> Floats:
        return actions @ self.parameter

    def crosses(self, actions: Floats, other: Floats) -> Floats:
        return actions @ self.spread @ other

    def widths(self, actions: Floats) -> Floats:
        learned = actions @ self.across  # first, since a root of rounding errors is no rounding error
        return np.sqrt(np.maximum(np.einsum("...i,ij,...j->...", learned, self.spread, learned), 0.0))


def fitted(safe: Floats, known: float | None, ridge: float, actions: Floats, values: Floats) -> Fit:
    """Return what values (t,) of actions (t, d) say; `known` is the value at the safe action, None where unknown."""
    d = safe.size
    along, carried = np.zeros((d, d)), np.zeros(d)
    if known is not None and safe.any():
        along, carried = np.outer(safe, safe) / (safe @ safe), known * safe / (safe @ safe)
    across = np.eye(d) - along
    gram = across @ (ridge * np.eye(d) + actions.T @ actions) @ across
    spread = np.linalg.pinv(gram, rcond=1e-11, hermitian=True)
    fit = spread @ across @ actions.T @ (values - actions @ carried)
    log_det = np.linalg.slogdet(gram / ridge + along)[1]
    return Fit(carried + fit, across, spread, float(log_det), d - round(np.trace(along)))


def radius_of(
    kind: str, fit: Fit, noise: float, bound: float, ridge: float, delta: float, energy: float = math.nan
) -> float:
    """Return β by spec 7 (i), (ii) or the paper's Theorem 2, whose `energy` is (t−1)L²."""
    if kind == "paper":
        return noise * math.sqrt(fit.dimension * math.log((1.0 + energy / ridge) / delta)) + math.sqrt(ridge) * bound
    spread = noise * math.sqrt(2.0 * math.log(1.0 / delta) + fit.log_det)
    bias = math.sqrt(ridge) * bound
    return math.hypot(spread, bias) if kind == "joint" else spread + bias


def build_model(
    safe: Floats, reward: float | None, costs: Floats | None, signals: int, ridge: float = 1.0, radius: str = "joint"
) -> LinearModel:
    """Return a model of a reward and `signals − 1` costs, with plain assumptions."""
    return LinearModel(
        safe=safe,
        names=("reward", *(f"cost {j}" for j in range(1, signals))),
        reward=reward,
        costs=costs,
        noise=np.full(signals, 0.3),
        norm_bound=np.full(signals, 2.0),
        action_bound=1.0,
        ridge=ridge,
        confidence=np.full(signals, math.log(1.0 / 0.05)),
        radius=radius,
    )


def unit_rows(random: np.random.Generator, count: int, dimension: int) -> Floats:
    """Return random directions, one a row."""
    rows = random.normal(size=(count, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def solve(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a symmetric positive system by Cholesky in extended precision."""
    size = len(matrix)
    factor, x = np.zeros((size, size), dtype=np.longdouble), np.array(right, dtype=np.longdouble)
    for k in range(size):
        factor[k, k] = np.sqrt(matrix[k, k] - factor[k, :k] @ factor[k, :k])
        factor[k + 1 :, k] = (matrix[k + 1 :, k] - factor[k + 1 :, :k] @ factor[k, :k]) / factor[k, k]
    for k in range(size):
        x[k] = (x[k] - factor[k, :k] @ x[:k]) / factor[k, k]
    for k in reversed(range(size)):
        x[k] = (x[k] - factor[k + 1 :, k] @ x[k + 1 :]) / factor[k, k]
    return x
