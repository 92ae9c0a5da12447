"""Arrays of settings and memory for kernels: how they are built, their sizes, and whether a memory fits."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.round import build_round
from stagewise.engine.workspace import answer_size, scratch_size, work_size
from stagewise.files.paths import GIB, get_total_memory
from stagewise.models.model_block import ModelBlockSpec
from stagewise.problem.errors import ErrorCode, InvalidProblem

LARGE = 2**24  # numbers; fewer fit into the memory of any machine
NOTHING: Floats = np.empty(0)
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


class RoundResources(NamedTuple):
    """The kernels of rounds and the sizes of their arrays."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    answer: int
    scratch: int
    work: int


@cache
def get_round_resources(
    round_spec: RoundSpec, limits: int, dimension: int, count: int, coordinates: int
) -> RoundResources:
    """Return the kernels and array sizes of rounds with this spec and these sizes."""
    played, sizes = build_round(round_spec), (limits, count, coordinates)
    return RoundResources(
        played.decide,
        played.learn,
        ANSWER_SIZE(limits, dimension),
        SCRATCH_SIZE(*sizes, False),
        WORK_SIZE(*sizes, True),
    )


def build_round_spec(blocks: Sequence[ModelBlockSpec], rule: Rule, limits: int) -> RoundSpec:
    """Return what a round with these blocks is compiled for; more than two limits are several."""
    return RoundSpec(tuple(block.model for block in blocks), rule, min(limits, 2))
