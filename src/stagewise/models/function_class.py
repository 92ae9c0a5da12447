"""Model of a finite class of functions: the squared error of each, and which of them are plausible."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats


class ClassStatistics(NamedTuple):
    """The state, by name. The functions of all signals follow one another, the reward's first."""

    rounds: Floats  # (1,)
    losses: Floats  # (F,) L(f) = Σ (f(X) − Y)²
    corrections: Floats  # (F,) compensation of rounding errors (Kahan)
    plausible: Floats  # (F,) 1, or 0 once a function is eliminated
    safe_rounds: Floats  # (1,) rounds at the safe action
    safe_sums: Floats  # (1 + m,) sum of each signal there
    more: Floats  # state of a model with other sets


class FunctionOutcome(NamedTuple):
    """An outcome."""

    functions: Floats  # (F,) the value of every function at the played action
    values: Floats  # (1 + m,)
    at_safe: bool = False  # it was the safe action


class FunctionBounds(NamedTuple):
    """The plausible functions at n listed actions, then at the safe one."""

    tables: tuple[Floats, ...]  # for each signal (F, n + 1)
    highest: Floats  # (1 + m, n + 1)
    lowest: Floats  # (1 + m, n + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionClassModel:
    """The assumptions about a reward and m costs whose means are functions of finite classes."""

    sizes: tuple[int, ...]  # functions of each signal
    noise: Floats  # (1 + m,) R: outcomes are R-sub-Gaussian
    confidence: float  # log 1/δ of one signal's set

    def start(self) -> Floats:
        """Return the memory without data."""
        memory = np.zeros(2 + 3 * sum(self.sizes) + len(self.sizes))
        self.get_statistics(memory).plausible[:] = 1.0
        return memory

    def get_statistics(self, memory: Floats) -> ClassStatistics:
        """Split the memory: rounds | losses | corrections | plausible | rounds and sums at the safe action."""
        count = sum(self.sizes)
        return ClassStatistics(*np.split(memory, np.cumsum([1, count, count, count, 1, len(self.sizes)])))

    def parts(self) -> Iterator[slice]:
        """Yield the slice of each signal's functions."""
        first = 0
        for size in self.sizes:
            yield slice(first, first + size)
            first += size

    def least_losses(self, memory: Floats) -> Floats:
        """Return the least squared error (1 + m,) of each signal's functions, a lower bound on that of the noise."""
        losses = self.get_statistics(memory).losses
        return np.array([losses[selection].min() for selection in self.parts()])

    def learn(self, memory: Floats, rows: Iterable[FunctionOutcome]) -> None:
        """Learn one outcome, or those of a log: functions are eliminated after the last, in any order.

        Valid after any outcome in the order of the decisions; after a log only after its last row, because its rows may
        be sorted by their outcomes (docs/theory/function-classes.md).
        """
        for outcome in rows:
            self.add(memory, outcome)
        self.eliminate(memory)

    def add(self, memory: Floats, outcome: FunctionOutcome) -> None:
        statistics = self.get_statistics(memory)
        statistics.rounds[0] += 1.0
        add_compensated(
            (outcome.functions - np.repeat(outcome.values, self.sizes)) ** 2, statistics.losses, statistics.corrections
        )
        if outcome.at_safe:
            statistics.safe_rounds[0] += 1.0
            statistics.safe_sums[:] += outcome.values

    def eliminate(self, memory: Floats) -> None:
        """Eliminate, permanently, the functions that the data exclude."""
        statistics = self.get_statistics(memory)
        for selection, noise in zip(self.parts(), self.noise, strict=True):
            statistics.plausible[selection] *= find_plausible(
                statistics.losses[selection], float(noise), self.confidence
            )

    def bounds(self, memory: Floats, functions: Floats) -> FunctionBounds | None:
        """Return the bounds given the values of all functions (F, n + 1); None: a signal has no plausible function."""
        plausible = self.get_statistics(memory).plausible != 0.0
        tables = tuple(functions[selection][plausible[selection]] for selection in self.parts())
        if not all(len(table) for table in tables):
            return None
        highest, lowest = (np.array([f(table, axis=0) for table in tables]) for f in (np.max, np.min))
        return FunctionBounds(tables, highest, lowest)


def add_compensated(terms: Floats, sums: Floats, corrections: Floats) -> None:
    """Add terms to sums with compensated rounding errors (Kahan 1965), so that errors do not accumulate."""
    terms = terms - corrections
    after = sums + terms
    corrections[:] = (after - sums) - terms
    sums[:] = after


def find_plausible(losses: Floats, noise: float, confidence: float) -> Flags:
    """Return which functions the likelihood ratio against the class's own mixture leaves plausible.

    L(f) + 2R² log (1/F) Σ_g exp(−L(g)/2R²) ≤ 2R² log 1/δ        (docs/theory/function-classes.md, Theorem 1)
    """
    with np.errstate(over="ignore"):
        excess = (losses - losses.min()) / noise / noise / 2.0
    inside: Flags = excess + math.log(float(np.mean(np.exp(-excess)))) <= confidence
    return inside
