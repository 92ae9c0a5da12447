"""A model of some signals as kernels read it, and what several models share."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import PARTS, Part, part_of
from stagewise.problem.errors import InvalidProblem

PART_OF = named(part_of)


class Modelled(NamedTuple):
    """The whole numbers and the numbers of a part (see `kernels.layout.Part`)."""

    whole: tuple[int, ...]  # kind, first signal, signals, size, radius, anchored, reflected, detail, sharp
    numbers: Floats


def parts_in(layout: Ints, memory: Floats) -> Iterator[Part]:
    """Yield every part of a memory, in order."""
    for which in range(layout[PARTS]):
        yield PART_OF(layout, memory, which)


def known_at_safe(reward: float | None, costs: Floats | None, signals: int) -> Floats:
    """Return what is known of each signal (1 + m,) at the safe action; 0 where nothing is."""
    return np.array([reward or 0.0, *(np.zeros(signals - 1) if costs is None else costs)])


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel:
    """What is assumed of signals that are regressed. The first is the reward."""

    safe: Floats  # (d,) x₀
    names: tuple[str, ...]  # of the signals
    reward: float | None  # at the safe action; None: unknown
    costs: Floats | None  # (m,) at the safe action; None: unknown
    noise: Floats  # (1 + m,) R
    norm_bound: Floats  # (1 + m,) S, B: no parameter, or function, has a larger norm
    ridge: float  # λ
    confidence: Floats  # (1 + m,) log 1/δ_k

    def left_to_learn(self, size: float, words: str) -> Floats:
        """Return what bounds B leave for the part that is learned: √(B² − (c₀/size)²) where the value c₀ is known.

        `size` is the safe action's norm; `words` say of a value what norm it needs, where B is less than that.
        """
        bounds = self.norm_bound.copy()
        values = [self.reward, *(self.costs if self.costs is not None else [None] * (len(self.names) - 1))]
        for i, (name, value) in enumerate(zip(self.names, values, strict=True)):
            if value is None or size == 0.0:
                continue
            least = abs(float(value)) / size
            if least > bounds[i] * (1.0 + 1e-12):
                raise InvalidProblem(
                    f"the safe action's {name!r} is {value}, which {words.format(f'{least:.6g}')}, above norm_bound "
                    f"{bounds[i]:.6g}; too small a bound makes intervals too narrow"
                )
            bounds[i] = math.sqrt(max(bounds[i] ** 2 - least**2, 0.0))
        return bounds


def regressions(
    signals: int, reward_known: bool, costs_known: bool, apart: bool = False
) -> list[tuple[int, int, bool]]:
    """Return the signals `first` to `last` of each regression, and whether their values at x₀ are known.

    Reward and costs share one when both are known there, or both unknown; `apart`: every signal has its own.

    >>> regressions(3, True, True), regressions(3, True, False)
    ([(0, 3, True)], [(0, 1, True), (1, 3, False)])
    >>> regressions(3, True, False, apart=True)
    [(0, 1, True), (1, 2, False), (2, 3, False)]
    """
    if apart:
        return [(i, i + 1, costs_known if i else reward_known) for i in range(signals)]
    if signals == 1 or reward_known == costs_known:
        return [(0, signals, reward_known)]
    return [(0, 1, reward_known), (1, signals, costs_known)]
