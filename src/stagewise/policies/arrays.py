"""Arrays of settings and memory for kernels: how they are built, their sizes, and whether a memory fits."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import (
    CACHE_DISABLED,
    CACHED,
    CAPACITY,
    FIRST_OFFSET,
    MODEL_BLOCKS,
    is_memory_header_valid,
    memory_size,
)
from stagewise.engine.memory import build_memory_kernels
from stagewise.engine.round import RoundSpec, build_round, scratch_size, work_size
from stagewise.engine.workspace import answer_size
from stagewise.files.paths import GIB, get_total_memory
from stagewise.models.model_block import ModelBlockSpec
from stagewise.problem.errors import ErrorCode, InvalidProblem

LARGE = 2**24  # numbers; fewer fit into the memory of any machine
NOTHING: Floats = np.empty(0)
MEMORY_SIZE, IS_HEADER_VALID = as_python(memory_size), as_python(is_memory_header_valid)
ANSWER_SIZE, SCRATCH_SIZE, WORK_SIZE = as_python(answer_size), as_python(scratch_size), as_python(work_size)


def allocate_aligned(size: int) -> Floats:
    """Return zeros aligned to 64 bytes: rounds on unaligned rows take a third longer."""
    if size > LARGE and 8 * size > get_total_memory():
        raise InvalidProblem(
            ErrorCode.TOO_LARGE,
            "the state for this many features or actions needs about {value:,.0f} GiB, and this "
            "machine has {get_total_memory:,.0f}; use fewer features, since a regression of d "
            "features keeps d² numbers",
            value=8 * size / GIB,
            get_total_memory=get_total_memory() / GIB,
        )
    buffer = np.empty(size + 8)
    buffer[:] = 0.0
    first = -buffer.ctypes.data % 64 // 8
    return buffer[first : first + size]


def assemble_arrays(
    head: Sequence[int],
    constraints: Floats,
    safe: Floats,
    blocks: Sequence[ModelBlockSpec],
    declared: Floats = NOTHING,
    last: Sequence[float] = (),
) -> tuple[Ints, Floats]:
    """Return the layout and the settings of a policy; `head` is switches, sampling, safe index (`kernels.layout`).

    `declared` are r₀ and c₀ where every round names its safe action; `last` are the last numbers of the settings.
    """
    switches, sampling, safe_index = head
    limits, offset = (constraints.size - 3) // 3, constraints.size + safe.size + declared.size
    integers, numbers = [limits, len(blocks), switches, safe.size, sampling, safe_index], [constraints, safe, declared]
    for block in blocks:
        integers += [*block.integers, offset]
        numbers.append(block.floats)
        offset += block.floats.size
    return np.array(integers, dtype=np.int64), np.concatenate([*numbers, np.array(last, dtype=np.float64)])


@cache
def get_initializer(round_spec: RoundSpec) -> Any:
    """Return the function that initialises a memory; it runs once, so it is not compiled."""
    return as_python(build_memory_kernels(*round_spec.models).start)


class RoundResources(NamedTuple):
    """The kernels of rounds and the sizes of their arrays."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    answer: int
    scratch: int
    work: int


@cache
def get_round_resources(
    round_spec: RoundSpec, limits: int, block_count: int, dimension: int, count: int, coordinates: int
) -> RoundResources:
    """Return the kernels and array sizes of rounds with this spec and these sizes."""
    played, sizes = build_round(with_sizes(round_spec, limits, block_count)), (limits, count, coordinates)
    return RoundResources(
        played.decide,
        played.learn,
        ANSWER_SIZE(limits, dimension),
        SCRATCH_SIZE(*sizes, False),
        WORK_SIZE(*sizes, True),
    )


def with_sizes(round_spec: RoundSpec, limits: int, block_count: int) -> RoundSpec:
    """Return the spec of a round with this number of limits and models."""
    return round_spec._replace(
        several=int(round_spec.mixes and limits > 1), single=int(limits == 1), block_count=block_count
    )


def fits_layout(memory: Floats, layout: Ints, most_capacity: int) -> bool:
    """Return whether a memory can belong to a policy with this layout, by its header."""
    if memory.ndim != 1 or memory.size < FIRST_OFFSET + layout[MODEL_BLOCKS]:
        return False
    cached, capacity = memory[CACHED], memory[CAPACITY]
    if not (CACHE_DISABLED <= cached <= memory.size and 0 <= capacity <= most_capacity):  # false for NaN too
        return False
    if cached != int(cached) or capacity != int(capacity):
        return False
    if memory.size != MEMORY_SIZE(layout, int(cached), int(capacity)):
        return False
    return bool(IS_HEADER_VALID(layout, memory))
