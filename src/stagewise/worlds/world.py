"""The World protocol, and the base class of worlds with noisy outcomes."""

from collections.abc import Mapping, Sequence
from copy import copy
from inspect import isabstract
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from stagewise.engine.loop import DIRECTIONS
from stagewise.engine.world_draws import fill_outcome
from stagewise.problem.checks import Floats, check_integer, check_per_signal, copy_read_only
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.thresholds import build_default_names
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.worlds.base_world import BaseWorld
from stagewise.worlds.named_costs import Names, encode_costs, encode_signals, get_cost_order, order_by_signal

MAX_WORD = 2**32 - 1  # runs and rounds are words of the counter that random numbers are made from


class World(Protocol):
    """The protocol of a world, as simulations use it; `LinearWorld`, `ArmsWorld` and `TableWorld` implement it.

    Equal draws give equal answers: everything random is a function of seed, run and round.

    Attributes:
        costs: The number of costs m.

    Example:
        >>> from stagewise.worlds.arms_world import ArmsWorld
        >>> world: World = ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.2])
        >>> world.costs, world.actions_in(RandomKey(seed=1))
        (1, Arms(2))
    """

    @property
    def costs(self) -> int:
        """The number of costs m."""

    def actions_in(self, draw: RandomKey) -> Any:
        """Return the actions of a round.

        Args:
            draw: The seed, run and round.

        Returns:
            Arms, FiniteSet, Rays or a convex set.
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


class NoisyWorld(BaseWorld):
    """A world whose actions have a mean reward and m mean costs, observed with noise."""

    actions: Any  # the action set, the same in every round or drawn for it
    noise: Floats  # (1 + m,) scale of each signal's noise
    names: Names = ()  # the names of the costs, if given
    kinds: ClassVar[Mapping[str, int]]  # the outcome distributions by name, with their codes in kernels
    truth: ClassVar[str] = "parameters"  # the attribute that holds the rows (1 + m, ...) of the signals

    @property
    def kind(self) -> int:
        """The code of the outcomes' distribution in kernels."""
        return self.kinds[self.outcomes]

    @property
    def rows(self) -> Floats:
        """The rows (1 + m, …) that determine the means of each signal."""
        rows: Floats = getattr(self, self.truth)
        return rows

    @property
    def costs(self) -> int:
        return int(self.noise.size) - 1

    @classmethod
    def get_builtin_class(cls) -> "type[NoisyWorld] | None":
        """Return the built-in world class that this one is or extends; None if there is none."""
        ours = [kind for kind in cls.__mro__ if kind.__module__.startswith("stagewise.")]
        return next((kind for kind in ours if issubclass(kind, NoisyWorld) and not isabstract(kind)), None)

    @property
    def is_builtin(self) -> bool:
        return type(self) is self.get_builtin_class()

    @property
    def names_safe(self) -> bool:
        return self.is_builtin and bool(self.actions.names_safe)

    @property
    def has_fixed_actions(self) -> bool:
        return type(self).actions_in is NoisyWorld.actions_in and self.actions.draw(RandomKey()) is self.actions

    @property
    def draw_kind(self) -> int:
        """What a loop draws in every round (see `kernels.loop.round_loop`)."""
        return DIRECTIONS if self.actions.fresh else 0

    @property
    def draw_parameters(self) -> tuple[int, Floats]:
        """The index of the safe action (−1: not listed), and the parameters that a loop draws with."""
        return -1, np.array([getattr(self.actions, "safe", None) or 0.0])

    def signed_parameters(self, signs: Floats) -> Floats:
        """Return the parameters from which a loop computes means, times the sign of each signal."""
        return self.rows * signs[:, np.newaxis]

    def check(self, policy: Any) -> None:
        parent = self.get_builtin_class()
        if parent is not None and type(self).means is not parent.means:
            raise InvalidProblem(
                ErrorCode.UNSUPPORTED,
                "{name} is a {name_2} with its own means, and runs would be scored by the means of "
                "{name_2}; write it as a separate world class",
                name=type(self).__name__,
                name_2=parent.__name__,
            )

    def max_at_safe(self, signs: Floats) -> Floats:
        return np.asarray(self.actions.max_at_safe(self.rows * signs[:, np.newaxis]))

    def mean_at_safe(self) -> Floats:
        return np.asarray(self.actions.mean_at_safe(self.rows))

    def reorder_costs(self, names: Sequence[str]) -> Self:
        """Return the world with its costs in the order of limits of these names; unchanged if its costs have no names.

        Unnamed limits are matched in the order of the costs.
        """
        limits = tuple(names)
        if not self.names or not limits or limits in (self.names, build_default_names(len(self.names))):
            return self
        order = [0, *(1 + index for index in get_cost_order(self.names, limits))]
        other = self.with_truth(self.rows[order])
        other.noise, other.names = copy_read_only(self.noise[order]), limits
        return other

    def with_truth(self, rows: Floats) -> Self:
        """Return the world with other rows (1 + m, …)."""
        other = copy(self)
        setattr(other, self.truth, copy_read_only(rows))
        return other

    def actions_in(self, draw: RandomKey) -> Any:
        return self.actions.draw(draw)

    @property
    def most(self) -> Floats:
        """The largest mean (1 + m,) of every signal over all actions that can be offered."""
        return np.asarray(self.actions.most(self.rows))

    def describe_rows(self, rows: Any) -> dict[str, Any]:
        """Return the common part of a description, for rows (1 + m, …)."""
        return {
            "kind": type(self).__name__,
            "reward": rows[0].tolist(),
            "cost": encode_costs(rows[1:], self.names),
            "noise": encode_signals(self.noise, self.names),
            "outcomes": self.outcomes,
        }

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        """Return the world that a description, without its kind, describes."""
        return cls.from_settings(described)

    @classmethod
    def from_settings(cls, described: Mapping[str, Any], **objects: Any) -> Self:
        """Return a world from described settings and rebuilt objects; a description always has a noise."""
        settings = dict(described)
        unused_noise = settings.pop("noise", None) if settings.get("outcomes") == "bernoulli" else None
        world = cls(**settings, **objects)
        if unused_noise is not None:
            signals = get_signal_names(world.costs, world.names)
            noise = order_by_signal(unused_noise, world.names, "noise")
            world.noise = copy_read_only(check_per_signal(noise, signals, "noise"))
        return world

    def outcome(self, action: Any, draw: RandomKey) -> Outcome:
        return self.draw_outcome(self.means(action), draw)

    def draw_outcome(self, means: Floats, draw: RandomKey) -> Outcome:
        """Return the outcome of a round for means (1 + m,)."""
        values = np.empty(means.size)
        fill_outcome(self.kind, means, self.noise, *check_draw(draw), values)
        return Outcome(float(values[0]), values[1:])


