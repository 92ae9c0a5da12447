"""An upper bound on the optimistic reward over a convex set, by weak duality: valid whatever the solver returns.

The norms make the problem non-convex. For κ ≥ 0, η > 0 and any w, κ‖w‖ ≤ η‖w‖² + κ²/(4η), and for ‖p‖ ≤ ψ,
−ψ‖w‖ ≤ −<p, w>. The rest is quadratic, and with multipliers λ ≥ 0 for the limits and γ for an ellipsoid its maximum is
a closed form (docs/theory/convex-sets.md).
"""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats
from stagewise.engine.pair import TIE
from stagewise.rules.cone_program import ConicProgram

# Values of γ that are tried: above the solver's, which only approximates the least one; and above the least, in units
# of ‖h‖, because the best is at most half of it.
LIFTS, GAMMAS = np.array([0.0, 1e-12, 1e-9, 1e-7, 1e-5]), np.append(np.geomspace(1e-6, 0.3, 12), [0.4, 0.5])


class OptimisticProblem(NamedTuple):
    """Maximise <x, e> + Σ_k ω_k ‖W_k x‖ subject to <x, c_j> + ρ_j ‖W x‖ ≤ limit_j, where W is the last of the W_k.

    ρ_j < 0 is allowed: that constraint is not convex.
    """

    reward: Floats  # (d,) e
    costs: Floats  # (m, d) c
    norms: tuple[Floats, ...]  # (n, d) each: W_k
    weights: Floats  # (K,) ω ≥ 0
    cost_norm_weights: Floats  # (m,) ρ
    limits: Floats  # (m,)

    def under(self, chosen: Flags) -> "OptimisticProblem":
        """Return the same problem with only some of the limits."""
        return self._replace(
            costs=self.costs[chosen], cost_norm_weights=self.cost_norm_weights[chosen], limits=self.limits[chosen]
        )


class Multipliers(NamedTuple):
    """Multipliers, and the problem that they leave: <λ, limits> + <x, g> + Σ κ_k ‖W_k x‖."""

    limits: Floats  # (m,) λ ≥ 0
    pull: Floats  # (n,) p, for which the last norm's weight is raised by ‖p‖

    def slope(self, problem: OptimisticProblem) -> Floats:
        """Return g = e − Σ λ_j c_j − Wᵀp."""
        slope: Floats = problem.reward - self.limits @ problem.costs - self.pull @ problem.norms[-1]
        return slope

    def weights(self, problem: OptimisticProblem) -> Floats:
        """Return κ = ω, but for the last norm max{0, ω − Σ λ_j ρ_j + ‖p‖}."""
        kappa = problem.weights.copy()
        kappa[-1] = max(
            kappa[-1] - float(problem.cost_norm_weights @ self.limits) + float(np.linalg.norm(self.pull)), 0.0
        )
        return kappa


class UpperBound(NamedTuple):
    """An upper bound, and a point of the set (d,) at which the relaxation nearly attains it."""

    bound: float
    point: Floats


def round_up(bound: float) -> float:
    """Return a bound that rounding cannot have moved below the true one."""
    return bound + TIE * abs(bound)


def build_dual_program(problem: OptimisticProblem, more: int) -> tuple[ConicProgram, slice, int]:
    """Return a program with variables λ, p, ψ, κ and `more`, the common constraints, and the indices of p and κ.

    λ ≥ 0,  κ ≥ 0,  ‖p‖ ≤ ψ,  κ ≥ ω − Σ λ_j ρ_j + ψ  for the last norm; the cost of λ is its limits.
    """
    m, n = problem.limits.size, len(problem.norms[-1])
    size = kappa = m + n + 1
    program = ConicProgram(size + 1 + more)
    program.cost[:m] = problem.limits
    eye = np.eye(size + 1 + more)
    program.add_nonnegative(eye[[*range(m), kappa]], np.zeros(m + 1))
    weight = eye[kappa] - eye[size - 1]
    weight[:m] = problem.cost_norm_weights
    program.add_nonnegative(weight[np.newaxis], -problem.weights[-1:])
    program.add_norm_bound(eye[[size - 1, *range(m, m + n)]], np.zeros(1 + n))
    return program, slice(m, m + n), kappa


def bound_over_points(problem: OptimisticProblem, points: Floats) -> UpperBound:
    """Return an upper bound over the mixtures of `points` (N, d).

        min over λ ≥ 0 and p of  <λ, limits> + max over the points of <x, g> + Σ κ_k ‖W_k x‖

    A convex function is largest at a vertex, so for κ ≥ 0 the inner maximum is that over the whole polytope.
    """
    images = points @ problem.norms[-1].T
    widths = np.array([np.linalg.norm(points @ norm.T, axis=1) for norm in problem.norms])

    def bound(prices: Multipliers) -> UpperBound:
        values = points @ prices.slope(problem) + prices.weights(problem) @ widths
        best = int(np.argmax(values))
        return UpperBound(round_up(float(problem.limits @ prices.limits + values[best])), points[best])

    m = problem.limits.size
    free = bound(Multipliers(np.zeros(m), np.zeros(len(problem.norms[-1]))))
    if m == 0:
        return free
    program, pull, _ = build_dual_program(problem, 1)
    program.cost[-1] = 1.0
    rows = np.column_stack([points @ problem.costs.T, images, np.zeros(len(points)), -widths[-1], np.ones(len(points))])
    program.add_nonnegative(rows, -(points @ problem.reward + problem.weights[:-1] @ widths[:-1]))
    answer = program.solve()
    if answer is None:
        return free
    found = bound(Multipliers(np.maximum(answer.point[:m], 0.0), answer.point[pull]))
    first = m + 2  # the multipliers of λ ≥ 0, κ ≥ 0 and κ ≥ … come first
    shares = np.maximum(answer.dual[first : first + len(points)], 0.0)
    point = shares @ points / shares.sum() if shares.sum() > 0.0 else found.point
    return UpperBound(min(free.bound, found.bound), point)


