"""An upper bound on what can be hoped for in a convex set, by weak duality: valid whatever the solver says.

The norms make the problem non-convex. For κ ≥ 0, η > 0 and any w, κ‖w‖ ≤ η‖w‖² + κ²/(4η), and for ‖p‖ ≤ ψ,
−ψ‖w‖ ≤ −<p, w>. What remains is quadratic, and with multipliers λ ≥ 0 for the limits and γ for an ellipsoid its maximum
is a closed form (docs/theory/convex-sets.md).
"""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.kernels.rules.tie import TIE
from stagewise.rules.conic_program import ConicProgram

# Tried above the γ of a solver, which only comes near the least one; and above the least, in units of ‖h‖: the best is
# at most half of it.
LIFTS, GAMMAS = np.array([0.0, 1e-12, 1e-9, 1e-7, 1e-5]), np.append(np.geomspace(1e-6, 0.3, 12), [0.4, 0.5])


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


class Prices(NamedTuple):
    """Multipliers, and what they leave of the problem: <λ, limits> + <x, g> + Σ κ_k ‖W_k x‖."""

    limits: Floats  # (m,) λ ≥ 0
    pull: Floats  # (n,) p, for which the last norm's weight is raised by ‖p‖

    def slope(self, hope: Hope) -> Floats:
        """Return g = e − Σ λ_j c_j − Wᵀp."""
        slope: Floats = hope.reward - self.limits @ hope.costs - self.pull @ hope.norms[-1]
        return slope

    def weights(self, hope: Hope) -> Floats:
        """Return κ = ω, but for the last norm max{0, ω − Σ λ_j ρ_j + ‖p‖}."""
        kappa = hope.weights.copy()
        kappa[-1] = max(kappa[-1] - float(hope.doubts @ self.limits) + float(np.linalg.norm(self.pull)), 0.0)
        return kappa


class Relaxed(NamedTuple):
    """An upper bound, and a point of the set (d,) at which the relaxation attains it or nearly does."""

    bound: float
    point: Floats


def rounded_up(bound: float) -> float:
    """Return a bound that rounding cannot have carried below the true one."""
    return bound + TIE * abs(bound)


def priced(hope: Hope, more: int) -> tuple[ConicProgram, slice, int]:
    """Return a program whose variables are λ, p, ψ, κ and `more`, with what all relaxations ask; p's place, and κ's.

    λ ≥ 0,  κ ≥ 0,  ‖p‖ ≤ ψ,  κ ≥ ω − Σ λ_j ρ_j + ψ  for the last norm; the cost of λ is its limits.
    """
    m, n = hope.limits.size, len(hope.norms[-1])
    size = kappa = m + n + 1
    program = ConicProgram(size + 1 + more)
    program.cost[:m] = hope.limits
    eye = np.eye(size + 1 + more)
    program.at_least_zero(eye[[*range(m), kappa]], np.zeros(m + 1))
    weight = eye[kappa] - eye[size - 1]
    weight[:m] = hope.doubts
    program.at_least_zero(weight[np.newaxis], -hope.weights[-1:])
    program.within(eye[[size - 1, *range(m, m + n)]], np.zeros(1 + n))
    return program, slice(m, m + n), kappa


def over_points(hope: Hope, points: Floats) -> Relaxed:
    """Return an upper bound over the mixtures of `points` (N, d).

        min over λ ≥ 0 and p of  <λ, limits> + max over the points of <x, g> + Σ κ_k ‖W_k x‖

    A convex function is largest at a vertex, so for κ ≥ 0 the inner maximum is that over the whole polytope.
    """
    images = points @ hope.norms[-1].T
    widths = np.array([np.linalg.norm(points @ norm.T, axis=1) for norm in hope.norms])

    def bound(prices: Prices) -> Relaxed:
        values = points @ prices.slope(hope) + prices.weights(hope) @ widths
        best = int(np.argmax(values))
        return Relaxed(rounded_up(float(hope.limits @ prices.limits + values[best])), points[best])

    m = hope.limits.size
    free = bound(Prices(np.zeros(m), np.zeros(len(hope.norms[-1]))))
    if m == 0:
        return free
    program, pull, _ = priced(hope, 1)
    program.cost[-1] = 1.0
    rows = np.column_stack([points @ hope.costs.T, images, np.zeros(len(points)), -widths[-1], np.ones(len(points))])
    program.at_least_zero(rows, -(points @ hope.reward + hope.weights[:-1] @ widths[:-1]))
    answer = program.solved()
    if answer is None:
        return free
    found = bound(Prices(np.maximum(answer.point[:m], 0.0), answer.point[pull]))
    first = m + 2  # the multipliers of λ ≥ 0, κ ≥ 0 and κ ≥ … come first
    shares = np.maximum(answer.dual[first : first + len(points)], 0.0)
    point = shares @ points / shares.sum() if shares.sum() > 0.0 else found.point
    return Relaxed(min(free.bound, found.bound), point)


