"""What every world is: who knows the truth, and shows a noisy part of it."""

from collections.abc import Mapping, Sequence
from copy import copy
from inspect import isabstract
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from stagewise.kernels.loop.play import DIRECTIONS
from stagewise.kernels.world import fill_outcome
from stagewise.problem.checks import Floats, frozen, one_per, shown, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.given_thresholds import unnamed
from stagewise.problem.renamed import refuse_old
from stagewise.records.draw import Draw
from stagewise.records.outcome import Outcome
from stagewise.worlds.answers import Answers
from stagewise.worlds.named import Names, by_signal, order_of, plain_costs, plain_signals

WORD = 2**32 - 1  # runs and rounds are words of the counter that random numbers are made from


class World(Protocol):
    """What a simulation asks of a world; `LinearWorld`, `ArmsWorld` and `TableWorld` are three of them.

    Equal draws give equal answers: all that is random is a function of seed, run and round.
    """

    @property
    def costs(self) -> int:
        """The number of costs m."""

    def actions_in(self, draw: Draw) -> Any:
        """Return what can be chosen from in a round: Arms, Finite or Rays."""

    def means(self, action: Any) -> Floats:
        """Return the expected reward and costs (1 + m,) of an arm or of features."""

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        """Return what is seen when the action is played in this round."""

    def description(self) -> dict[str, Any]:
        """Return the world as plain JSON values."""


