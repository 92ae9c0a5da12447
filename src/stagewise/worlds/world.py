"""The protocol of worlds, the interface that simulations use, and an adapter for a user's own world."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from stagewise.problem.actions import ActionSet
from stagewise.problem.checks import Floats, check_array, check_integer, find_missing_attributes
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey

MAX_WORD = 2**32 - 1  # runs and rounds are words of the counter that random numbers are made from
REQUIRED_ATTRIBUTES = ("costs", "actions_in", "means", "outcome", "description")


class World(Protocol):
    """The protocol of a world, as simulations use it; `LinearWorld`, `ArmsWorld` and `FiniteSetWorld` implement it.

    Equal draws give equal answers: everything random is a function of seed, run and round.

    Attributes:
        costs: The number of costs m.

    Example:
        >>> from stagewise.worlds.finite_worlds import ArmsWorld
        >>> world: World = ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.2])
        >>> world.costs, world.actions_in(RandomKey(seed=1))
        (1, ArmSet(2))
    """

    @property
    def costs(self) -> int:
        """The number of costs m."""

    def actions_in(self, draw: RandomKey) -> Any:
        """Return the actions of a round.

        Args:
            draw: The seed, run and round.

        Returns:
            ArmSet, FiniteSet, RaySet or a convex set.
        """

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs of an action.

        Args:
            action: An arm or features.

        Returns:
            The means (1 + m,).
        """

    def outcome(self, action: Any, draw: RandomKey) -> Outcome:
        """Return the outcome of an action that is played in a round.

        Args:
            action: An arm or features.
            draw: The seed, run and round.

        Returns:
            The reward and the costs.
        """

    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it.

        Returns:
            A mapping of plain values.
        """


class BaseWorld(ABC):
    """The interface that simulations use, so that they need not know the class of a world."""

    assumed: ClassVar[bool] = True  # the safe action must keep the limits; False: violations are counted
    theorems: ClassVar[tuple[str, ...]] = ()  # the regret theorems that apply to this world (see `policy.theorem`)
    outcomes: Any = None  # the name of the outcome distribution; None: unknown
    clock: Floats | None = None  # of its rounds (see `engine.world_draws`); None: rounds have no times

    @property
    @abstractmethod
    def costs(self) -> int:
        """The number of costs m."""

    @abstractmethod
    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an action, or raise for an unknown action."""

    @abstractmethod
    def actions_in(self, draw: RandomKey) -> Any:
        """Return the actions of a round."""

    @abstractmethod
    def outcome(self, action: Any, draw: RandomKey) -> Outcome:
        """Return the outcome of an action that is played in this round."""

    @property
    def type_name(self) -> str:
        """The name of its class for messages."""
        return type(self).__name__

    @property
    def is_builtin(self) -> bool:
        """Whether the class is one of stagewise, unmodified."""
        return False

    @property
    def is_bounded(self) -> bool:
        """Whether every outcome lies in [0, 1]."""
        return self.outcomes in ("bernoulli", "clipped-gaussian", "shrunk")

    @property
    def names_safe(self) -> bool:
        """Whether every round's set names its own safe action."""
        return False

    @property
    def has_fixed_actions(self) -> bool:
        """Whether every round offers the same actions."""
        return False

    @property
    def offers_rays(self) -> bool:
        """Whether points between the safe action and the listed ones can be played."""
        return False

    @property
    def has_linear_means(self) -> bool:
        """Whether means are linear in the features, by `parameters` (1 + m, d)."""
        return False

    @property
    def plain_users(self) -> Any:
        """The users, if actions are identified by index and context; else None."""
        return None

    @property
    def norms(self) -> Floats | None:
        """The norms (1 + m,) of the parameters of every signal; None if there are none."""
        return None

    @abstractmethod
    def check(self, policy: Any) -> None:
        """Raise if runs cannot be scored by the means, or the policy does not fit."""

    def reorder_costs(self, names: Sequence[str]) -> Self:
        return self

    def with_times(self, needed: bool) -> Self:
        """Return the world whose actions end with the time of their round, if that is needed."""
        if needed:
            template = (
                "a limit has a drift or the reward a half-life, and the rounds of a {kind} have no times; give "
                "MovingWorld(world, per_day=...), "
                "whose rounds have, and whose means may move"
            )
            raise InvalidProblem(ErrorCode.TIME_MISSING, template, kind=self.type_name)
        return self

    def get_safe_action(self, safe: SafeAction | None) -> Any:
        """Return the safe action as it is played: features or an arm; None if there is none."""
        if safe is None:
            return None
        return safe.features if safe.arm is None else safe.arm

    def max_at_safe(self, signs: Floats) -> Floats:
        """Return the largest signed means (1 + m,) of the rounds' own safe actions (see `names_safe`)."""
        raise NotImplementedError

    def mean_at_safe(self) -> Floats:
        """Return the means (1 + m,) of the rounds' own safe actions, averaged over rounds."""
        raise NotImplementedError

    def means_at(self, index: int, actions: Any) -> Floats:
        """Return the means (1 + m,) of the action with this index."""
        return self.means(actions.at(index))

    def means_played(self, index: int, action: Any, actions: Any) -> Floats:
        """Return the means (1 + m,) of a played action; its index is −1 if it is not listed."""
        return self.means(action)

    def outcome_played(self, index: int, action: Any, actions: Any, draw: RandomKey) -> Outcome:
        """Return the outcome of a played action; its index is −1 if it is not listed."""
        return self.outcome(action, draw)

    def truths(self, actions: Any) -> Floats:
        """Return the means (1 + m, K) of all listed actions."""
        if not isinstance(actions, ActionSet) or not actions.is_list:
            template = (
                "the world's actions are {name}; a custom world must list them as ArmSet, FiniteSet or RaySet, "
                "since regret is measured against the best mixture of listed actions"
            )
            raise InvalidProblem(ErrorCode.UNSUPPORTED_ACTIONS, template, name=type(actions).__name__)
        return np.column_stack([self.means_at(index, actions) for index in range(actions.count)])


