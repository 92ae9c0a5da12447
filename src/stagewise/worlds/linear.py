"""A linear world: it knows the parameters that policies must learn."""

from typing import Any

import numpy as np

from stagewise.kernels.draw import COST, REWARD, normal
from stagewise.problem.actions import Listed
from stagewise.problem.checks import Floats, array, frozen, one_per
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome


class LinearWorld:
    """Reward <x, θ*> and costs <x, μ*_j>, seen with Gaussian noise of the given standard deviation.

    >>> from stagewise.problem.actions import Rays
    >>> world = LinearWorld(theta=[1.0, 0.0], mu=[0.0, 1.0], actions=Rays([[1.0, 0.5]]), noise=0.1)
    >>> world.means(np.array([1.0, 0.5]))
    array([1. , 0.5])
    """

    def __init__(self, *, theta: Any, mu: Any, actions: Listed, noise: Any) -> None:
        reward = array(theta, "theta")
        costs = np.atleast_2d(array(mu, "mu"))
        if reward.ndim != 1 or costs.ndim != 2 or costs.shape[1] != reward.size:
            raise InvalidProblem(f"theta has shape {reward.shape} and mu {costs.shape}; they must be (d,) and (m, d)")
        if actions.features.shape[1] != reward.size:
            raise InvalidProblem(f"the actions have {actions.features.shape[1]} features; theta has {reward.size}")
        self.parameters = frozen(np.vstack([reward, costs]))
        self.actions = actions
        names = ("reward", *(f"cost {j + 1}" for j in range(len(costs))))
        self.noise = frozen(one_per(noise, names, "noise"))

    def means(self, action: Floats) -> Floats:
        """Return the expected reward and costs (1 + m,) of an action."""
        return self.parameters @ action

    def outcome(self, action: Floats, draw: Draw) -> Outcome:
        """Return what is seen when the action is played in this round."""
        means = self.means(action)
        reward = means[0] + self.noise[0] * normal(draw.seed, draw.run, draw.round, REWARD, 0)
        costs = [
            mean + spread * normal(draw.seed, draw.run, draw.round, COST, j)
            for j, (mean, spread) in enumerate(zip(means[1:], self.noise[1:], strict=True))
        ]
        return Outcome(float(reward), np.array(costs))


def best_on_rays(means: Floats, safe: Floats, limits: Floats) -> float:
    """Return the largest true reward on rays from a safe action, given the truth (1 + m, M), (1 + m,) and limits (m,).

    Along a ray everything is affine: the best point is the safe action or the longest feasible step.
    """
    rise = means[1:] - safe[1:, None]
    slack = (limits - safe[1:])[:, None]
    steps = np.where(rise > slack, slack / np.where(rise > slack, rise, 1.0), 1.0).min(axis=0, initial=1.0)
    return float(max(safe[0], np.max(safe[0] + steps * (means[0] - safe[0]))))
