"""Action sets that are new in every round."""

from dataclasses import dataclass

import numpy as np

from stagewise.kernels.world import fill_directions
from stagewise.problem.actions import Finite, Listed, Rays
from stagewise.problem.checks import shown, whole_at_least
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw

ENTRIES = 2**32  # that are counted in one word of the random numbers' counter


@dataclass(frozen=True)
class Fresh:
    """`count` actions, each uniform on the unit sphere in `dimension` dimensions, drawn anew in every round."""

    count: int
    dimension: int

    def __post_init__(self) -> None:
        for name in ("count", "dimension"):
            whole_at_least(getattr(self, name), name, 1)
        if self.count * self.dimension > ENTRIES:
            raise InvalidProblem(
                f"count is {shown(self.count)} and dimension {shown(self.dimension)}; a round draws their product of "
                "random numbers, and at most 2**32"
            )

    def draw(self, draw: Draw) -> Listed:
        """Return the set of one round."""
        features = np.empty((self.count, self.dimension))
        fill_directions(features, draw.seed, draw.run, draw.round)
        return self.kind.borrowed(features)

    @property
    def kind(self) -> type[Listed]:
        """What the set is offered as."""
        return Listed


class RandomRays(Fresh):
    """Fresh rays every round.

    >>> RandomRays(count=3, dimension=2).draw(Draw(seed=1)).features.shape
    (3, 2)
    """

    @property
    def kind(self) -> type[Listed]:
        """Rays."""
        return Rays


class RandomFinite(Fresh):
    """A fresh finite set every round.

    >>> RandomFinite(count=3, dimension=2).draw(Draw(seed=1))
    Finite(3 actions, 2 features)
    """

    @property
    def kind(self) -> type[Listed]:
        """A finite set."""
        return Finite
