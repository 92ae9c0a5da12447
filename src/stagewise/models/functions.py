"""A finite class of functions: the squared error of every one, and which of them what was seen leaves plausible."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Flags, Floats


class Kept(NamedTuple):
    """What is remembered, by name. The functions of all signals stand one after another, the reward's first."""

    rounds: Floats  # (1,)
    losses: Floats  # (F,) L(f) = Σ (f(X) − Y)²
    corrections: Floats  # (F,) what rounding added to them
    plausible: Floats  # (F,) 1, or 0 from the first round on that a function's set is without it
    distances: Floats  # Σ (f(X) − g(X))² for each pair of one signal's functions; only the paper's sets need them
    at_safe: Floats  # (2 + m,) outcomes seen at the safe action itself, and the sum of each signal there


class Believed(NamedTuple):
    """The plausible functions at n listed actions, then at the safe one."""

    tables: tuple[Floats, ...]  # for each signal (F, n + 1)
    highest: Floats  # (1 + m, n + 1)
    lowest: Floats  # (1 + m, n + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionsModel:
    """What is assumed of a reward and m costs whose means are functions of finite classes."""

    sizes: tuple[int, ...]  # functions of each signal
    noise: Floats  # (1 + m,) R: outcomes are R-sub-Gaussian
    confidence: float  # log 1/δ of one signal's set
    paper: bool  # balls around the least squares fit, else likelihood ratios

    def start(self) -> Floats:
        """Return the memory of nothing seen."""
        pairs = sum(size * size for size in self.sizes) if self.paper else 0
        memory = np.zeros(1 + 3 * sum(self.sizes) + pairs + 1 + len(self.sizes))
        self.named(memory).plausible[:] = 1.0
        return memory

    def named(self, memory: Floats) -> Kept:
        """Name the memory: rounds | losses | corrections | plausible | distances | at the safe action."""
        count, end = sum(self.sizes), memory.size - 1 - len(self.sizes)
        return Kept(*np.split(memory, [1, 1 + count, 1 + 2 * count, 1 + 3 * count, end]))

    def least_losses(self, memory: Floats) -> Floats:
        """Return the least squared error (1 + m,) of each signal's functions; that of the noise is no less."""
        starts = np.cumsum((0, *self.sizes[:-1]))
        return np.asarray(np.minimum.reduceat(self.named(memory).losses, starts))

    def add(self, memory: Floats, functions: Floats, values: Floats) -> None:
        """Add an outcome to the sums; no function is given up yet. The order of outcomes makes no difference here."""
        kept = self.named(memory)
        kept.rounds[0] += 1.0
        add((functions - np.repeat(values, self.sizes)) ** 2, kept.losses, kept.corrections)
        if self.paper:
            for part, distances in self.parts(kept):
                distances += (functions[part, None] - functions[part]) ** 2

    def judge(self, memory: Floats) -> None:
        """Give up, for good, the functions that all that was added speaks against.

        Valid after any outcome in the order of the decisions; of a log only after its last row, since its rows may have
        been sorted by what they say (docs/theory/function-classes.md).
        """
        kept = self.named(memory)
        for signal, (part, distances) in enumerate(self.parts(kept)):
            if self.paper:
                inside = in_ball(kept.losses[part], distances, float(kept.rounds[0]), self.confidence)
            else:
                inside = likely(kept.losses[part], float(self.noise[signal]), self.confidence)
            kept.plausible[part] *= inside

    def parts(self, kept: Kept) -> Iterator[tuple[slice, Floats]]:
        """Yield where each signal's functions stand, and their distances (F, F) where they are kept."""
        first, pair = 0, 0
        for size in self.sizes:
            pairs = size * size if self.paper else 0
            yield slice(first, first + size), kept.distances[pair : pair + pairs].reshape(-1, size)
            first, pair = first + size, pair + pairs

    def believed(self, memory: Floats, functions: Floats) -> Believed | None:
        """Return what is plausible of functions with these values (F, n + 1); None: of a signal no function is."""
        plausible, tables, first = self.named(memory).plausible != 0.0, [], 0
        for size in self.sizes:
            part = slice(first, first + size)
            tables.append(functions[part][plausible[part]])
            first += size
        if not all(len(table) for table in tables):
            return None
        highest, lowest = (np.array([f(table, axis=0) for table in tables]) for f in (np.max, np.min))
        return Believed(tuple(tables), highest, lowest)


def add(terms: Floats, sums: Floats, corrections: Floats) -> None:
    """Add terms to sums whose rounding errors are remembered (Kahan 1965): the error of a sum does not grow."""
    terms = terms - corrections
    after = sums + terms
    corrections[:] = (after - sums) - terms
    sums[:] = after


def likely(losses: Floats, noise: float, confidence: float) -> Flags:
    """Say which functions the likelihood ratio against the class's own mixture leaves plausible.

    L(f) + 2R² log (1/F) Σ_g exp(−L(g)/2R²) ≤ 2R² log 1/δ        (docs/theory/function-classes.md, Theorem 1)
    """
    with np.errstate(over="ignore"):
        excess = (losses - losses.min()) / noise / noise / 2.0
    inside: Flags = excess + math.log(float(np.mean(np.exp(-excess)))) <= confidence
    return inside


def in_ball(losses: Floats, distances: Floats, rounds: float, confidence: float) -> Flags:
    """Say which functions lie in the paper's ball around the least squares fit, for outcomes and functions in [0, 1].

    Σ (f(X) − f̂(X))² ≤ γ = 512 log(12 F log(2t)/δ)        (the paper's appendix on least squares, squared norm)
    """
    radius = 512.0 * (math.log(12.0 * losses.size * math.log(2.0 * max(rounds, 1.0))) + confidence)
    inside: Flags = distances[int(np.argmin(losses))] <= radius
    return inside
