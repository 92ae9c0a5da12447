"""An upper bound on a convex reward over the mixtures whose mean lies in a box: its concave envelope there."""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats
from stagewise.rules.cone_program import Columns, ConicProblem, clean_shares, fill_cone, project_prices, solve_conic
from stagewise_reproduction.exact.norms import Norms, compute_bonuses, compute_value

FAR = 1e6


class Box(NamedTuple):
    """A box of mixture means y."""

    low: Floats  # (k,)
    high: Floats  # (k,)


class BoxBound(NamedTuple):
    """A mixture, and an upper bound on the value of mixtures with their mean in the box."""

    shares: Floats  # (N,) within the limits; its mean may have left the box
    value: float  # f at it
    bound: float
    mean: Floats  # (k,) where the envelope is largest, which is where to split the box


def get_corners(box: Box) -> Floats:
    """Return the 2ᵏ corners (2ᵏ, k)."""
    sides = np.array([box.low, box.high])
    picks = np.array(list(product((0, 1), repeat=box.low.size)))
    corners: Floats = sides[picks, np.arange(box.low.size)]
    return corners


def bound_in_box(columns: Columns, gains: Floats, norms: Norms, box: Box) -> BoxBound:
    """Bound f over the mixtures within the limits whose mean y is in the box.

    A convex bonus is at most Σ q_v bonus(v) wherever y = Σ q_v v over the corners v, and f is at most Σ p_i gain_i, by
    Jensen's inequality. So

        maximise min(Σ p_i gain_i, Σ p_i estimate_i + Σ q_v bonus(v))  subject to  Σ p_i w_i = Σ q_v v and the limits

    is an upper bound. Clarabel is given the dual, in ν, ζ, ω ∈ [0, 1], λ, u as in `cone`, and η:

        minimise ν + ζ + Σ λ_j limit_j  subject to  ν + Σ λ_j c_ji + <u, Tz_i> − <η, w_i> − ω (gain_i − estimate_i) ≥
        estimate_i,  ζ + <η, v> + ω bonus(v) ≥ bonus(v)
    """
    (m, count), n, k = columns.costs.shape, len(columns.images), box.low.size
    corners = get_corners(box)
    corner_bonuses = compute_bonuses(norms, corners)
    rows, size = count + len(corners), 3 + k + m + n
    matrix = np.zeros((rows + 2 + m + 1 + n, size))
    matrix[:count, 0] = -1.0
    matrix[:count, 2] = gains - norms.estimates
    matrix[:count, 3 : 3 + k] = norms.whitened.T
    matrix[:count, 3 + k : 3 + k + m] = -columns.costs.T
    matrix[:count, 3 + k + m :] = -columns.images.T
    matrix[count:rows, 1] = -1.0
    matrix[count:rows, 2] = -corner_bonuses
    matrix[count:rows, 3 : 3 + k] = -corners
    matrix[rows, 2], matrix[rows + 1, 2] = -1.0, 1.0
    fill_cone(matrix[rows + 2 :, 3 + k :], columns.radii)
    right = np.concatenate([-norms.estimates, -corner_bonuses, [0.0, 1.0], np.zeros(m + 1 + n)])
    objective = np.concatenate([[1.0, 1.0], np.zeros(1 + k), columns.limits, np.zeros(n)])
    mask = build_mask(m, n, count, k)
    pair = solve_conic(ConicProblem(objective, matrix, right, mask, rows + 2 + m, True, (m, n, count, k)))
    weights = np.maximum(pair.multipliers[count:rows], 0.0)
    total = float(weights.sum())
    mean = weights @ corners / total if np.isfinite(total) and total > 0.0 else 0.5 * (box.low + box.high)
    shares = clean_shares(pair.multipliers[:count], columns)
    bound = compute_dual_bound(columns, gains, norms, (corners, corner_bonuses), pair.point)
    if not pair.finished:  # nothing safe has its mean in the box, and the further along the dual's ray the lower
        further = pair.point * (FAR / max(1.0, float(np.max(np.abs(pair.point)))))
        bound = min(bound, compute_dual_bound(columns, gains, norms, (corners, corner_bonuses), further))
    return BoxBound(shares, compute_value(norms, shares), bound, mean)


def compute_dual_bound(
    columns: Columns, gains: Floats, norms: Norms, ends: tuple[Floats, Floats], multipliers: Floats
) -> float:
    """Return the dual's value at any multipliers, with the smallest feasible ν and ζ."""
    (corners, corner_bonuses), k, m = ends, ends[0].shape[1], columns.limits.size
    if not np.isfinite(multipliers).all():
        return np.inf
    share = min(max(float(multipliers[2]), 0.0), 1.0)
    tilt, prices, pull = np.split(multipliers[3:], [k, k + m])
    prices, pull = project_prices(columns, prices, pull)
    mixed = share * gains + (1.0 - share) * norms.estimates
    largest = np.max(mixed + tilt @ norms.whitened - prices @ columns.costs - pull @ columns.images)
    return float(largest + np.max((1.0 - share) * corner_bonuses - corners @ tilt) + prices @ columns.limits)


@cache
def build_mask(m: int, n: int, count: int, k: int) -> Flags:
    """Return the mask of the dual matrix's entries that may be nonzero."""
    rows = count + 2**k
    matrix = np.zeros((rows + 2 + m + 1 + n, 3 + k + m + n))
    matrix[:count] = 1.0
    matrix[:count, 1] = 0.0
    matrix[count:rows, 1 : 3 + k] = 1.0
    matrix[rows : rows + 2, 2] = 1.0
    fill_cone(matrix[rows + 2 :, 3 + k :], np.ones(m))
    mask: Flags = matrix != 0.0
    return mask
