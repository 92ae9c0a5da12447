"""Start a memory, change its cached candidates, or increase its capacity."""

from collections.abc import Callable
from typing import NamedTuple

from stagewise.engine.compile import Floats, Ints, factory, kernel
from stagewise.engine.layout import (
    ARMS,
    CACHE_DISABLED,
    CACHED,
    CAPACITY,
    FEATURES,
    KERNEL_RIDGE,
    MODEL_BLOCKS,
    PER_ACTION_RIDGE,
    RARE_EVENTS,
    RIDGE,
    SEGMENT_RATES,
    copy_values,
    count_cached_rows,
    count_regressions,
    get_known_actions,
    get_model_block,
    model_block_size,
    regression_size,
    slot_size,
    tally_size,
    write_memory_header,
)
from stagewise.models.arms import start_arms
from stagewise.models.kernel_ridge import (
    cache_kernel_ridge,
    copy_cached_candidates,
    copy_kernel_ridge,
    count_basis_points,
)
from stagewise.models.per_action_ridge import start_per_action_ridge
from stagewise.models.per_candidate import start_per_candidate
from stagewise.models.rare_events import start_rare_events
from stagewise.models.regression import cache_ridge, start_ridge
from stagewise.models.segment_rates import copy_segment_rates, count_slots, get_slot_offset


class MemoryKernels(NamedTuple):
    """Kernels that create and change memories, compiled for some kinds of models."""

    start: Callable[..., None]
    change: Callable[..., None]
    widen: Callable[..., None]


@factory
def build_memory_kernels(*models: int) -> MemoryKernels:
    """Return the kernels for memories of policies with these kinds of models (see `round.RoundSpec`)."""
    ridge, arms, kernel_ridge, per_candidate, per_action_ridge, segment_rates, rare_events = models

    @kernel
    def start(layout: Ints, settings: Floats, capacity: int, memory: Floats, work: Floats) -> None:
        """Write the memory of a policy without data and without cached candidates."""
        write_memory_header(layout, memory, 0, capacity)
        for index in range(layout[MODEL_BLOCKS]):
            block = get_model_block(layout, memory, index)
            if ridge and block.kind == RIDGE:
                start_ridge(block, settings, memory)
            if arms and block.kind == ARMS:
                start_arms(block, settings, memory)
            if per_action_ridge and block.kind == PER_ACTION_RIDGE:
                start_per_action_ridge(block, settings, memory)
            if rare_events and block.kind == RARE_EVENTS:
                start_rare_events(block, settings, memory)
            if kernel_ridge and block.kind == KERNEL_RIDGE:
                cache_kernel_ridge(
                    layout, block, get_known_actions(layout, settings, memory).cached, settings, memory, work
                )

    @kernel
    def change(
        features: Floats, layout: Ints, settings: Floats, memory: Floats, capacity: int, changed: Floats, work: Floats
    ) -> None:
        """Write the same memory with these candidates (K, d) cached and this capacity; with none, disable caching."""
        count = features.shape[0]
        write_memory_header(layout, changed, count if count > 0 else int(CACHE_DISABLED), capacity)
        known = get_known_actions(layout, settings, changed)
        for candidate in range(count):
            for i in range(features.shape[1]):
                known.cached[candidate, i] = features[candidate, i]
        for index in range(layout[MODEL_BLOCKS]):
            old, new = get_model_block(layout, memory, index), get_model_block(layout, changed, index)
            if ridge and new.kind == RIDGE:
                n, k = old.size, old.signals
                rows = count_cached_rows(n, k, old.per_candidate)
                source_start, target_start = old.memory + rows * old.width, new.memory + rows * new.width
                copy_values(memory, source_start, changed, target_start, (n + k) * n + tally_size(k))
                if count > 0:
                    cache_ridge(new, features, known.safe, settings, changed, work)
                    if per_candidate:
                        start_per_candidate(new, features, settings, work)
            if arms and new.kind == ARMS:
                copy_values(
                    memory, old.memory, changed, new.memory, model_block_size(layout, index, 0, int(memory[CAPACITY]))
                )
            if rare_events and new.kind == RARE_EVENTS:
                copy_values(
                    memory, old.memory, changed, new.memory, model_block_size(layout, index, 0, int(memory[CAPACITY]))
                )
            if kernel_ridge and new.kind == KERNEL_RIDGE:
                copy_kernel_ridge(layout, old, new, memory, changed)
                cache_kernel_ridge(layout, new, features, settings, changed, work)

    @kernel
    def widen(layout: Ints, memory: Floats, capacity: int, changed: Floats) -> None:
        """Write the same memory, with the same cached candidates, with capacity for more basis points or segments."""
        write_memory_header(layout, changed, int(memory[CACHED]), capacity)
        count = max(int(memory[CACHED]), 0) * layout[FEATURES]
        copy_values(memory, memory.size - count, changed, changed.size - count, count)
        for index in range(layout[MODEL_BLOCKS]):
            old, new = get_model_block(layout, memory, index), get_model_block(layout, changed, index)
            if kernel_ridge and new.kind == KERNEL_RIDGE:
                copy_kernel_ridge(layout, old, new, memory, changed)
                copy_cached_candidates(layout, old, new, memory, changed)
            elif segment_rates and new.kind == SEGMENT_RATES:
                copy_segment_rates(old, new, memory, changed, count_slots(old, memory))
            else:
                size = model_block_size(layout, index, int(memory[CACHED]), int(memory[CAPACITY]))
                copy_values(memory, old.memory, changed, new.memory, size)

    return MemoryKernels(start, change, widen)


@kernel
def copy_to_more_actions(layout: Ints, memory: Floats, wider: Ints, grown: Floats) -> None:
    """Copy what was learned of actions in a context into the memory of a policy with these actions first, and more."""
    for index in range(layout[MODEL_BLOCKS]):
        old, new = get_model_block(layout, memory, index), get_model_block(wider, grown, index)
        if new.kind == PER_ACTION_RIDGE:
            copy_values(memory, old.memory, grown, new.memory, count_regressions(old) * regression_size(old.size))
        if new.kind == SEGMENT_RATES:
            grown[new.memory] = memory[old.memory]
            for slot in range(count_slots(old, memory)):
                copy_values(memory, get_slot_offset(old, slot), grown, get_slot_offset(new, slot), slot_size(old.size))


@kernel
def get_most_basis_points(layout: Ints, memory: Floats) -> int:
    """Return the largest number of basis points that a block of this memory uses; 0 if it has none."""
    most = 0
    for index in range(layout[MODEL_BLOCKS]):
        block = get_model_block(layout, memory, index)
        if block.kind == KERNEL_RIDGE:
            most = max(most, count_basis_points(block, memory))
    return most
