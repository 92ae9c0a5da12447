"""A regression by itself: begun, taught, following, and what it says of actions."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.bounds import CENTRE, CROSS, HALF
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import Part, known_actions, memory_size, part_of
from stagewise.kernels.loop.memory import memory_kernels_for
from stagewise.kernels.loop.round import Form
from stagewise.kernels.signals.look import look_ridge, look_size, recall_ridge
from stagewise.kernels.signals.ridge import ELSEWHERE, learn_ridge
from stagewise.models.linear import LinearModel
from stagewise.policies.arrays import assembled

PART_OF, SAFE = named(part_of), named(known_actions)
MEMORY_KERNELS = memory_kernels_for(*Form(ridge=1).models)


class Alone(NamedTuple):
    """One regression of all signals, as kernels read it."""

    layout: Ints
    settings: Floats
    memory: Floats

    @property
    def part(self) -> Part:
        return PART_OF(self.layout, self.memory, 0)

    @property
    def safe(self) -> Floats:
        return SAFE(self.layout, self.settings, self.memory).safe


class Looked(NamedTuple):
    """Centres, halves and crosses of all signals (1 + m, K), and the first two at the safe action (1 + m,)."""

    centres: Floats
    halves: Floats
    crosses: Floats
    safe_centres: Floats
    safe_halves: Floats


def begun(model: LinearModel) -> Alone:
    """Return a regression that has seen nothing, in a memory that was full of rubbish."""
    limits = len(model.names) - 1
    layout, settings = assembled((0, 0, -1), np.zeros(3 + 3 * limits), model.safe, tuple(model.parts()))
    memory = np.full(memory_size(layout, 0, 0), np.nan)
    MEMORY_KERNELS.start(layout, settings, 0, memory, np.empty(0))
    return Alone(layout, settings, memory)


def teach(model: Alone, actions: Floats, values: Floats) -> None:
    """Take in values (t, 1 + m) of actions (t, d)."""
    part = model.part
    work = np.full(3 * part.size + part.width + part.signals, np.nan)
    for action, seen in zip(actions, values, strict=True):
        learn_ridge(part, action, ELSEWHERE, 1.0, False, seen, model.settings, model.memory, work)


def following(model: Alone, features: Floats) -> Alone:
    """Return the same regression, from now on following these candidates."""
    memory = np.full(memory_size(model.layout, len(features), 0), np.nan)
    MEMORY_KERNELS.change(features, model.layout, model.settings, model.memory, 0, memory, np.empty(features.shape[1]))
    return model._replace(memory=memory)


def looked(model: Alone, features: Floats) -> Looked:
    """Return what it says of any candidates, from arrays full of rubbish."""
    part, bounds = model.part, rubbish(model, len(features))
    work = np.full(look_size(part.size, len(features)), np.nan)
    look_ridge(part, features, model.safe, model.settings, model.memory, bounds, work)
    return read(bounds)


def recalled(model: Alone) -> Looked:
    """Return what it says of the candidates that it follows."""
    part = model.part
    bounds = rubbish(model, part.followed - 1)
    recall_ridge(part, model.settings, model.memory, bounds, np.full(2 * part.width, np.nan))
    return read(bounds)


def rubbish(model: Alone, count: int) -> Floats:
    return np.full((model.part.signals, 3, count + 1), np.nan)


def read(bounds: Floats) -> Looked:
    table = bounds[..., :-1]
    return Looked(table[:, CENTRE], table[:, HALF], table[:, CROSS], bounds[:, CENTRE, -1], bounds[:, HALF, -1])