class Turned(NamedTuple):
    """The problem over ‖v‖ ≤ 1, x = c + F v."""

    hope: Hope
    center: Floats
    factor: Floats  # (d, d)
    squares: Floats  # (K, d, d) S_k = FᵀW_kᵀW_kF
    pulls: Floats  # (K, d) FᵀW_kᵀW_k c
    starts: Floats  # (K,) ‖W_k c‖²

    def bound(self, prices: Prices, eta: Floats, gamma: float) -> Relaxed:
        """Return the dual value: an upper bound for every λ ≥ 0, p, η > 0 and γ, which is raised where too small.

        <λ, limits> + <c, g> + Σ (η_k ‖W_k c‖² + κ_k²/(4η_k)) + γ + ¼ hᵀ(γI − Σ η_k S_k)⁻¹h,
        h = Fᵀg + 2 Σ η_k FᵀW_kᵀW_k c
        """
        slope, kappa = prices.slope(self.hope), prices.weights(self.hope)
        eta = np.where(kappa > 0.0, np.maximum(eta, 1e-12), 0.0)
        quarter = np.divide(kappa**2, 4.0 * eta, out=np.zeros_like(eta), where=eta > 0.0)
        values, axes = np.linalg.eigh(np.tensordot(eta, self.squares, 1))
        turned = (self.factor.T @ slope + 2.0 * eta @ self.pulls) @ axes
        least, size = max(float(values[-1]), 0.0), float(np.linalg.norm(turned))
        gammas = np.append(max(gamma, least) + LIFTS * (size + least + 1e-300), least + GAMMAS * size)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(turned == 0.0, 0.0, 0.5 * turned / (gammas[:, np.newaxis] - values))
        totals = gammas + 0.5 * steps @ turned
        best = int(np.argmin(totals))
        fixed = self.hope.limits @ prices.limits + self.center @ slope + eta @ self.starts + quarter.sum()
        place = axes @ steps[best]
        inside = place / max(float(np.linalg.norm(place)), 1.0)
        return Relaxed(rounded_up(float(fixed + totals[best])), self.center + self.factor @ inside)


def over_ellipsoid(hope: Hope, center: Floats, factor: Floats) -> Relaxed:
    """Return an upper bound over the points c + F v with ‖v‖ ≤ 1: multipliers by Clarabel, then the formula."""
    turned = turned_to(hope, center, factor)
    return turned.bound(*multipliers(turned))


def turned_to(hope: Hope, center: Floats, factor: Floats) -> Turned:
    """Return the problem in the coordinates of an ellipsoid."""
    pairs = [(norm @ factor, norm @ center) for norm in hope.norms]
    squares, pulls = [image.T @ image for image, _ in pairs], [image.T @ middle for image, middle in pairs]
    starts = [float(middle @ middle) for _, middle in pairs]
    return Turned(hope, center, factor, np.array(squares), np.array(pulls), np.array(starts))


def multipliers(turned: Turned) -> tuple[Prices, Floats, float]:
    """Return near-optimal λ, p, η, γ; where the solver fails, ones that are always valid.

    Besides λ, p, ψ, κ the variables are η (K), γ, s (K) and y:  s_k ≥ κ_k²/(4η_k), and the sum of y is at least
    ¼ hᵀ(γI − Σ η_k S_k)⁻¹h. For one norm that is y_i ≥ h_i²/(4(γ − η S_ii)) in the axes of S, cones of three numbers;
    for several it is one semidefinite matrix [[γI − Σ η_k S_k, h/2], [hᵀ/2, y]].
    """
    hope, m, (count, d) = turned.hope, turned.hope.limits.size, turned.pulls.shape
    program, pull, kappa = priced(hope, 2 * count + 1 + (d if count == 1 else 1))
    size, eye = program.cost.size, np.eye(program.cost.size)
    eta, gamma, first = slice(kappa + 1, kappa + 1 + count), kappa + 1 + count, kappa + 2 + count
    y = first + count
    program.cost[:m] -= hope.costs @ turned.center
    program.cost[pull] = -hope.norms[-1] @ turned.center
    program.cost[eta], program.cost[gamma:] = turned.starts, 1.0
    for k in range(count - 1):
        program.product(np.zeros(size), float(hope.weights[k]), eye[first + k], eye[eta][k])
    program.product(eye[kappa], 0.0, eye[y - 1], eye[gamma - 1])
    values, axes = np.linalg.eigh(turned.squares[0]) if count == 1 else (np.zeros(d), np.eye(d))
    base, slopes = turned.factor.T @ hope.reward @ axes, np.zeros((d, size))  # h = base + slopes · variables
    slopes[:, :m] = -(hope.costs @ turned.factor @ axes).T
    slopes[:, pull] = -(hope.norms[-1] @ turned.factor @ axes).T
    slopes[:, eta] = 2.0 * (turned.pulls @ axes).T
    if count == 1:
        for i in range(d):
            program.product(slopes[i], float(base[i]), eye[y + i], eye[gamma] - values[i] * eye[gamma - 1])
    else:
        matrices, constant = np.zeros((size, d + 1, d + 1)), np.zeros((d + 1, d + 1))
        constant[:d, d], matrices[:, :d, d] = 0.5 * base, 0.5 * slopes.T
        matrices[eta, :d, :d], matrices[gamma, :d, :d], matrices[y, d, d] = -turned.squares, np.eye(d), 1.0
        program.semidefinite(matrices, constant)
    answer = program.solved()
    if answer is None:  # no price for the limits, and η = ω/(2 width)
        widths = np.sqrt(turned.starts) + np.sqrt(np.array([np.linalg.norm(square, 2) for square in turned.squares]))
        none = Prices(np.zeros(m), np.zeros(pull.stop - pull.start))
        return none, hope.weights / np.maximum(2.0 * widths, 1e-300), 0.0
    found = answer.point
    return Prices(np.maximum(found[:m], 0.0), found[pull]), found[eta], float(found[gamma])
