"""Convex sets as the relaxation sees them, and the certificate: regions that are split while it pays."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Ball, Convex, Ellipsoid
from stagewise.problem.polytope import MOST_CORNERS, Box, Polytope
from stagewise.rules.relaxation import Hope, Relaxed, over_ellipsoid, over_points

ENOUGH = 1e-7  # a gap below this share of what is hoped for is as good as none


class Region(NamedTuple):
    """A part of a problem: the set shrunk towards the safe action, and the limits that count there."""

    hope: Hope
    points: Floats  # (N, d) vertices; empty: an ellipsoid
    center: Floats  # (d,) of the ellipsoid
    factor: Floats  # (d, d)
    low: float  # how wide the last norm is in it, at least
    high: float  # and at most

    def relaxed(self) -> Relaxed:
        """Return an upper bound over the region."""
        return over_points(self.hope, self.points) if len(self.points) else over_ellipsoid(*self[:1], *self[2:4])

    def halves(self) -> list["Region"]:
        """Return the region with a small and with a large width: low ≤ ‖W x‖ ≤ middle, middle ≤ ‖W x‖ ≤ high."""
        middle = 0.5 * (self.low + self.high)
        return [
            self._replace(hope=self.hope.and_width_within(low, high), low=low, high=high)
            for low, high in [(self.low, middle), (middle, self.high)]
        ]


def region(hope: Hope, actions: Convex, safe: Floats, share: float = 1.0) -> Region:
    """Return x₀ + share (A − x₀) with the limits of `hope`; a box of too many corners is put into an ellipsoid."""
    nothing = np.empty((0, safe.size))
    if isinstance(actions, Polytope) or (isinstance(actions, Box) and 1 << safe.size <= MOST_CORNERS):
        points = safe + share * (actions.vertices - safe)
        high = float(np.linalg.norm(points @ hope.norms[-1].T, axis=1).max())
        return Region(hope, points, safe, nothing, 0.0, high)
    if isinstance(actions, Box):
        factor = np.diag(0.5 * (actions.high - actions.low) * safe.size**0.5)
    else:
        assert isinstance(actions, Ball | Ellipsoid)
        factor = actions.spread
    center, factor = safe + share * (actions.middle - safe), share * factor
    norm = hope.norms[-1]
    high = float(np.linalg.norm(norm @ center) + np.linalg.norm(norm @ factor, 2))
    return Region(hope, nothing, center, factor, 0.0, high)


def tightened(regions: list[Region], roots: list[Relaxed], attained: float, budget: int) -> float:
    """Return an upper bound over all regions: the one with the largest bound is halved, up to `budget` relaxations."""
    open_ = list(zip([root.bound for root in roots], regions, strict=True))
    spent = len(regions)
    while True:
        largest = max(range(len(open_)), key=lambda i: open_[i][0])
        bound, where = open_[largest]
        if spent + 2 > budget or bound - attained <= ENOUGH * max(1.0, abs(attained)) or not where.high > where.low:
            return bound
        open_[largest : largest + 1] = [(min(bound, half.relaxed().bound), half) for half in where.halves()]
        spent += 2
