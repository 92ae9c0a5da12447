"""A linear world: it knows the parameters that policies must learn."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.kernels.world import BERNOULLI, GAUSSIAN, RADEMACHER, UNIFORM, fill_means
from stagewise.problem.action_set import ActionSet
from stagewise.problem.checks import Floats, PerSignal, array, frozen, one_of, shown
from stagewise.problem.errors import InvalidActions, InvalidFile, InvalidProblem
from stagewise.problem.renamed import today
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.kinds import action_sets
from stagewise.worlds.named import noise_of, truth_of
from stagewise.worlds.world import NoisyWorld, offered, signals, some

NOISES = {"gaussian": GAUSSIAN, "uniform": UNIFORM, "rademacher": RADEMACHER, "bernoulli": BERNOULLI}


class LinearWorld(NoisyWorld):
    """Reward <x, θ*> and costs <x, μ*_j>, seen with noise.

    Args:
        reward: θ* (d,).
        cost: μ* (d,), or one for each cost (m, d), or by name: limits then meet the costs of their names.
        actions: What can be chosen from, in every round or drawn for it: Rays, Finite, RandomRays, RandomFinite, or a
            convex set.
        noise: Standard deviation of the noise, for all signals or for each; it is sub-Gaussian with the same scale.
        outcomes: "gaussian", "uniform" (on ±√3 noise), "rademacher" (±noise), or "bernoulli": 1 with probability
            <x, θ*> or <x, μ*_j>, else 0; only then is `noise` left out.

    >>> from stagewise.problem.actions import Rays
    >>> world = LinearWorld(reward=[1.0, 0.0], cost=[0.0, 1.0], actions=Rays([[1.0, 0.5]]), noise=0.1)
    >>> world.means(np.array([1.0, 0.5]))
    array([1. , 0.5])
    """

    kinds = NOISES
    theorems: ClassVar[tuple[str, ...]] = ("rays", "mixtures")

    def __init__(
        self,
        *,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        actions: ActionSet,
        noise: PerSignal | Mapping[str, float] | None = None,
        outcomes: Literal["gaussian", "uniform", "rademacher", "bernoulli"] = "gaussian",
    ) -> None:
        parameters, names = truth_of(reward, cost, "d")
        d = parameters.shape[1]
        if not isinstance(actions, ActionSet) or actions.dimension == 0:
            raise InvalidProblem(
                f"actions is {type(actions).__name__}; it must be Rays, Finite, RandomRays, RandomFinite, or a convex "
                "set: Ball, Ellipsoid, Box, Polytope or one of your own"
            )
        if actions.dimension is None:
            actions = actions.placed(d)
        if actions.dimension != d:
            raise InvalidProblem(f"the actions have {actions.dimension} features; reward has {d}, and they must agree")
        self.parameters = frozen(parameters)
        self.actions = actions
        self.names = names
        self.outcomes = one_of(outcomes, tuple(NOISES), "outcomes")
        if noise is None and self.outcomes != "bernoulli":
            raise InvalidProblem(f"noise is missing; give the standard deviation of what is {self.outcomes}")
        self.noise = frozen(noise_of(noise, signals(len(parameters) - 1, names), names, self.outcomes))

    def description(self) -> dict[str, Any]:
        """Return the world as plain values, enough to build it again."""
        return {
            **self.told(self.parameters),
            "actions": type(self.actions).__name__,
            "features": self.actions.description(),
            **offered(self.actions),
        }

    @classmethod
    def rebuilt(cls, told: dict[str, Any]) -> Self:
        given, kinds = dict(told), action_sets()
        name, features, eligible = given.pop("actions"), given.pop("features"), given.pop("eligible", None)
        if name not in kinds:
            raise InvalidFile(f"the actions are of kind {shown(name)}; stagewise has {', '.join(kinds)}")
        return cls.again(today(cls, given), actions=some(kinds[name].rebuilt(features), eligible))

    @property
    def norms(self) -> Floats:
        return np.asarray(np.linalg.norm(self.parameters, axis=1))

    @property
    def offers_rays(self) -> bool:
        return bool(self.actions.between)

    @property
    def knows_points(self) -> bool:
        return True

    def safe_place(self, safe: SafeAction | None) -> Any:
        if safe is None:
            return np.zeros(self.parameters.shape[1])
        if safe.features is None or safe.features.size != self.parameters.shape[1]:
            raise InvalidProblem("the safe action's features do not fit the world's")
        return np.ascontiguousarray(safe.features)

    def means(self, action: Any) -> Floats:
        return linear_means(self.parameters, action)


def linear_means(parameters: Floats, action: Any) -> Floats:
    """Return the means (1 + m,) of an action that are linear in its features."""
    place, means = array(action, "the action", InvalidActions), np.empty(len(parameters))
    if place.shape != parameters[0].shape:
        raise InvalidActions(
            f"the action has shape {place.shape}; it must be one vector of {parameters.shape[1]} features"
        )
    fill_means(parameters, place, means)
    return means