class NoisyWorld(Answers):
    """A world whose every action has a mean reward and m mean costs, which it shows with noise."""

    actions: Any  # what can be chosen from, in every round or drawn for it
    noise: Floats  # (1 + m,) scale of each signal's noise
    names: Names = ()  # what the costs are called, where that was said
    kinds: ClassVar[Mapping[str, int]]  # how they can be drawn: names, and the numbers by which kernels know them
    truth: ClassVar[str] = "parameters"  # where the rows (1 + m, ...) of the signals stand

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        refuse_old(cls, settings)
        return super().__new__(cls)

    @property
    def kind(self) -> int:
        """The number by which kernels know the outcomes."""
        return self.kinds[self.outcomes]

    @property
    def rows(self) -> Floats:
        """The rows (1 + m, …) that the means of each signal are made of."""
        found: Floats = getattr(self, self.truth)
        return found

    @property
    def costs(self) -> int:
        return int(self.noise.size) - 1

    @classmethod
    def parent(cls) -> "type[NoisyWorld] | None":
        """Return the world of stagewise that this one is, or is a subclass of; None: it is written from the ground."""
        ours = [kind for kind in cls.__mro__ if kind.__module__.startswith("stagewise.")]
        return next((kind for kind in ours if issubclass(kind, NoisyWorld) and not isabstract(kind)), None)

    @property
    def known(self) -> bool:
        return type(self) is self.parent()

    @property
    def names_safe(self) -> bool:
        return self.known and bool(self.actions.names_safe)

    @property
    def offers_same(self) -> bool:
        return type(self).actions_in is NoisyWorld.actions_in and self.actions.draw(Draw()) is self.actions

    @property
    def draws(self) -> int:
        """What a loop draws in every round (see `kernels.loop.play`)."""
        return DIRECTIONS if self.actions.fresh else 0

    @property
    def drawn(self) -> tuple[int, Floats]:
        """Which listed action is safe in every round, −1: another point; and what a loop needs to draw."""
        return -1, np.array([getattr(self.actions, "safe", None) or 0.0])

    def signed_parameters(self, signs: Floats) -> Floats:
        """Return what a loop makes means from that were not told beforehand, times the sign of each signal."""
        return self.rows * signs[:, np.newaxis]

    def check(self, policy: Any) -> None:
        parent = self.parent()
        if parent is not None and type(self).means is not parent.means:
            raise InvalidProblem(
                f"{type(self).__name__} is a {parent.__name__} with means of its own, and its runs would be judged by "
                f"the {parent.__name__}'s; write it as a world by itself"
            )

    def most_at_safe(self, signs: Floats) -> Floats:
        return np.asarray(self.actions.most_at_safe(self.rows * signs[:, np.newaxis]))

    def mean_at_safe(self) -> Floats:
        return np.asarray(self.actions.mean_at_safe(self.rows))

    def under(self, names: Sequence[str]) -> Self:
        """Return the same world with its costs in the order of limits of these names; without own names, as it is.

        Limits that were given without names are taken in the order in which the costs stand.
        """
        asked = tuple(names)
        if not self.names or not asked or asked in (self.names, unnamed(len(self.names))):
            return self
        order = [0, *(1 + place for place in order_of(self.names, asked))]
        other = self.with_truth(self.rows[order])
        other.noise, other.names = frozen(self.noise[order]), asked
        return other

    def with_truth(self, rows: Floats) -> Self:
        """Return the same world with other rows (1 + m, …) of its signals."""
        other = copy(self)
        setattr(other, self.truth, frozen(rows))
        return other

    def actions_in(self, draw: Draw) -> Any:
        return self.actions.draw(draw)

    @property
    def most(self) -> Floats:
        """The largest mean (1 + m,) of every signal that can be offered."""
        return np.asarray(self.actions.most(self.rows))

    def told(self, rows: Any) -> dict[str, Any]:
        """Return what every description says, of rows (1 + m, …) of the signals."""
        return {
            "kind": type(self).__name__,
            "reward": rows[0].tolist(),
            "cost": plain_costs(rows[1:], self.names),
            "noise": plain_signals(self.noise, self.names),
            "outcomes": self.outcomes,
        }

    @classmethod
    def rebuilt(cls, told: dict[str, Any]) -> Self:
        """Return the world that described itself so, but for its kind."""
        return cls.again(told)

    @classmethod
    def again(cls, told: Mapping[str, Any], **made: Any) -> Self:
        """Return a world from what it told and what was made of that; it tells a noise even where none is read."""
        given = dict(told)
        unread = given.pop("noise", None) if given.get("outcomes") == "bernoulli" else None
        world = cls(**given, **made)
        if unread is not None:
            called = signals(world.costs, world.names)
            world.noise = frozen(one_per(by_signal(unread, world.names, "noise"), called, "noise"))
        return world

    def outcome(self, action: Any, draw: Draw) -> Outcome:
        return self.seen(self.means(action), draw)

    def seen(self, means: Floats, draw: Draw) -> Outcome:
        """Return what is seen in this round of means (1 + m,)."""
        seen = np.empty(means.size)
        fill_outcome(self.kind, means, self.noise, *checked_draw(draw), seen)
        return Outcome(float(seen[0]), seen[1:])


def run_of(run: Any) -> int:
    """Return a run's number."""
    return whole(run, "the run", "from 0 to 2**32 - 1", 0, WORD)


def checked_draw(draw: Any) -> Draw:
    """Return a draw whose numbers are whole and in range: kernels count with them and check nothing."""
    if not isinstance(draw, Draw):
        raise InvalidProblem(f"the draw is {shown(draw)}; it must be a Draw, with a seed, a run and a round")
    seed = whole(draw.seed, "the draw's seed", "of at most 64 bits with its sign", -(2**63), 2**63 - 1)
    return Draw(seed, run_of(draw.run), whole(draw.round, "the draw's round", "from 0 to 2**32 - 1", 0, WORD))


def offered(actions: Any) -> dict[str, list[int]]:
    """Return which of the listed actions are on offer, where not all are: what a description says of `only`."""
    return {"eligible": np.flatnonzero(actions.eligible).tolist()} if actions.eligible.size else {}


def some(actions: Any, eligible: list[int] | None) -> Any:
    """Return the actions, of which only these are on offer; None: all."""
    return actions if eligible is None else actions.only(eligible)


def signals(costs: int, names: Names = ()) -> Names:
    """Return what messages call the reward and the costs."""
    return ("reward", *(names or (f"cost {j + 1}" for j in range(costs))))