class EllipsoidProblem(NamedTuple):
    """The problem over ‖v‖ ≤ 1, x = c + F v."""

    problem: OptimisticProblem
    center: Floats
    factor: Floats  # (d, d)
    squares: Floats  # (K, d, d) S_k = FᵀW_kᵀW_kF
    pulls: Floats  # (K, d) FᵀW_kᵀW_k c
    starts: Floats  # (K,) ‖W_k c‖²

    def bound(self, prices: Multipliers, eta: Floats, gamma: float) -> UpperBound:
        """Return the dual value: an upper bound for every λ ≥ 0, p, η > 0 and γ, which is raised if too small.

        <λ, limits> + <c, g> + Σ (η_k ‖W_k c‖² + κ_k²/(4η_k)) + γ + ¼ hᵀ(γI − Σ η_k S_k)⁻¹h,
        h = Fᵀg + 2 Σ η_k FᵀW_kᵀW_k c
        """
        slope, kappa = prices.slope(self.problem), prices.weights(self.problem)
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
        fixed = self.problem.limits @ prices.limits + self.center @ slope + eta @ self.starts + quarter.sum()
        position = axes @ steps[best]
        inside = position / max(float(np.linalg.norm(position)), 1.0)
        return UpperBound(round_up(float(fixed + totals[best])), self.center + self.factor @ inside)


def bound_over_ellipsoid(problem: OptimisticProblem, center: Floats, factor: Floats) -> UpperBound:
    """Return an upper bound over the points c + F v with ‖v‖ ≤ 1: multipliers by Clarabel, then the closed form."""
    turned = to_ellipsoid_coordinates(problem, center, factor)
    return turned.bound(*compute_multipliers(turned))


def to_ellipsoid_coordinates(problem: OptimisticProblem, center: Floats, factor: Floats) -> EllipsoidProblem:
    pairs = [(norm @ factor, norm @ center) for norm in problem.norms]
    squares, pulls = [image.T @ image for image, _ in pairs], [image.T @ middle for image, middle in pairs]
    starts = [float(middle @ middle) for _, middle in pairs]
    return EllipsoidProblem(problem, center, factor, np.array(squares), np.array(pulls), np.array(starts))


def compute_multipliers(turned: EllipsoidProblem) -> tuple[Multipliers, Floats, float]:
    """Return near-optimal λ, p, η, γ; if the solver fails, multipliers that are always valid.

    Besides λ, p, ψ, κ the variables are η (K), γ, s (K) and y:  s_k ≥ κ_k²/(4η_k), and the sum of y is at least
    ¼ hᵀ(γI − Σ η_k S_k)⁻¹h. For one norm that is y_i ≥ h_i²/(4(γ − η S_ii)) in the axes of S, cones of three numbers;
    for several it is one semidefinite matrix [[γI − Σ η_k S_k, h/2], [hᵀ/2, y]].
    """
    problem, m, (count, d) = turned.problem, turned.problem.limits.size, turned.pulls.shape
    program, pull, kappa = build_dual_program(problem, 2 * count + 1 + (d if count == 1 else 1))
    size, eye = program.cost.size, np.eye(program.cost.size)
    eta, gamma, first = slice(kappa + 1, kappa + 1 + count), kappa + 1 + count, kappa + 2 + count
    y = first + count
    program.cost[:m] -= problem.costs @ turned.center
    program.cost[pull] = -problem.norms[-1] @ turned.center
    program.cost[eta], program.cost[gamma:] = turned.starts, 1.0
    for k in range(count - 1):
        program.add_product(np.zeros(size), float(problem.weights[k]), eye[first + k], eye[eta][k])
    program.add_product(eye[kappa], 0.0, eye[y - 1], eye[gamma - 1])
    values, axes = np.linalg.eigh(turned.squares[0]) if count == 1 else (np.zeros(d), np.eye(d))
    base, slopes = turned.factor.T @ problem.reward @ axes, np.zeros((d, size))  # h = base + slopes · variables
    slopes[:, :m] = -(problem.costs @ turned.factor @ axes).T
    slopes[:, pull] = -(problem.norms[-1] @ turned.factor @ axes).T
    slopes[:, eta] = 2.0 * (turned.pulls @ axes).T
    if count == 1:
        for i in range(d):
            program.add_product(slopes[i], float(base[i]), eye[y + i], eye[gamma] - values[i] * eye[gamma - 1])
    else:
        matrices, constant = np.zeros((size, d + 1, d + 1)), np.zeros((d + 1, d + 1))
        constant[:d, d], matrices[:, :d, d] = 0.5 * base, 0.5 * slopes.T
        matrices[eta, :d, :d], matrices[gamma, :d, :d], matrices[y, d, d] = -turned.squares, np.eye(d), 1.0
        program.add_semidefinite(matrices, constant)
    answer = program.solve()
    if answer is None:  # no price for the limits, and η = ω/(2 width)
        widths = np.sqrt(turned.starts) + np.sqrt(np.array([np.linalg.norm(square, 2) for square in turned.squares]))
        none = Multipliers(np.zeros(m), np.zeros(pull.stop - pull.start))
        return none, problem.weights / np.maximum(2.0 * widths, 1e-300), 0.0
    found = answer.point
    return Multipliers(np.maximum(found[:m], 0.0), found[pull]), found[eta], float(found[gamma])