class CustomWorld(BaseWorld):
    """A user's own world; its means are checked, since NaN would violate no limit."""

    def __init__(self, world: Any) -> None:
        self.world = world

    @property
    def outcomes(self) -> Any:
        """The name of the outcome distribution, if the world has one."""
        return getattr(self.world, "outcomes", None)

    @property
    def type_name(self) -> str:
        return type(self.world).__name__

    @property
    def costs(self) -> int:
        return int(self.world.costs)

    def check(self, policy: Any) -> None:
        lacking = find_missing_attributes(self.world, REQUIRED_ATTRIBUTES)
        if isinstance(self.world, type) or lacking:
            rule = f"a LinearWorld, an ArmsWorld, a FiniteSetWorld, or any object with {', '.join(REQUIRED_ATTRIBUTES)}"
            found = f"a {self.type_name} without {', '.join(lacking)}"
            raise InvalidProblem(ErrorCode.WRONG_TYPE, "world is {found}; it must be {rule}", found=found, rule=rule)

    def means(self, action: Any) -> Floats:
        given = check_array(self.world.means(action), "the world's means")
        if given.shape != (1 + self.costs,):
            rule = f"({1 + self.costs},): one reward and then the costs"
            raise InvalidProblem.must_be(ErrorCode.WRONG_SHAPE, "the shape of the world's means", given.shape, rule)
        return given

    def actions_in(self, draw: RandomKey) -> Any:
        return self.world.actions_in(draw)

    def outcome(self, action: Any, draw: RandomKey) -> Outcome:
        outcome: Outcome = self.world.outcome(action, draw)
        return outcome


def as_world(world: Any) -> BaseWorld:
    """Return a `BaseWorld`: the world itself, or an adapter."""
    return world if isinstance(world, BaseWorld) else CustomWorld(world)


def check_run(run: Any) -> int:
    """Return a run's number."""
    return check_integer(run, "the run", "from 0 to 2**32 - 1", 0, MAX_WORD)


def check_draw(draw: Any) -> RandomKey:
    """Return a draw whose numbers are integers in range; kernels do not check them."""
    if not isinstance(draw, RandomKey):
        rule = "a RandomKey, with a seed, a run and a round"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "the draw", draw, rule)
    seed = check_integer(draw.seed, "the draw's seed", "of at most 64 bits with its sign", -(2**63), 2**63 - 1)
    return RandomKey(
        seed, check_run(draw.run), check_integer(draw.round, "the draw's round", "from 0 to 2**32 - 1", 0, MAX_WORD)
    )
