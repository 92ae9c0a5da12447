"""Memories of policies: their size, and how they start, cache other candidates, or get more capacity."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python, factory, kernel
from stagewise.engine.layout import (
    CACHE_DISABLED,
    CACHED,
    CAPACITY,
    FEATURES,
    FIRST_OFFSET,
    pad_to_vector,
)
from stagewise.engine.model import Kernel, Model
from stagewise.engine.round import Group, group_models

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


@cache
def build_start(groups: tuple[Group, ...]) -> Kernel:
    """Return a kernel that writes the memory of all blocks without data."""
    last, group = len(groups) - 1, groups[-1]
    before: Any
    before, begin, view = build_start(groups[:-1]) if last else None, group.model.start, group.model.view
    first, end = group.first, group.first + group.length

    @kernel
    def start(layout: Ints, settings: Floats, memory: Floats, work: Floats) -> None:
        if last:
            before(layout, settings, memory, work)
        for index in range(first, end):
            begin(layout, view(layout, memory, index), settings, memory, work)

    return start


class MemoryKernels(NamedTuple):
    """Kernels that copy a memory into another."""

    change: Kernel  # the same memory with other cached candidates (K, d); with none, caching is disabled
    widen: Kernel  # the same memory with the same candidates, and more capacity


@factory
def build_memory_kernels(groups: tuple[Group, ...]) -> MemoryKernels:
    """Return the kernels that copy memories of these models; the header of the other is written."""
    last, group = len(groups) - 1, groups[-1]
    others = build_memory_kernels(groups[:-1]) if last else MemoryKernels(None, None)  # type: ignore[arg-type]
    change_others, widen_others, view = others.change, others.widen, group.model.view
    change_block, widen_block, first, end = (
        group.model.change,
        group.model.widen,
        group.first,
        group.first + group.length,
    )

    @kernel
    def change(features: Floats, layout: Ints, settings: Floats, memory: Floats, changed: Floats, work: Floats) -> None:
        if last:
            change_others(features, layout, settings, memory, changed, work)
        for index in range(first, end):
            old, new = view(layout, memory, index), view(layout, changed, index)
            change_block(layout, old, new, features, settings, memory, changed, work)

    @kernel
    def widen(layout: Ints, memory: Floats, changed: Floats) -> None:
        if last:
            widen_others(layout, memory, changed)
        for index in range(first, end):
            widen_block(layout, view(layout, memory, index), view(layout, changed, index), memory, changed)

    return MemoryKernels(change, widen)


def start_memory(models: Models, layout: Ints, settings: Floats, capacity: int, memory: Floats) -> None:
    """Write the memory of a policy without data and without cached candidates; it runs once, so it is not compiled."""
    write_header(models, layout, memory, 0, capacity)
    if models:
        as_python(build_start(group_models(models)))(layout, settings, memory, np.empty(0))


def change_memory(
    models: Models, layout: Ints, settings: Floats, memory: Floats, candidates: Floats, capacity: int, changed: Floats
) -> None:
    """Write the same memory with these candidates (K, d) cached and this capacity; with none, disable caching."""
    count = len(candidates)
    write_header(models, layout, changed, count if count else int(CACHE_DISABLED), capacity)
    if count:
        changed[changed.size - candidates.size :] = candidates.ravel()
    work = np.empty(2 * max(candidates.shape[1], capacity, 1) + count + 8)
    build_memory_kernels(group_models(models)).change(candidates, layout, settings, memory, changed, work)


def widen_memory(models: Models, layout: Ints, memory: Floats, capacity: int, changed: Floats) -> None:
    """Write the same memory, with the same cached candidates, with capacity for more basis points or segments."""
    cached = int(memory[CACHED])
    write_header(models, layout, changed, cached, capacity)
    features = max(cached, 0) * int(layout[FEATURES])
    changed[changed.size - features :] = memory[memory.size - features :]
    build_memory_kernels(group_models(models)).widen(layout, memory, changed)
