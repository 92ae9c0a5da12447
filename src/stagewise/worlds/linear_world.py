"""The linear world: rewards and costs are linear in the features."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.engine.world_draws import BERNOULLI, GAUSSIAN, RADEMACHER, UNIFORM, fill_means
from stagewise.problem.actions import ActionSet
from stagewise.problem.checks import Floats, PerSignal, check_array, check_choice, copy_read_only
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidFile, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.named_costs import parse_means, parse_noise
from stagewise.worlds.world import NoisyWorld, describe_eligible, get_signal_names, select_eligible
from stagewise.worlds.world_kinds import get_action_set_kinds

NOISES = {"gaussian": GAUSSIAN, "uniform": UNIFORM, "rademacher": RADEMACHER, "bernoulli": BERNOULLI}


class LinearWorld(NoisyWorld):
    """A simulated world with rewards <x, θ*> and costs <x, μ*_j>, observed with noise.

    Args:
        reward: θ* (d,).
        cost: μ* (d,), or one for each cost (m, d), or by name; named costs are matched with limits of the same names.
        actions: The actions, the same in every round or drawn for it: Rays, FiniteSet, RandomRays, RandomFiniteSet or a
            convex set.
        noise: The standard deviation of the noise, for all signals or for each; it is sub-Gaussian with the same scale.
        outcomes: "gaussian", "uniform" (on ±√3 noise), "rademacher" (±noise), or "bernoulli": 1 with probability <x,
            θ*> or <x, μ*_j>, else 0; `noise` is left out only then.

    Raises:
        InvalidProblem: Shapes do not agree, or a setting is missing or invalid.

    Example:
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
        parameters, names = parse_means(reward, cost, "d")
        d = parameters.shape[1]
        if not isinstance(actions, ActionSet) or actions.dimension == 0:
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "actions is {name}; it must be Rays, FiniteSet, RandomRays, RandomFiniteSet, or a convex set "
                "such as Ball, Ellipsoid, Box, Polytope or your own",
                name=type(actions).__name__,
            )
        if actions.dimension is None:
            actions = actions.with_dimension(d)
        if actions.dimension != d:
            raise InvalidProblem(
                ErrorCode.DIMENSION_MISMATCH,
                "the actions have {dimension} features and reward has {d}; they must agree",
                dimension=actions.dimension,
                d=d,
            )
        self.parameters = copy_read_only(parameters)
        self.actions = actions
        self.names = names
        self.outcomes = check_choice(outcomes, tuple(NOISES), "outcomes")
        if noise is None and self.outcomes != "bernoulli":
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE,
                "noise is missing; give the standard deviation of the {outcomes} outcomes",
                outcomes=self.outcomes,
            )
        self.noise = copy_read_only(
            parse_noise(noise, get_signal_names(len(parameters) - 1, names), names, self.outcomes)
        )

    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it, enough to rebuild it."""
        return {
            **self.describe_rows(self.parameters),
            "actions": type(self.actions).__name__,
            "features": self.actions.description(),
            **describe_eligible(self.actions),
        }

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        settings, kinds = dict(described), get_action_set_kinds()
        name, features, eligible = settings.pop("actions"), settings.pop("features"), settings.pop("eligible", None)
        if name not in kinds:
            raise InvalidFile(
                ErrorCode.UNKNOWN_NAME,
                "the actions have kind {name}; the kinds are {kinds}",
                name=safe_repr(name),
                kinds=", ".join(kinds),
            )
        return cls.from_settings(settings, actions=select_eligible(kinds[name].from_description(features), eligible))

    @property
    def norms(self) -> Floats:
        return np.asarray(np.linalg.norm(self.parameters, axis=1))

    @property
    def offers_rays(self) -> bool:
        return bool(self.actions.between)

    @property
    def has_linear_means(self) -> bool:
        return True

    def get_safe_action(self, safe: SafeAction | None) -> Any:
        if safe is None:
            return np.zeros(self.parameters.shape[1])
        if safe.features is None or safe.features.size != self.parameters.shape[1]:
            raise InvalidProblem(
                ErrorCode.WORLD_MISMATCH, "the safe action's features do not match the world's features"
            )
        return np.ascontiguousarray(safe.features)

    def means(self, action: Any) -> Floats:
        return compute_linear_means(self.parameters, action)


def compute_linear_means(parameters: Floats, action: Any) -> Floats:
    """Return the means (1 + m,) of an action, linear in its features."""
    features, means = check_array(action, "the action", InvalidActions), np.empty(len(parameters))
    if features.shape != parameters[0].shape:
        raise InvalidActions(
            ErrorCode.WRONG_SHAPE,
            "the action has shape {shape}; it must be one vector of {shape_2} features",
            shape=features.shape,
            shape_2=parameters.shape[1],
        )
    fill_means(parameters, features, means)
    return means
