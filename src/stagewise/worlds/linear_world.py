"""The linear world: rewards and costs are linear in the features; and its action sets that are drawn every round."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise import _exported
from stagewise.engine.world_draws import (
    BERNOULLI,
    GAUSSIAN,
    RADEMACHER,
    UNIFORM,
    fill_directions,
    fill_means,
    fill_round_safe_action,
)
from stagewise.problem.actions import ActionSet, FiniteSet, Listed, RaySet
from stagewise.problem.checks import (
    MOST,
    Floats,
    PerSignal,
    check_array,
    check_choice,
    check_positive,
    check_size,
    copy_read_only,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidFile, InvalidProblem
from stagewise.problem.safe_action import RoundSafeAction, SafeAction
from stagewise.records.random_key import RandomKey
from stagewise.worlds.noisy_world import (
    NoisyWorld,
    describe_eligible,
    get_signal_names,
    parse_means,
    parse_noise,
    select_eligible,
)
from stagewise.worlds.world import check_draw

NOISES = {"gaussian": GAUSSIAN, "uniform": UNIFORM, "rademacher": RADEMACHER, "bernoulli": BERNOULLI}


class LinearWorld(NoisyWorld):
    """A simulated world with rewards <x, θ*> and costs <x, μ*_j>, observed with noise.

    Args:
        reward: θ* (d,).
        cost: μ* (d,), or one for each cost (m, d), or by name; named costs are matched with limits of the same names.
        actions: The actions, the same in every round or drawn for it: RaySet, FiniteSet, RandomRaySet, RandomFiniteSet
            or a convex set.
        noise: The standard deviation of the noise, for all signals or for each; it is sub-Gaussian with the same scale.
        outcomes: "gaussian", "uniform" (on ±√3 noise), "rademacher" (±noise), or "bernoulli": 1 with probability <x,
            θ*> or <x, μ*_j>, else 0; `noise` is left out only then.

    Raises:
        InvalidProblem: Shapes do not agree, or a setting is missing or invalid.

    Example:
        >>> from stagewise.problem.actions import RaySet
        >>> world = LinearWorld(reward=[1.0, 0.0], cost=[0.0, 1.0], actions=RaySet([[1.0, 0.5]]), noise=0.1)
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
            sets = "Rays, FiniteSet, RandomRaySet, RandomFiniteSet, or a convex set such as Ball, Box or your own"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "actions", actions, sets)
        if actions.dimension is None:
            actions = actions.with_dimension(d)
        if actions.dimension != d:
            subject, other = "the number of features of the actions", "that of reward"
            code = ErrorCode.DIMENSION_MISMATCH
            raise InvalidProblem.must_agree(code, subject, actions.dimension, other, d)
        self.parameters = copy_read_only(parameters)
        self.actions = actions
        self.names = names
        self.outcomes = check_choice(outcomes, tuple(NOISES), "outcomes")
        if noise is None and self.outcomes != "bernoulli":
            reason = f"give the standard deviation of the {self.outcomes} outcomes"
            raise InvalidProblem(ErrorCode.MISSING_VALUE, "noise is missing; {reason}", reason=reason)
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
            raise InvalidFile.must_be_one_of(ErrorCode.UNKNOWN_NAME, "the kind of the actions", name, kinds)
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
        shape = parameters[0].shape
        raise InvalidActions.must_be(ErrorCode.WRONG_SHAPE, "the shape of the action", features.shape, f"{shape}")
    fill_means(parameters, features, means)
    return means


def get_action_set_kinds() -> dict[str, Any]:
    """Return the classes of action sets by name: those that stagewise exports, which files can name."""
    return {name: kind for name, kind in _exported("problem", "worlds").items() if issubclass(kind, ActionSet)}


class RandomActions(ActionSet):
    """`count` actions, each uniform on the unit sphere in `dimension` dimensions, drawn anew in every round.

    With `safe`, every round's set names its own safe action: a point drawn at this distance from 0.
    """

    __slots__ = ("count", "dimension", "safe")

    count: int

    dimension: int

    safe: float | None

    kind: ClassVar[type[Listed]]  # the class of a round's set
    fresh = True

    def __init__(self, count: int, dimension: int, safe: float | None = None) -> None:
        self.safe = None if safe is None else check_positive(safe, "safe")
        self.count, self.dimension = check_size(count, "count"), check_size(dimension, "dimension")
        if self.count * self.dimension > MOST:
            size, rule = self.count * self.dimension, f"at most {MOST:,}, to fit into memory"
            raise InvalidProblem.must_be(ErrorCode.TOO_LARGE, "the product of count and dimension", size, rule)

    def draw(self, draw: RandomKey) -> Listed:
        features = np.empty((self.count, self.dimension))
        fill_directions(features, *check_draw(draw))
        if self.safe is None:
            return self.kind.from_view(features)
        point = np.empty(self.dimension)
        fill_round_safe_action(point, features.size, self.safe, *check_draw(draw))
        return self.kind.from_view(features, RoundSafeAction(-1, point))

    @property
    def names_safe(self) -> bool:
        return self.safe is not None

    def max_at_safe(self, directions: Floats) -> Floats:
        return np.asarray((self.safe or 0.0) * np.linalg.norm(directions, axis=1))

    def mean_at_safe(self, directions: Floats) -> Floats:
        """Return zeros: every direction is drawn as often as its opposite."""
        return np.zeros(len(directions))

    def most(self, directions: Floats) -> Floats:
        """Return the norms of the directions, each of which may be drawn."""
        return np.asarray(np.linalg.norm(directions, axis=1))

    def description(self) -> list[Any]:
        """Return count and dimension, and the norm of safe actions if rounds have their own."""
        return [self.count, self.dimension, *([] if self.safe is None else [self.safe])]

    @classmethod
    def from_description(cls, description: Any) -> Self:
        return cls(*description)

    def __repr__(self) -> str:
        safe = "" if self.safe is None else f", safe={self.safe:g}"
        return f"{type(self).__name__}(count={self.count}, dimension={self.dimension}{safe})"


class RandomRaySet(RandomActions):
    """Rays that are drawn anew in every round, with ends uniform on the unit sphere.

    Args:
        count: The number of rays of a round.
        dimension: The number of features.
        safe: The distance from 0 of the round's own safe action, where the rays start; by default they start at the
            policy's safe action.

    Raises:
        InvalidProblem: A number is invalid, or the set does not fit into memory.

    Example:
        >>> RandomRaySet(count=3, dimension=2).draw(RandomKey(seed=1)).features.shape
        (3, 2)
    """

    __slots__ = ()
    kind, between = RaySet, True


class RandomFiniteSet(RandomActions):
    """A finite set of actions that is drawn anew in every round, uniform on the unit sphere.

    Args:
        count: The number of actions of a round.
        dimension: The number of features.
        safe: The distance from 0 of the round's own safe action, which is not one of the listed ones; by default the
            policy has one safe action for all rounds.

    Raises:
        InvalidProblem: A number is invalid, or the set does not fit into memory.

    Example:
        >>> RandomFiniteSet(count=3, dimension=2).draw(RandomKey(seed=1))
        FiniteSet(3 actions, 2 features)
    """

    __slots__ = ()
    kind = FiniteSet
