"""A memory begun, and a memory that follows other candidates or has room for more."""

from collections.abc import Callable
from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, factory, kernel
from stagewise.kernels.layout import (
    APIECE,
    ARMS,
    CAPACITY,
    CELLS,
    EVENTS,
    FEATURES,
    FOLLOWED,
    NEVER,
    PARTS,
    RIDGE,
    SPACE,
    kept_rows,
    known_actions,
    part_of,
    part_size,
    piece_size,
    regressions_of,
    set_out,
    slot_size,
    tally_size,
)
from stagewise.kernels.signals.apiece import start_apiece
from stagewise.kernels.signals.arms import start_arms
from stagewise.kernels.signals.cells import move_cells, slot_at, slots_of
from stagewise.kernels.signals.events import start_events
from stagewise.kernels.signals.own import start_own
from stagewise.kernels.signals.ridge import follow_ridge, start_ridge
from stagewise.kernels.signals.space import used_in
from stagewise.kernels.signals.space_follow import copy_followed, copy_space, follow_space


class MemoryKernels(NamedTuple):
    """What makes memories, compiled for the models of a form."""

    start: Callable[..., None]
    change: Callable[..., None]
    widen: Callable[..., None]


@factory
def memory_kernels_for(*models: int) -> MemoryKernels:
    """Return what makes the memories of policies with these kinds of models (see `round.Form`)."""
    ridge, arms, space, sharp, apiece, cells, events = models

    @kernel
    def start(layout: Ints, settings: Floats, capacity: int, memory: Floats, work: Floats) -> None:
        """Write the memory of a policy that has seen nothing and follows nothing yet."""
        set_out(layout, memory, 0, capacity)
        for which in range(layout[PARTS]):
            part = part_of(layout, memory, which)
            if ridge and part.kind == RIDGE:
                start_ridge(part, settings, memory)
            if arms and part.kind == ARMS:
                start_arms(part, settings, memory)
            if apiece and part.kind == APIECE:
                start_apiece(part, settings, memory)
            if events and part.kind == EVENTS:
                start_events(part, settings, memory)
            if space and part.kind == SPACE:
                follow_space(layout, part, known_actions(layout, settings, memory).followed, settings, memory, work)

    @kernel
    def change(
        features: Floats, layout: Ints, settings: Floats, memory: Floats, capacity: int, changed: Floats, work: Floats
    ) -> None:
        """Write the same memory following these candidates (K, d), with this capacity; without any, none ever again."""
        count = features.shape[0]
        set_out(layout, changed, count if count > 0 else int(NEVER), capacity)
        known = known_actions(layout, settings, changed)
        for candidate in range(count):
            for i in range(features.shape[1]):
                known.followed[candidate, i] = features[candidate, i]
        for which in range(layout[PARTS]):
            old, new = part_of(layout, memory, which), part_of(layout, changed, which)
            if ridge and new.kind == RIDGE:
                n, k = old.size, old.signals
                kept = kept_rows(n, k, old.sharp)
                first, place = old.memory + kept * old.width, new.memory + kept * new.width
                copy(memory, first, changed, place, (n + k) * n + tally_size(k))
                if count > 0:
                    follow_ridge(new, features, known.safe, settings, changed, work)
                    if sharp:
                        start_own(new, features, settings, work)
            if arms and new.kind == ARMS:
                copy(memory, old.memory, changed, new.memory, part_size(layout, which, 0, int(memory[CAPACITY])))
            if events and new.kind == EVENTS:
                copy(memory, old.memory, changed, new.memory, part_size(layout, which, 0, int(memory[CAPACITY])))
            if space and new.kind == SPACE:
                copy_space(layout, old, new, memory, changed)
                follow_space(layout, new, features, settings, changed, work)

    @kernel
    def widen(layout: Ints, memory: Floats, capacity: int, changed: Floats) -> None:
        """Write the same memory, following the same candidates, with room for more basis points, or segments."""
        set_out(layout, changed, int(memory[FOLLOWED]), capacity)
        count = max(int(memory[FOLLOWED]), 0) * layout[FEATURES]
        copy(memory, memory.size - count, changed, changed.size - count, count)
        for which in range(layout[PARTS]):
            old, new = part_of(layout, memory, which), part_of(layout, changed, which)
            if space and new.kind == SPACE:
                copy_space(layout, old, new, memory, changed)
                copy_followed(layout, old, new, memory, changed)
            elif cells and new.kind == CELLS:
                move_cells(old, new, memory, changed, slots_of(old, memory))
            else:
                size = part_size(layout, which, int(memory[FOLLOWED]), int(memory[CAPACITY]))
                copy(memory, old.memory, changed, new.memory, size)

    return MemoryKernels(start, change, widen)


@kernel
def grow(layout: Ints, memory: Floats, wider: Ints, grown: Floats) -> None:
    """Write what is known of actions in a context into the memory of a policy that has those first, and more."""
    for which in range(layout[PARTS]):
        old, new = part_of(layout, memory, which), part_of(wider, grown, which)
        if new.kind == APIECE:
            copy(memory, old.memory, grown, new.memory, regressions_of(old) * piece_size(old.size))
        if new.kind == CELLS:
            grown[new.memory] = memory[old.memory]
            for slot in range(slots_of(old, memory)):
                copy(memory, slot_at(old, slot), grown, slot_at(new, slot), slot_size(old.size))


@kernel
def fullest(layout: Ints, memory: Floats) -> int:
    """Return the most basis points that a part of this memory has in use; without such a part, 0."""
    most = 0
    for which in range(layout[PARTS]):
        part = part_of(layout, memory, which)
        if part.kind == SPACE:
            most = max(most, used_in(part, memory))
    return most


@kernel
def copy(source: Floats, start: int, target: Floats, place: int, count: int) -> None:
    """Copy so many numbers."""
    for i in range(count):
        target[place + i] = source[start + i]