def check_run(run: Any) -> int:
    """Return a run's number."""
    return check_integer(run, "the run", "from 0 to 2**32 - 1", 0, MAX_WORD)


def check_draw(draw: Any) -> RandomKey:
    """Return a draw whose numbers are integers in range; kernels do not check them."""
    if not isinstance(draw, RandomKey):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "the draw is {draw}; it must be a RandomKey, with a seed, a run and a round",
            draw=safe_repr(draw),
        )
    seed = check_integer(draw.seed, "the draw's seed", "of at most 64 bits with its sign", -(2**63), 2**63 - 1)
    return RandomKey(
        seed, check_run(draw.run), check_integer(draw.round, "the draw's round", "from 0 to 2**32 - 1", 0, MAX_WORD)
    )


def describe_eligible(actions: Any) -> dict[str, list[int]]:
    """Return the indices of the offered actions, if not all are offered."""
    return {"eligible": np.flatnonzero(actions.eligible).tolist()} if actions.eligible.size else {}


def select_eligible(actions: Any, eligible: list[int] | None) -> Any:
    """Return the actions restricted to these indices; None: all."""
    return actions if eligible is None else actions.only(eligible)


def get_signal_names(costs: int, names: Names = ()) -> Names:
    """Return the names of the reward and the costs for messages."""
    return ("reward", *(names or (f"cost {j + 1}" for j in range(costs))))
