"""An upper bound on what can be hoped for in a convex set, by weak duality: valid whatever the solver says.

The norms make the problem non-convex. For κ ≥ 0, η > 0 and any w, κ‖w‖ ≤ η‖w‖² + κ²/(4η): what remains is quadratic,
and with multipliers λ ≥ 0 for the limits and γ for the ellipsoid its maximum is a closed form (docs/theory/convex-sets.md).
"""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.kernels.tie import TIE
from stagewise.rules.cones import Cones

LIFTS = np.array([0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])  # tried above the least γ, since a solver only comes near it


class Hope(NamedTuple):
    """Maximise <x, e> + Σ_k ω_k ‖W_k x‖ subject to <x, c_j> + ρ_j ‖W x‖ ≤ limit_j, where W is the last of the W_k.

    ρ_j < 0 is allowed: that constraint is not convex.
    """

    reward: Floats  # (d,) e
    costs: Floats  # (m, d) c
    norms: tuple[Floats, ...]  # (n, d) each: W_k
    weights: Floats  # (K,) ω ≥ 0
    doubts: Floats  # (m,) ρ
    limits: Floats  # (m,)

    def under(self, chosen: Flags) -> "Hope":
        """Return the same with only some of the limits."""
        return self._replace(costs=self.costs[chosen], doubts=self.doubts[chosen], limits=self.limits[chosen])

    def and_width_within(self, low: float, high: float) -> "Hope":
        """Return the same where low ≤ ‖W x‖ ≤ high besides."""
        return self._replace(
            costs=np.vstack([self.costs, np.zeros((2, self.reward.size))]),
            doubts=np.append(self.doubts, [-1.0, 1.0]),
            limits=np.append(self.limits, [-low, high]),
        )

    def weights_at(self, multipliers: Floats) -> Floats:
        """Return κ₊: what is left of each norm's weight once the limits are priced in."""
        kappa = self.weights.copy()
        kappa[-1] = max(kappa[-1] - float(self.doubts @ multipliers), 0.0)
        return kappa


class Relaxed(NamedTuple):
    """An upper bound, and a point of the set (d,) at which the relaxation attains it or nearly does."""

    bound: float
    point: Floats


def over_points(hope: Hope, points: Floats) -> Relaxed:
    """Return an upper bound over the mixtures of `points` (N, d).

        min over λ ≥ 0 of  <λ, limits> + max over the points of <x, e − Σ λ_j c_j> + Σ κ_k ‖W_k x‖

    A convex function is largest at a vertex, so for κ ≥ 0 the inner maximum is that over the whole polytope.
    """
    widths = np.array([np.linalg.norm(points @ norm.T, axis=1) for norm in hope.norms])
    rewards, costs = points @ hope.reward, points @ hope.costs.T

    def bound(multipliers: Floats) -> Relaxed:
        values = rewards - costs @ multipliers + hope.weights_at(multipliers) @ widths
        best = int(np.argmax(values))
        return Relaxed(rounded_up(float(hope.limits @ multipliers + values[best])), points[best])

    m = hope.limits.size
    free = bound(np.zeros(m))
    if m == 0:
        return free
    # variables λ, κ, z: the weight of the last norm and the maximum over the points
    program = Cones(m + 2)
    program.cost[:m], program.cost[m + 1] = hope.limits, 1.0
    rows = np.column_stack([costs, -widths[-1], np.ones(len(points))])
    program.at_least_zero(rows, -(rewards + hope.weights[:-1] @ widths[:-1]))
    program.at_least_zero(np.eye(m + 2)[: m + 1], np.zeros(m + 1))
    program.at_least_zero(np.append(hope.doubts, [1.0, 0.0])[np.newaxis], -hope.weights[-1:])
    answer = program.solved()
    if answer is None:
        return free
    priced, shares = bound(np.maximum(answer.point[:m], 0.0)), np.maximum(answer.dual[: len(points)], 0.0)
    point = shares @ points / shares.sum() if shares.sum() > 0.0 else priced.point
    return Relaxed(min(free.bound, priced.bound), point)


def rounded_up(bound: float) -> float:
    """Return a bound that rounding cannot have carried below the true one."""
    return bound + TIE * abs(bound)


class Turned(NamedTuple):
    """The problem over ‖v‖ ≤ 1, x = c + F v; with one norm, in the axes where its square is diagonal."""

    hope: Hope
    center: Floats
    factor: Floats  # (d, d)
    squares: Floats  # (K, d, d) FᵀW_kᵀW_kF
    pulls: Floats  # (K, d) FᵀW_kᵀW_k c
    starts: Floats  # (K,) ‖W_k c‖²

    def bound(self, multipliers: Floats, eta: Floats, gamma: float) -> Relaxed:
        """Return the dual value: an upper bound for every λ ≥ 0, η > 0 and every γ, which is raised where too small.

        <λ, limits> + <c, g> + Σ (η_k ‖W_k c‖² + κ_k²/(4η_k)) + γ + ¼ hᵀ(γI − Σ η_k S_k)⁻¹h,
        g = e − Σ λ_j c_j,   h = Fᵀg + 2 Σ η_k FᵀW_kᵀW_k c
        """
        hope, slope = self.hope, self.hope.reward - multipliers @ self.hope.costs
        kappa = hope.weights_at(multipliers)
        eta = np.where(kappa > 0.0, np.maximum(eta, 1e-12), 0.0)
        quarter = np.divide(kappa**2, 4.0 * eta, out=np.zeros_like(eta), where=eta > 0.0)
        values, axes = np.linalg.eigh(np.tensordot(eta, self.squares, 1))
        turned = (self.factor.T @ slope + 2.0 * eta @ self.pulls) @ axes
        size = float(np.linalg.norm(turned)) + abs(float(values[-1])) + 1e-300
        gammas = max(gamma, float(values[-1])) + LIFTS * size
        gaps = gammas[:, np.newaxis] - values
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(turned == 0.0, 0.0, 0.5 * turned / gaps)
        totals = gammas + 0.5 * steps @ turned
        best = int(np.argmin(totals))
        fixed = float(hope.limits @ multipliers + self.center @ slope + eta @ self.starts + quarter.sum())
        place = axes @ steps[best]
        size = float(np.linalg.norm(place))
        return Relaxed(rounded_up(fixed + float(totals[best])), self.center + self.factor @ (place / max(size, 1.0)))


