"""Linear signals: ridge regression of the reward and the costs on an action's features."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import RIDGE
from stagewise.kernels.signals.radius import PAPER, RADII, radius
from stagewise.models.answers import register
from stagewise.models.part import Modelled, RegressionModel, known_at_safe, regressions
from stagewise.models.regressed import RegressionAnswers
from stagewise.problem.errors import InvalidProblem

register(RIDGE, RegressionAnswers())


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel(RegressionModel):
    """What is assumed of linear signals, and how they are estimated."""

    action_bound: float  # L
    radius: str
    sharp: int = 0  # whether candidates that come back have sets of their own, and which (`kernels.layout`)
    own: Floats | None = None  # (3, 1 + m) what they are made of (`signals.own`)
    apart: bool = False  # whether every signal has a regression of its own

    def parts(self) -> Iterator[Modelled]:
        """Yield the regressions."""
        known = self.reward is not None, self.costs is not None
        for first, last, anchored in regressions(len(self.names), *known, self.apart):
            yield self.part(first, last, anchored)

    def part(self, first: int, last: int, known: bool) -> Modelled:
        """Return the regression of signals `first` to `last`."""
        size, kind = float(np.linalg.norm(self.safe)), RADII.index(self.radius)
        reflected = known and size > 0.0
        n = self.safe.size - int(reflected)
        if kind == PAPER and n < 2:
            whose = "cost" if first else "reward"
            raise InvalidProblem(
                f"radius='paper' cannot be used where the {whose} has {n} unknown direction(s): its closed form "
                "follows from the log-determinant form only in two dimensions or more (stagewise help errata); use "
                "radius='joint' or 'logdet'"
            )
        reflector, unit = self.reflection(size) if reflected else (np.empty(0), 0.0)
        values = known_at_safe(self.reward, self.costs, len(self.names))
        declared = (self.noise, self.learned_bounds(size), self.confidence, values if known else np.zeros(values.size))
        numbers = [np.array([self.ridge, self.action_bound, unit]), reflector, *(row[first:last] for row in declared)]
        if self.own is not None:
            numbers += [row[first:last] for row in self.own]
        return Modelled(
            (RIDGE, first, last - first, n, kind, int(known), int(reflected), 0, self.sharp),
            np.concatenate(numbers),
        )

    def radii(self, size: int, log_det: float, count: float) -> Floats:
        """Return β of every signal after so many observations of n learned coordinates."""
        kind, energy = RADII.index(self.radius), count * self.action_bound**2
        bounds = self.learned_bounds(float(np.linalg.norm(self.safe)))
        rows = zip(self.noise, bounds, self.confidence, strict=True)
        return np.array([radius(kind, r, s, self.ridge, c, log_det, size, energy) for r, s, c in rows])

    def reflection(self, size: float) -> tuple[Floats, float]:
        """Return w of the Householder reflection with H e₀ = −sign e_d, and what turns Hx's last entry into <x, e₀>."""
        reflector = self.safe / size
        sign = math.copysign(1.0, reflector[-1])  # the one that avoids cancellation
        reflector[-1] += sign
        reflector /= np.linalg.norm(reflector)
        return reflector, -sign / size

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the directions that are learned; the paper's radius takes all of it."""
        left = self.left_to_learn(size, "needs a parameter of norm {}")
        return self.norm_bound.copy() if self.radius == "paper" else left
