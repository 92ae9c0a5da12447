"""The best mixture when the costs' uncertainty is that of the mixture: a second-order cone program."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.rules.solver_pool import ConicProblem, solve_conic

ACCURACY = 1e-6  # of a value, relative if it is above one
NEGLIGIBLE = 1e-8  # smaller shares are solver tolerance


class Columns(NamedTuple):
    """What can be mixed, one column each, and the limits of the mixture's costs."""

    costs: Floats  # (m, N) estimates
    images: Floats  # (n, N) Tz; the norm of their mean is the mixture's width; n ≥ 1
    radii: Floats  # (m,) α_c β
    limits: Floats  # (m,) signed, less a rounding margin
    safe_index: int  # the safe action's column, which alone is within the limits


class Mixture(NamedTuple):
    """A mixture within the limits, and an upper bound on the best one."""

    shares: Floats  # (N,)
    value: float  # its value
    bound: float  # certified upper bound on the value of any mixture within the limits


def compute_pessimistic_costs(columns: Columns, shares: Floats) -> Floats:
    """Return the pessimistic costs of a mixture, Σ p_i c_ji + radius_j ‖Σ p_i Tz_i‖."""
    mean = columns.images @ shares
    pessimistic: Floats = columns.costs @ shares + columns.radii * math.sqrt(mean @ mean)
    return pessimistic


def find_best_mixture_in_cone(columns: Columns, gains: Floats) -> Mixture:
    """Maximise Σ p_i gain_i subject to Σ p_i c_ji + radius_j ‖Σ p_i Tz_i‖ ≤ limit_j for every j.

    The solver's result is made safe, and the bound is certified independently of it. If the two are not close, the
    solver runs again with iterative refinement, which takes twice the time.
    """
    tried: list[Mixture] = []
    for refined in (False, True):
        found, bound = solve_dual(columns, gains, refined)
        shares = clean_shares(found, columns)
        tried.append(Mixture(shares, float(gains @ shares), bound))
        if bound - tried[-1].value <= ACCURACY * max(1.0, abs(tried[-1].value)):
            break
    return max(tried, key=lambda one: one.value)._replace(bound=min(one.bound for one in tried))


def solve_dual(columns: Columns, gains: Floats, refined: bool) -> tuple[Floats, float]:
    """Return nearly optimal shares, as the solver returns them, and a certified bound on Σ p_i gain_i.

    Clarabel is given the dual, which has 1 + m + n variables however many actions there are:

        minimise ν + Σ λ_j limit_j  subject to  ν + Σ λ_j c_ji + <u, Tz_i> ≥ gain_i,  λ ≥ 0,  ‖u‖ ≤ Σ λ_j radius_j

    where p are its multipliers.
    """
    (m, count), n = columns.costs.shape, len(columns.images)
    above = gains - gains[columns.safe_index]
    widest, units, unit = compute_scales(columns, above)
    fixed, mask = build_dual_frame(m, n, count)
    matrix = fixed.copy()
    np.divide(columns.costs.T, -units, out=matrix[:count, 1 : 1 + m])
    np.divide(columns.images.T, -widest, out=matrix[:count, 1 + m :])
    matrix[count + m, 1 : 1 + m] = columns.radii * -widest / units
    right, objective = np.zeros(count + 1 + m + n), np.zeros(1 + m + n)
    np.divide(above, -unit, out=right[:count])
    objective[0], objective[1 : 1 + m] = 1.0, columns.limits / units
    pair = solve_conic(ConicProblem(objective, matrix, right, mask, count + m, refined, (m, n, count)))
    prices, pull = pair.point[1 : 1 + m] * unit / units, pair.point[1 + m :] * (unit / widest)
    return pair.multipliers[:count], compute_certified_bound(columns, gains, prices, pull)


def compute_scales(columns: Columns, above: Floats) -> tuple[float, Floats, float]:
    """Return scales in which no number is large: of the largest width, of each cost, and of the gains."""
    widest = math.sqrt(float(np.einsum("ij,ij->j", columns.images, columns.images).max())) or 1.0
    units = np.maximum(np.abs(columns.costs).max(axis=1), columns.radii * widest)
    units[units == 0.0] = 1.0
    return widest, units, float(np.abs(above).max()) or 1.0


