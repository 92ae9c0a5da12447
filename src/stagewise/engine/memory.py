"""Memories of policies: their size, and how they start, cache other candidates, or get more capacity."""

from collections.abc import Callable
from typing import cast

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, factory, kernel
from stagewise.engine.layout import CACHE_DISABLED, CACHED, CAPACITY, FEATURES, FIRST_OFFSET, pad_to_vector
from stagewise.engine.model import Kernel, Model

Models = tuple[Model, ...]


def list_offsets(models: Models, layout: Ints, candidates: int, capacity: int) -> list[int]:
    """Return where each block begins in a memory, and where the cached features begin."""
    offsets = [int(pad_to_vector(FIRST_OFFSET + len(models)))]
    for index, model in enumerate(models):
        offsets.append(offsets[-1] + int(model.size(layout, index, candidates, capacity)))
    return offsets


def memory_size(models: Models, layout: Ints, candidates: int, capacity: int) -> int:
    """Return the length of a memory with these numbers of cached candidates and capacity."""
    return list_offsets(models, layout, candidates, capacity)[-1] + max(candidates, 0) * int(layout[FEATURES])


def write_header(models: Models, layout: Ints, memory: Floats, candidates: int, capacity: int) -> None:
    """Write an empty memory: cached candidates, capacity, and the offset of each block."""
    offsets = list_offsets(models, layout, candidates, capacity)[:-1]
    memory[:] = 0.0
    memory[CACHED], memory[CAPACITY] = float(candidates), float(capacity)
    memory[FIRST_OFFSET : FIRST_OFFSET + len(offsets)] = offsets


def fits_layout(models: Models, memory: Floats, layout: Ints, most_capacity: int) -> bool:
    """Return whether a memory can belong to a policy with this layout, by its header."""
    if memory.ndim != 1 or memory.size < FIRST_OFFSET + len(models):
        return False
    cached, capacity = memory[CACHED], memory[CAPACITY]
    if not (CACHE_DISABLED <= cached <= memory.size and 0 <= capacity <= most_capacity):  # false for NaN too
        return False
    if cached != int(cached) or capacity != int(capacity):
        return False
    offsets = list_offsets(models, layout, int(cached), int(capacity))
    if memory.size != offsets[-1] + max(int(cached), 0) * int(layout[FEATURES]):
        return False
    return bool(np.array_equal(memory[FIRST_OFFSET : FIRST_OFFSET + len(models)], offsets[:-1]))


@factory
def build_change(model: Model) -> Callable[..., None]:
    """Return the kernel that copies one block of a model to a memory that caches other candidates (K, d), or none."""
    view, change_block = model.view, cast(Kernel, model.change)

    @kernel
    def change(
        index: int, features: Floats, layout: Ints, settings: Floats, memory: Floats, changed: Floats, work: Floats
    ) -> None:
        old, new = view(layout, memory, index), view(layout, changed, index)
        change_block(layout, old, new, features, settings, memory, changed, work)

    return change


@factory
def build_widen(model: Model) -> Callable[..., None]:
    """Return the kernel that copies one block of a model to a memory with the same candidates and more capacity."""
    view, widen_block = model.view, cast(Kernel, model.widen)

    @kernel
    def widen(index: int, layout: Ints, memory: Floats, changed: Floats) -> None:
        widen_block(layout, view(layout, memory, index), view(layout, changed, index), memory, changed)

    return widen


def copy_block(model: Model, layout: Ints, index: int, memory: Floats, changed: Floats) -> None:
    """Copy a whole block, whose size stays."""
    length = model.size(layout, index, int(memory[CACHED]), int(memory[CAPACITY]))
    first, at = int(memory[FIRST_OFFSET + index]), int(changed[FIRST_OFFSET + index])
    changed[at : at + length] = memory[first : first + length]


def start_memory(models: Models, layout: Ints, settings: Floats, capacity: int, memory: Floats) -> None:
    """Write the memory of a policy without data and without cached candidates; it runs once, so it is not compiled."""
    write_header(models, layout, memory, 0, capacity)
    for index, model in enumerate(models):
        block = as_python(model.view)(layout, memory, index)
        as_python(model.start)(layout, block, settings, memory, np.empty(0))


def change_memory(
    models: Models, layout: Ints, settings: Floats, memory: Floats, candidates: Floats, capacity: int, changed: Floats
) -> None:
    """Write the same memory with these candidates (K, d) cached and this capacity; with none, disable caching."""
    count = len(candidates)
    write_header(models, layout, changed, count if count else int(CACHE_DISABLED), capacity)
    if count:
        changed[changed.size - candidates.size :] = candidates.ravel()
    work = np.empty(2 * max(candidates.shape[1], capacity, 1) + count + 8)
    for index, model in enumerate(models):
        if model.change is None:
            copy_block(model, layout, index, memory, changed)
        else:
            build_change(model)(index, candidates, layout, settings, memory, changed, work)


def widen_memory(models: Models, layout: Ints, memory: Floats, capacity: int, changed: Floats) -> None:
    """Write the same memory, with the same cached candidates, with capacity for more basis points or segments."""
    cached = int(memory[CACHED])
    write_header(models, layout, changed, cached, capacity)
    features = max(cached, 0) * int(layout[FEATURES])
    changed[changed.size - features :] = memory[memory.size - features :]
    for index, model in enumerate(models):
        if model.widen is None:
            copy_block(model, layout, index, memory, changed)
        else:
            build_widen(model)(index, layout, memory, changed)
