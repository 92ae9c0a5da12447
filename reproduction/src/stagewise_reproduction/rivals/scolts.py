"""S-COLTS (Gangrade, Saligrama; arXiv 2503.02043): coupled sampling, then a step that is safe for plausible costs."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stagewise.problem.actions import RaySet
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise_reproduction.rivals.regression import FIRST, RidgeRival, Sums, build_random


@dataclass(frozen=True, kw_only=True, eq=False)
class SCOLTS(RidgeRival):
    """One sample for reward and cost, with opposite signs: what looks better also looks cheaper.

    Reconstructed from the abstract and summaries. `perturbation` is "theory", a sphere of radius √(3d) β, or
    "posterior", a normal vector of scale R, for which there is no proof.
    """

    perturbation: Literal["theory", "posterior"] = "theory"

    def decide(self, state: Sums, actions: RaySet, draw: RandomKey = FIRST) -> Decision:
        """Return the sampled optimum, scaled down until it is safe."""
        features, beta = np.asarray(actions.features), self.radius(state.log_det)
        direction = build_random(draw).normal(size=self.size)
        if self.perturbation == "theory":
            direction *= math.sqrt(3.0 * self.size) * beta / np.linalg.norm(direction)
        else:
            direction *= self.noise
        moved = features @ (np.linalg.cholesky(state.inverse) @ direction)
        reward, cost = features @ (state.inverse @ state.fits.T).T[0], features @ (state.inverse @ state.fits.T).T[1]
        sampled = np.minimum(1.0, self.threshold / np.maximum(cost - moved, self.threshold))
        values = sampled * (reward + moved)
        best = int(np.argmax(values))
        if not values[best] > 0.0:
            return self.build_decision(features, None, 0.0, 0.0, draw)
        x = features[best]
        high = min(
            cost[best] + beta * math.sqrt(float(x @ state.inverse @ x)), self.norm_bound * float(np.linalg.norm(x))
        )
        step = min(float(sampled[best]), 1.0 if high <= self.threshold else self.threshold / high)
        return self.build_decision(features, best, step, step * high, draw)
