"""A regression by itself: begun, taught, following, and what it says of actions."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import ELSEWHERE, get_known_actions
from stagewise.engine.round import change_memory, memory_size, start_memory
from stagewise.engine.workspace import CENTRE, CROSS, HALF, bounds_work_size
from stagewise.models.regression import Regression, compute_cached_ridge_bounds, compute_ridge_bounds, learn_ridge
from stagewise.models.ridge import RIDGE, LinearModel, view_ridge
from stagewise.policies.rounds import assemble_arrays

PART_OF, SAFE, MODELS = as_python(view_ridge), as_python(get_known_actions), (RIDGE,)


class ModelState(NamedTuple):
    """One regression of all signals, as kernels read it."""

    layout: Ints
    settings: Floats
    memory: Floats

    @property
    def block(self) -> Regression:
        return PART_OF(self.layout, self.memory, 0)

    @property
    def safe(self) -> Floats:
        return SAFE(self.layout, self.settings, self.memory).safe


class BoundsTable(NamedTuple):
    """Centres, halves and crosses of all signals (1 + m, K), and the first two at the safe action (1 + m,)."""

    centres: Floats
    halves: Floats
    crosses: Floats
    safe_centres: Floats
    safe_halves: Floats


def start_model(model: LinearModel) -> ModelState:
    """Return a regression that has seen nothing, in a memory that was full of rubbish."""
    limits = len(model.names) - 1
    layout, settings = assemble_arrays((0, 0, -1), np.zeros(3 + 3 * limits), model.safe, tuple(model.build_blocks()))
    memory = np.full(memory_size(MODELS, layout, 0, 0), np.nan)
    start_memory(MODELS, layout, settings, 0, memory)
    return ModelState(layout, settings, memory)


def teach(model: ModelState, actions: Floats, values: Floats) -> None:
    """Take in values (t, 1 + m) of actions (t, d)."""
    part = model.block
    work = np.full(3 * part.size + part.width + part.signals, np.nan)
    for action, observed in zip(actions, values, strict=True):
        learn_ridge(part, action, ELSEWHERE, 1.0, False, observed, model.settings, model.memory, work)


def cache_candidates(model: ModelState, features: Floats) -> ModelState:
    """Return the same regression, from now on following these candidates."""
    memory = np.full(memory_size(MODELS, model.layout, len(features), 0), np.nan)
    change_memory(MODELS, model.layout, model.settings, model.memory, features, 0, memory)
    return model._replace(memory=memory)


def compute_bounds(model: ModelState, features: Floats) -> BoundsTable:
    """Return what it says of any candidates, from arrays full of rubbish."""
    part, bounds = model.block, build_nan_bounds(model, len(features))
    work = np.full(bounds_work_size(part.size, len(features)), np.nan)
    compute_ridge_bounds(part, features, model.safe, model.settings, model.memory, bounds, work)
    return read_bounds(bounds)


def compute_cached_bounds(model: ModelState) -> BoundsTable:
    """Return what it says of the candidates that it follows."""
    part = model.block
    bounds = build_nan_bounds(model, part.cached - 1)
    compute_cached_ridge_bounds(part, model.settings, model.memory, bounds, np.full(2 * part.width, np.nan))
    return read_bounds(bounds)


def build_nan_bounds(model: ModelState, count: int) -> Floats:
    return np.full((model.block.signals, 3, count + 1), np.nan)


def read_bounds(bounds: Floats) -> BoundsTable:
    table = bounds[..., :-1]
    return BoundsTable(table[:, CENTRE], table[:, HALF], table[:, CROSS], bounds[:, CENTRE, -1], bounds[:, HALF, -1])
