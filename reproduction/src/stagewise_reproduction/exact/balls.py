"""The paper's confidence sets over a finite class of functions: balls around the least squares fit."""

import math
from collections.abc import Iterator

import numpy as np

from stagewise.kernels.compile import Flags, Floats
from stagewise.models.functions import FunctionsModel, Seen


class BallsModel(FunctionsModel):
    """Its memory ends with Σ (f(X) − g(X))² for each pair of one signal's functions."""

    def start(self) -> Floats:
        """Return the memory of nothing seen."""
        return np.append(super().start(), np.zeros(sum(size * size for size in self.sizes)))

    def add(self, memory: Floats, seen: Seen) -> None:
        """Add an outcome to the sums."""
        super().add(memory, seen)
        for part, distances in self.balls(memory):
            distances += (seen.functions[part, None] - seen.functions[part]) ** 2

    def give_up(self, memory: Floats) -> None:
        """Give up, for good, the functions outside their signal's ball."""
        kept = self.named(memory)
        for part, distances in self.balls(memory):
            kept.plausible[part] *= in_ball(kept.losses[part], distances, float(kept.rounds[0]), self.confidence)

    def balls(self, memory: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield where each signal's functions stand, and their distances (F, F)."""
        ends = np.cumsum([size * size for size in self.sizes])
        pairs = np.split(self.named(memory).more, ends[:-1])
        for part, size, distances in zip(self.parts(), self.sizes, pairs, strict=True):
            yield part, distances.reshape(size, size)


def in_ball(losses: Floats, distances: Floats, rounds: float, confidence: float) -> Flags:
    """Say which functions lie in the paper's ball around the least squares fit, for outcomes and functions in [0, 1].

    Σ (f(X) − f̂(X))² ≤ γ = 512 log(12 F log(2t)/δ)        (the paper's appendix on least squares, squared norm)
    """
    radius = 512.0 * (math.log(12.0 * losses.size * math.log(2.0 * max(rounds, 1.0))) + confidence)
    inside: Flags = distances[int(np.argmin(losses))] <= radius
    return inside
