"""Linear signals: ridge regression of the reward and the costs on an action's features."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import RIDGE
from stagewise.kernels.models.radius import PAPER, RADII, radius
from stagewise.models.diagnostics import register
from stagewise.models.model_block import ModelBlockSpec, RegressionModel, build_known_values, split_regressions
from stagewise.models.regression_diagnostics import RegressionDiagnostics
from stagewise.problem.errors import ErrorCode, InvalidProblem

register(RIDGE, RegressionDiagnostics())


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel(RegressionModel):
    """The assumptions about linear signals."""

    action_bound: float  # L
    radius: str
    per_candidate: int = 0  # kind of per-candidate sets (`kernels.layout`); 0: none
    per_candidate_ends: Floats | None = None  # (3, 1 + m) their settings (`kernels.models.per_candidate`)
    separate_models: bool = False  # whether every signal has a regression of its own

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the regressions."""
        known = self.reward is not None, self.costs is not None
        for first, last, anchored in split_regressions(len(self.names), *known, self.separate_models):
            yield self.build_block(first, last, anchored)

    def build_block(self, first: int, last: int, known: bool) -> ModelBlockSpec:
        """Return the regression of signals `first` to `last`."""
        size, kind = float(np.linalg.norm(self.safe)), RADII.index(self.radius)
        reflected = known and size > 0.0
        n = self.safe.size - int(reflected)
        if kind == PAPER and n < 2:
            signal = "cost" if first else "reward"
            raise InvalidProblem(
                ErrorCode.UNSUPPORTED,
                "radius='paper' needs two or more unknown directions, and the {signal} has {n} (see "
                "`stagewise help errata`); use radius='joint' or 'logdet'",
                signal=signal,
                n=n,
            )
        reflector, unit = self.reflection(size) if reflected else (np.empty(0), 0.0)
        values = build_known_values(self.reward, self.costs, len(self.names))
        declared = (self.noise, self.learned_bounds(size), self.confidence, values if known else np.zeros(values.size))
        numbers = [np.array([self.ridge, self.action_bound, unit]), reflector, *(row[first:last] for row in declared)]
        if self.per_candidate_ends is not None:
            numbers += [row[first:last] for row in self.per_candidate_ends]
        return ModelBlockSpec(
            (RIDGE, first, last - first, n, kind, int(known), int(reflected), 0, self.per_candidate),
            np.concatenate(numbers),
        )

    def radii(self, size: int, log_det: float, count: float) -> Floats:
        """Return β of every signal after `count` observations of n learned coordinates."""
        kind, energy = RADII.index(self.radius), count * self.action_bound**2
        bounds = self.learned_bounds(float(np.linalg.norm(self.safe)))
        rows = zip(self.noise, bounds, self.confidence, strict=True)
        return np.array([radius(kind, r, s, self.ridge, c, log_det, size, energy) for r, s, c in rows])

    def reflection(self, size: float) -> tuple[Floats, float]:
        """Return w of the reflection with H e₀ = −sign e_d, and the factor from Hx's last entry to <x, e₀>."""
        reflector = self.safe / size
        sign = math.copysign(1.0, reflector[-1])  # the sign that avoids cancellation
        reflector[-1] += sign
        reflector /= np.linalg.norm(reflector)
        return reflector, -sign / size

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the learned directions; the paper's radius uses all of it."""
        remaining = self.compute_remaining_bounds(size, "needs a parameter of norm {}")
        return self.norm_bound.copy() if self.radius == "paper" else remaining
