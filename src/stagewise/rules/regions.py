"""Convex sets as the relaxation sees them: points that span them, or an ellipsoid."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Convex
from stagewise.problem.ellipsoid import Ball, Ellipsoid
from stagewise.problem.polytope import Box, Polytope, has_corners
from stagewise.rules.relaxation import Hope, Relaxed, over_ellipsoid, over_points


class Region(NamedTuple):
    """A part of a problem: the set shrunk towards the safe action, and the limits that count there."""

    hope: Hope
    points: Floats  # (N, d) vertices; empty: an ellipsoid
    center: Floats  # (d,) of the ellipsoid
    factor: Floats  # (d, d)

    def relaxed(self) -> Relaxed:
        """Return an upper bound over the region."""
        if len(self.points):
            return over_points(self.hope, self.points)
        return over_ellipsoid(self.hope, self.center, self.factor)

    @property
    def widest(self) -> float:
        """No point of the region has a larger width in the last norm."""
        norm = self.hope.norms[-1]
        if len(self.points):
            return float(np.linalg.norm(self.points @ norm.T, axis=1).max())
        return float(np.linalg.norm(norm @ self.center) + np.linalg.norm(norm @ self.factor, 2))


def region(hope: Hope, actions: Convex, safe: Floats, share: float = 1.0) -> Region:
    """Return x₀ + share (A − x₀) with the limits of `hope`; a box of too many corners is put into an ellipsoid."""
    nothing = np.empty((0, safe.size))
    if isinstance(actions, Box | Polytope) and has_corners(actions):
        return Region(hope, safe + share * (actions.vertices - safe), safe, nothing)
    assert isinstance(actions, Ball | Ellipsoid | Box)
    factor = actions.spread * (safe.size**0.5 if isinstance(actions, Box) else 1.0)
    return Region(hope, nothing, safe + share * (actions.middle - safe), share * factor)
