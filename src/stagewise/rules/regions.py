"""Parts of a convex set, as the relaxation sees them."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.convex import Convex, Hull
from stagewise.rules.relaxation import Hope, Relaxed, over_ellipsoid, over_points


class Region(NamedTuple):
    """A part of a problem: the set's hull shrunk towards the safe action, and the limits that count there."""

    hope: Hope
    hull: Hull

    def relaxed(self) -> Relaxed:
        """Return an upper bound over the region."""
        if len(self.hull.points):
            return over_points(self.hope, self.hull.points)
        return over_ellipsoid(self.hope, self.hull.center, self.hull.factor)

    @property
    def widest(self) -> float:
        """No point of the region has a larger width in the last norm."""
        norm, hull = self.hope.norms[-1], self.hull
        if len(hull.points):
            return float(np.linalg.norm(hull.points @ norm.T, axis=1).max())
        return float(np.linalg.norm(norm @ hull.center) + np.linalg.norm(norm @ hull.factor, 2))


def region(hope: Hope, actions: Convex, safe: Floats, share: float = 1.0) -> Region:
    """Return x₀ + share (A − x₀) with the limits of `hope`."""
    return Region(hope, actions.hull.shrunk(safe, share))
