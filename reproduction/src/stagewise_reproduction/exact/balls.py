"""The paper's confidence sets over a finite class of functions: balls around the least squares fit."""

import math
from collections.abc import Iterator

import numpy as np

from stagewise.engine.compile import Flags, Floats
from stagewise.models.function_class import FunctionClassModel, FunctionOutcome


class BallsModel(FunctionClassModel):
    """Function class model with the paper's balls; its memory ends with Σ (f(X) − g(X))² of each pair of functions."""

    def start(self) -> Floats:
        """Return the memory without data."""
        return np.append(super().start(), np.zeros(sum(size * size for size in self.sizes)))

    def add(self, memory: Floats, outcome: FunctionOutcome) -> None:
        """Add an outcome to the sums."""
        super().add(memory, outcome)
        for selection, distances in self.balls(memory):
            distances += (outcome.functions[selection, None] - outcome.functions[selection]) ** 2

    def eliminate(self, memory: Floats) -> None:
        """Eliminate, permanently, the functions outside their signal's ball."""
        statistics = self.get_statistics(memory)
        for selection, distances in self.balls(memory):
            statistics.plausible[selection] *= find_in_ball(
                statistics.losses[selection], distances, float(statistics.rounds[0]), self.confidence
            )

    def balls(self, memory: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield the slice of each signal's functions, and their distances (F, F)."""
        ends = np.cumsum([size * size for size in self.sizes])
        pairs = np.split(self.get_statistics(memory).more, ends[:-1])
        for selection, size, distances in zip(self.parts(), self.sizes, pairs, strict=True):
            yield selection, distances.reshape(size, size)


def find_in_ball(losses: Floats, distances: Floats, rounds: float, confidence: float) -> Flags:
    """Return which functions lie in the paper's ball around the least squares fit, for values in [0, 1].

    Σ (f(X) − f̂(X))² ≤ γ = 512 log(12 F log(2t)/δ)        (the paper's appendix on least squares, squared norm)
    """
    radius = 512.0 * (math.log(12.0 * losses.size * math.log(2.0 * max(rounds, 1.0))) + confidence)
    inside: Flags = distances[int(np.argmin(losses))] <= radius
    return inside
