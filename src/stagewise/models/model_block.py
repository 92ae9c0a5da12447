"""Specification of a model block for the kernels, and code that several models share."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.model import Model
from stagewise.problem.errors import ErrorCode, InvalidProblem


class ModelBlockSpec(NamedTuple):
    """A block of a policy: its model, and what a layout and the settings say of it (see `engine.layout`)."""

    model: Model
    integers: tuple[int, ...]  # first signal, signals, size, radius, anchored, reflected, detail, per_candidate
    floats: Floats


def iter_model_blocks(models: Sequence[Model], layout: Ints, memory: Floats) -> Iterator[tuple[Model, Any]]:
    """Yield every model with its block of a memory, in order."""
    for index, model in enumerate(models):
        yield model, as_python(model.view)(layout, memory, index)


def build_known_values(reward: float | None, costs: Floats | None, signals: int) -> Floats:
    """Return the known value of each signal (1 + m,) at the safe action; 0 where it is unknown."""
    return np.array([reward or 0.0, *(np.zeros(signals - 1) if costs is None else costs)])


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionModel:
    """The assumptions about signals that are regressed. The first is the reward."""

    safe: Floats  # (d,) x₀
    names: tuple[str, ...]  # of the signals
    reward: float | None  # at the safe action; None: unknown
    costs: Floats | None  # (m,) at the safe action; None: unknown
    noise: Floats  # (1 + m,) R
    norm_bound: Floats  # (1 + m,) S, B: no parameter, or function, has a larger norm
    ridge: float  # λ
    confidence: Floats  # (1 + m,) log 1/δ_k

    def compute_remaining_bounds(self, size: float, words: str) -> Floats:
        """Return what the bounds B leave for the learned part: √(B² − (c₀/size)²) where the value c₀ is known.

        `size` is the safe action's norm; `words` describe the norm that a value needs, for the error message.
        """
        bounds = self.norm_bound.copy()
        values = [self.reward, *(self.costs if self.costs is not None else [None] * (len(self.names) - 1))]
        for i, (name, value) in enumerate(zip(self.names, values, strict=True)):
            if value is None or size == 0.0:
                continue
            least = abs(float(value)) / size
            if least > bounds[i] * (1.0 + 1e-12):
                template = (
                    "the safe action's {name!r} is {value}, which {value_2}, above norm_bound {bounds:.6g}; "
                    "raise norm_bound, since too small a bound makes intervals too narrow"
                )
                data = {"name": name, "value": value, "value_2": words.format(f"{least:.6g}"), "bounds": bounds[i]}
                raise InvalidProblem(ErrorCode.BOUND_EXCEEDED, template, **data)
            bounds[i] = math.sqrt(max(bounds[i] ** 2 - least**2, 0.0))
        return bounds


def split_regressions(
    signals: int, reward_known: bool, costs_known: bool, separate_models: bool = False
) -> list[tuple[int, int, bool]]:
    """Return the signals `first` to `last` of each regression, and whether their values at x₀ are known.

    Reward and costs share one if both are known there, or both unknown; with `separate_models` every signal has its
    own.

    >>> split_regressions(3, True, True), split_regressions(3, True, False)
    ([(0, 3, True)], [(0, 1, True), (1, 3, False)])
    >>> split_regressions(3, True, False, separate_models=True)
    [(0, 1, True), (1, 2, False), (2, 3, False)]
    """
    if separate_models:
        return [(i, i + 1, costs_known if i else reward_known) for i in range(signals)]
    if signals == 1 or reward_known == costs_known:
        return [(0, signals, reward_known)]
    return [(0, 1, reward_known), (1, signals, costs_known)]
