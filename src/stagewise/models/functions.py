"""A finite class of functions: the squared error of every one, and which of them what was seen leaves plausible."""

import math
from collections.abc import Iterable, Iterator
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
    safe_rounds: Floats  # (1,) of them, at the safe action itself
    safe_sums: Floats  # (1 + m,) what each signal added up to there
    more: Floats  # what a model with other sets needs besides


class Seen(NamedTuple):
    """An outcome."""

    functions: Floats  # (F,) the value of every function at what was played
    values: Floats  # (1 + m,)
    at_safe: bool = False  # it was the safe action


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

    def start(self) -> Floats:
        """Return the memory of nothing seen."""
        memory = np.zeros(2 + 3 * sum(self.sizes) + len(self.sizes))
        self.named(memory).plausible[:] = 1.0
        return memory

    def named(self, memory: Floats) -> Kept:
        """Name the memory: rounds | losses | corrections | plausible | rounds and sums at the safe action."""
        count = sum(self.sizes)
        return Kept(*np.split(memory, np.cumsum([1, count, count, count, 1, len(self.sizes)])))

    def parts(self) -> Iterator[slice]:
        """Yield where each signal's functions stand."""
        first = 0
        for size in self.sizes:
            yield slice(first, first + size)
            first += size

    def least_losses(self, memory: Floats) -> Floats:
        """Return the least squared error (1 + m,) of each signal's functions; that of the noise is no less."""
        losses = self.named(memory).losses
        return np.array([losses[part].min() for part in self.parts()])

    def learn(self, memory: Floats, rows: Iterable[Seen]) -> None:
        """Take in one outcome, or those of a log: functions are given up after the last, so their order is no matter.

        Valid after any outcome in the order of the decisions; of a log only after its last row, since its rows may have
        been sorted by what they say (docs/theory/function-classes.md).
        """
        for seen in rows:
            self.add(memory, seen)
        self.give_up(memory)

    def add(self, memory: Floats, seen: Seen) -> None:
        """Add an outcome to the sums."""
        kept = self.named(memory)
        kept.rounds[0] += 1.0
        add((seen.functions - np.repeat(seen.values, self.sizes)) ** 2, kept.losses, kept.corrections)
        if seen.at_safe:
            kept.safe_rounds[0] += 1.0
            kept.safe_sums[:] += seen.values

    def give_up(self, memory: Floats) -> None:
        """Give up, for good, the functions that all that was added speaks against."""
        kept = self.named(memory)
        for part, noise in zip(self.parts(), self.noise, strict=True):
            kept.plausible[part] *= likely(kept.losses[part], float(noise), self.confidence)

    def bounds(self, memory: Floats, functions: Floats) -> Believed | None:
        """Return what is plausible of functions with these values (F, n + 1); None: of a signal no function is."""
        plausible = self.named(memory).plausible != 0.0
        tables = tuple(functions[part][plausible[part]] for part in self.parts())
        if not all(len(table) for table in tables):
            return None
        highest, lowest = (np.array([f(table, axis=0) for table in tables]) for f in (np.max, np.min))
        return Believed(tables, highest, lowest)


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