def fill_cone(matrix: Floats, radii: Floats) -> None:
    """Write λ ≥ 0 and ‖u‖ ≤ Σ λ_j radius_j into the rows (m + 1 + n, m + n) of the variables λ and u."""
    m = radii.size
    matrix[:m, :m] = -np.eye(m)
    matrix[m, :m] = -radii
    matrix[m + 1 :, m:] = -np.eye(len(matrix) - m - 1)


@cache
def build_dual_frame(m: int, n: int, count: int) -> tuple[Floats, Flags]:
    """Return the part of the dual's matrix that depends only on its size, and the mask of its nonzero entries."""
    matrix = np.zeros((count + 1 + m + n, 1 + m + n))
    matrix[:count, 0] = -1.0
    fill_cone(matrix[count:, 1:], np.ones(m))
    mask: Flags = matrix != 0.0
    mask[:count] = True
    matrix.flags.writeable = False
    return matrix, mask


def compute_certified_bound(columns: Columns, gains: Floats, prices: Floats, pull: Floats) -> float:
    """Return an upper bound on Σ p_i gain_i within the limits, from any prices λ and any vector u.

        Σ p_i gain_i ≤ max_i (gain_i − Σ λ_j c_ji − <u, Tz_i>) + Σ λ_j limit_j    for λ ≥ 0, ‖u‖ ≤ Σ λ_j radius_j

    The largest gain is a bound too, with λ = 0.
    """
    most = float(np.max(gains))
    with np.errstate(over="ignore", invalid="ignore"):
        prices, pull = project_prices(columns, prices, pull)
        bound = float(np.max(gains - prices @ columns.costs - pull @ columns.images) + prices @ columns.limits)
    return min(bound, most) if np.isfinite(bound) else most


def project_prices(columns: Columns, prices: Floats, pull: Floats) -> tuple[Floats, Floats]:
    """Return nonnegative prices, and u scaled to the norm that they allow."""
    prices = np.maximum(prices, 0.0)
    length, allowed = math.sqrt(pull @ pull), float(prices @ columns.radii)
    return prices, pull * (allowed / length) if length > allowed else pull


def clean_shares(shares: Floats, columns: Columns) -> Floats:
    """Return a mixture within the limits from the solver's shares, without negative and negligible ones."""
    kept = np.where(shares > NEGLIGIBLE, shares, 0.0)
    total = float(kept.sum())
    if not (np.isfinite(total) and total > 0.0):
        return build_safe_shares(columns)
    return mix_back_to_safe(kept / total, columns)


def build_safe_shares(columns: Columns) -> Floats:
    """Return the mixture that plays the safe action."""
    shares = np.zeros(columns.costs.shape[1])
    shares[columns.safe_index] = 1.0
    return shares


def mix_back_to_safe(shares: Floats, columns: Columns) -> Floats:
    """Move the least weight to the safe action that makes a mixture safe: η = min_j (limit_j − C₀_j)/(C_j − C₀_j).

    The pessimistic cost is convex, so it is below the chord between C₀ and C, and η is never too large; it is exact
    where the safe action's cost is known. A slightly smaller weight compensates rounding.
    """
    costs = compute_pessimistic_costs(columns, shares)
    if (costs <= columns.limits).all():
        return shares
    safe = build_safe_shares(columns)
    start = compute_pessimistic_costs(columns, safe)
    rest, rise = columns.limits - start, costs - start
    weight = float(np.min(rest[rise > rest] / rise[rise > rest], initial=1.0))
    for breadth in (0.0, 1e-13, 1e-11, 1e-9):
        kept = weight * (1.0 - breadth)
        mixed = shares * kept
        mixed[columns.safe_index] += 1.0 - kept
        if (compute_pessimistic_costs(columns, mixed) <= columns.limits).all():
            return mixed
    return safe
