"""Settings and memory as the arrays that kernels read: put together, how long they are, whether they fit."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.files.machine import GIB, memory
from stagewise.kernels.answer import answer_size
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import CAPACITY, FIRST_PLACE, FOLLOWED, NEVER, PARTS, is_set_out, memory_size
from stagewise.kernels.loop.memory import memory_kernels_for
from stagewise.kernels.loop.round import Form, round_for, scratch_size, work_size
from stagewise.models.part import Modelled
from stagewise.problem.errors import InvalidProblem

LARGE = 2**24  # numbers: fewer fit into any machine
NOTHING: Floats = np.empty(0)
MEMORY_SIZE, IS_SET_OUT = named(memory_size), named(is_set_out)
ANSWER_SIZE, SCRATCH_SIZE, WORK_SIZE = named(answer_size), named(scratch_size), named(work_size)


def aligned(size: int) -> Floats:
    """Return zeros that begin at a multiple of 64 bytes: rounds on rows that do not take a third longer."""
    if size > LARGE and 8 * size > memory():
        raise InvalidProblem(
            f"what is learned of so many features or actions would need some {8 * size / GIB:,.0f} GiB, and this "
            f"machine has {memory() / GIB:,.0f}; a regression of d features keeps d² numbers, so use fewer"
        )
    buffer = np.empty(size + 8)
    buffer[:] = 0.0
    first = -buffer.ctypes.data % 64 // 8
    return buffer[first : first + size]


def assembled(
    head: Sequence[int],
    promise: Floats,
    safe: Floats,
    parts: Sequence[Modelled],
    declared: Floats = NOTHING,
    last: Sequence[float] = (),
) -> tuple[Ints, Floats]:
    """Return the layout and the settings of a policy: `head` is switches, sampling and home (see `kernels.layout`).

    `declared` are r₀ and c₀ of a safe action that is another one in every round; `last` stand at the settings' end.
    """
    switches, sampling, home = head
    limits, place = (promise.size - 3) // 3, promise.size + safe.size + declared.size
    whole, numbers = [limits, len(parts), switches, safe.size, sampling, home], [promise, safe, declared]
    for part in parts:
        whole += [*part.whole, place]
        numbers.append(part.numbers)
        place += part.numbers.size
    return np.array(whole, dtype=np.int64), np.concatenate([*numbers, np.array(last, dtype=np.float64)])


@cache
def starting(form: Form) -> Any:
    """Return what begins a memory, as plain Python: it runs once, and need not be compiled."""
    return named(memory_kernels_for(*form.models).start)


class Needs(NamedTuple):
    """What rounds need: their kernels, and how long their arrays are."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    answer: int
    scratch: int
    work: int


@cache
def needed(form: Form, limits: int, parts: int, dimension: int, count: int, coordinates: int) -> Needs:
    """Return what rounds of this form and these sizes need."""
    played, sizes = round_for(sized(form, limits, parts)), (limits, count, coordinates)
    return Needs(
        played.decide,
        played.learn,
        ANSWER_SIZE(limits, dimension),
        SCRATCH_SIZE(*sizes, False),
        WORK_SIZE(*sizes, True),
    )


def sized(form: Form, limits: int, parts: int) -> Form:
    """Return the form of a round under so many limits, with so many models."""
    return form._replace(several=int(form.mixes and limits > 1), single=int(limits == 1), parts=parts)


def fitting_memory(memory: Floats, layout: Ints, most_capacity: int) -> bool:
    """Say whether a memory can belong to a policy with this layout: its head is as it would be written."""
    if memory.ndim != 1 or memory.size < FIRST_PLACE + layout[PARTS]:
        return False
    followed, capacity = memory[FOLLOWED], memory[CAPACITY]
    if not (NEVER <= followed <= memory.size and 0 <= capacity <= most_capacity):  # false for NaN too
        return False
    if followed != int(followed) or capacity != int(capacity):
        return False
    if memory.size != MEMORY_SIZE(layout, int(followed), int(capacity)):
        return False
    return bool(IS_SET_OUT(layout, memory))
