"""Linear signals: ridge regression of the reward and the costs on an action's features."""

import math
from dataclasses import dataclass

import numpy as np

from stagewise.kernels import linear, radius
from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.shape import Shape
from stagewise.problem.errors import InvalidProblem

RADII = {"mixture": radius.MIXTURE, "logdet": radius.LOGDET, "paper": radius.PAPER}


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel:
    """What is assumed of the signals, and how they are estimated. The first signal is the reward."""

    safe: Floats  # (d,) x₀
    names: tuple[str, ...]  # of the signals
    reward: float | None  # at the safe action; None: unknown
    costs: Floats | None  # (m,) at the safe action; None: unknown
    noise: Floats  # (1 + m,) R
    parameter_bound: Floats  # (1 + m,) S
    action_bound: float  # L
    ridge: float  # λ
    confidence: Floats  # (1 + m,) log 1/δ_k
    radius: str

    @property
    def is_origin(self) -> bool:
        """Whether the safe action is the zero vector, where a linear signal is 0."""
        return not np.any(self.safe)

    def flags(self, *, directional: bool, inflated: bool, offers_safe: bool, returns: bool = True) -> Ints:
        """Return the whole numbers and switches that kernels read."""
        shape = Shape(
            self.safe.size,
            len(self.names) - 1,
            RADII[self.radius],
            self.is_origin,
            self.reward is not None,
            self.costs is not None,
            directional,
            inflated,
            offers_safe,
            returns,
        )
        for name, known in [("reward", shape.reward_known), ("cost", shape.cost_known)]:
            n = linear.learned_dimension(shape, known)
            if self.radius == "paper" and n < 2 and not (name == "cost" and shape.constraints == 0):
                raise InvalidProblem(
                    f"radius='paper' cannot be used where the {name} has {n} unknown direction(s): its closed form "
                    "follows from the log-determinant form only in two dimensions or more (docs/errata.md); "
                    "use radius='mixture' or 'logdet'"
                )
        return np.array(shape, dtype=np.int64)

    def numbers(self) -> Floats:
        """Return the settings that kernels read, up to the promise."""
        known = np.zeros(len(self.names))
        known[0] = self.reward or 0.0
        known[1:] = 0.0 if self.costs is None else self.costs
        size = float(np.linalg.norm(self.safe))
        reflector, unit = np.zeros(self.safe.size), 0.0
        if size > 0.0:
            # Householder: H e₀ = −sign e_d, with the sign that avoids cancellation.
            reflector = self.safe / size
            sign = math.copysign(1.0, reflector[-1])
            reflector[-1] += sign
            reflector /= np.linalg.norm(reflector)
            unit = -sign / size
        parts = [
            np.array([self.ridge, self.action_bound, self.parameter_bound[0], unit]),
            self.safe,
            reflector,
            self.noise,
            self.learned_bounds(size),
            self.confidence,
            known,
            np.zeros(len(self.names)),
        ]
        return np.concatenate(parts)

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the directions that are learned: √(S² − (c₀/‖x₀‖)²) where the value c₀ is known."""
        bounds = self.parameter_bound.copy()
        values = [self.reward, *(self.costs if self.costs is not None else [None] * (len(self.names) - 1))]
        for i, (name, value) in enumerate(zip(self.names, values, strict=True)):
            if value is None or size == 0.0:
                continue
            along = abs(float(value)) / size
            if along > bounds[i] * (1.0 + 1e-12):
                raise InvalidProblem(
                    f"the safe action's {name!r} is {value}, which needs a parameter of norm {along:.6g}, above "
                    f"parameter_bound {bounds[i]:.6g}; too small a bound makes intervals too narrow"
                )
            if self.radius != "paper":
                bounds[i] = math.sqrt(max(bounds[i] ** 2 - along**2, 0.0))
        return bounds