def over_ellipsoid(hope: Hope, center: Floats, factor: Floats) -> Relaxed:
    """Return an upper bound over the points c + F v with ‖v‖ ≤ 1: the best multipliers by Clarabel, then the formula."""
    images = [norm @ factor for norm in hope.norms]
    middles = [norm @ center for norm in hope.norms]
    turned = Turned(
        hope,
        center,
        factor,
        np.array([image.T @ image for image in images]),
        np.array([image.T @ middle for image, middle in zip(images, middles, strict=True)]),
        np.array([float(middle @ middle) for middle in middles]),
    )
    if len(hope.norms) == 1:
        multipliers, eta, gamma = diagonal_multipliers(turned)
    else:
        multipliers, eta, gamma = matrix_multipliers(turned)
    return turned.bound(multipliers, eta, gamma)


def diagonal_multipliers(turned: Turned) -> tuple[Floats, Floats, float]:
    """Return near-optimal λ, η, γ for one norm: cones of three numbers, one for each axis.

    Variables λ (m), η, γ, κ, p, y (d):  minimise the dual value with p ≥ κ²/(4η) and y_i ≥ h_i²/(4(γ − η s_i)).
    """
    hope, d, m = turned.hope, turned.center.size, turned.hope.limits.size
    values, axes = np.linalg.eigh(turned.squares[0])
    eta, gamma, kappa, p, y = m, m + 1, m + 2, m + 3, m + 4
    program = Cones(y + d)
    eye = np.eye(y + d)
    program.cost[:m] = hope.limits - hope.costs @ turned.center
    program.cost[eta], program.cost[gamma], program.cost[p], program.cost[y:] = turned.starts[0], 1.0, 1.0, 1.0
    program.at_least_zero(eye[[*range(m), kappa]], np.zeros(m + 1))
    weight = eye[kappa].copy()
    weight[:m] = hope.doubts
    program.at_least_zero(weight[np.newaxis], -hope.weights)
    program.product(eye[kappa], 0.0, eye[p], eye[eta])
    base = turned.factor.T @ hope.reward @ axes
    prices, pull = -(hope.costs @ turned.factor @ axes), 2.0 * turned.pulls[0] @ axes
    for i in range(d):
        slope = pull[i] * eye[eta]
        slope[:m] = prices[:, i]
        program.product(slope, float(base[i]), eye[y + i], eye[gamma] - values[i] * eye[eta])
    return multipliers_of(program, turned, 1)


def matrix_multipliers(turned: Turned) -> tuple[Floats, Floats, float]:
    """Return near-optimal λ, η, γ for two norms: one semidefinite matrix [[γI − Σ η_k S_k, h/2], [hᵀ/2, y]].

    Variables λ (m), η (2), γ, κ (of the last norm), p (2), y.
    """
    hope, d, m = turned.hope, turned.center.size, turned.hope.limits.size
    count = len(hope.norms)
    gamma, kappa, p, y = m + count, m + count + 1, m + count + 2, m + 2 * count + 2
    program = Cones(y + 1)
    eye = np.eye(y + 1)
    program.cost[:m] = hope.limits - hope.costs @ turned.center
    program.cost[m:gamma] = turned.starts
    program.cost[gamma] = program.cost[y] = 1.0
    program.cost[p:y] = 1.0
    program.at_least_zero(eye[[*range(m), kappa]], np.zeros(m + 1))
    weight = eye[kappa].copy()
    weight[:m] = hope.doubts
    program.at_least_zero(weight[np.newaxis], -hope.weights[-1:])
    for k in range(count - 1):
        program.product(np.zeros(y + 1), float(hope.weights[k]), eye[p + k], eye[m + k])
    program.product(eye[kappa], 0.0, eye[y - 1], eye[gamma - 1])
    matrices = np.zeros((y + 1, d + 1, d + 1))
    constant = np.zeros((d + 1, d + 1))
    matrices[gamma, :d, :d] = np.eye(d)
    matrices[y, d, d] = 1.0
    constant[:d, d] = 0.5 * turned.factor.T @ hope.reward
    matrices[:m, :d, d] = -0.5 * hope.costs @ turned.factor
    for k in range(count):
        matrices[m + k, :d, :d] = -turned.squares[k]
        matrices[m + k, :d, d] = turned.pulls[k]
    program.semidefinite(matrices, constant)
    return multipliers_of(program, turned, count)


def multipliers_of(program: Cones, turned: Turned, count: int) -> tuple[Floats, Floats, float]:
    """Return what the solver found, or multipliers that are always valid: none for the limits, η = ω/(2 width)."""
    answer, m = program.solved(), turned.hope.limits.size
    if answer is None:
        widths = np.sqrt(turned.starts) + np.sqrt(np.array([np.linalg.norm(square, 2) for square in turned.squares]))
        return np.zeros(m), turned.hope.weights / np.maximum(2.0 * widths, 1e-300), 0.0
    found = answer.point
    return np.maximum(found[:m], 0.0), found[m : m + count], float(found[m + count])
