"""What a kernel policy remembers: one flat array that grows with the points that were new."""

import numpy as np

from stagewise.kernels import kernel_memory, kernel_mind, linear
from stagewise.kernels.compile import Floats, Ints

FIRST_ROOM = 8


def started(flags: Ints, numbers: Floats, room: int) -> Floats:
    """Return the memory of a policy that has seen nothing, with room for so many basis points."""
    memory = np.empty(kernel_mind.memory_size(flags, room, 0))
    kernel_memory.start_memory(flags, numbers, room, memory, np.empty(0))
    return memory


def roomy(flags: Ints, numbers: Floats, memory: Floats, capacity: int) -> Floats:
    """Return the memory if there is room for another basis point or none is wanted; else the same with more room."""
    room = int(memory[2])
    if room == capacity or kernel_mind.fullest(flags, memory) < room:
        return memory
    more = min(room + max(room // 2, FIRST_ROOM), capacity)
    changed = np.empty(kernel_mind.memory_size(flags, more, max(int(memory[1]), 0)))
    kernel_memory.enlarge(flags, numbers, memory, more, changed)
    return changed


def following(offered: Floats, flags: Ints, numbers: Floats, memory: Floats) -> Floats:
    """Return the memory after candidates were offered: following them if they are the first, or none from now on."""
    count, room = max(int(memory[1]), 0), int(memory[2])
    table = memory[memory.size - (count + 1) * offered.shape[1] :].reshape(count + 1, -1)
    if memory[1] == linear.NEVER or np.array_equal(offered, table[:count]):
        return memory
    chosen = offered if count == 0 else offered[:0]
    changed = np.empty(kernel_mind.memory_size(flags, room, len(chosen)))
    kernel_memory.change_followed(chosen, flags, numbers, memory, changed, np.empty(2 * room))
    return changed


def fitting_memory(memory: Floats, flags: Ints, capacity: int) -> bool:
    """Say whether a memory can belong to a policy with these settings."""
    if memory.ndim != 1 or memory.size < kernel_mind.HEAD or memory[0] != flags[0]:
        return False
    if not (linear.NEVER <= memory[1] <= memory.size and 1 <= memory[2] <= capacity):  # false for NaN too
        return False
    count, room = int(memory[1]), int(memory[2])
    if count != memory[1] or room != memory[2]:
        return False
    if memory.size != kernel_mind.memory_size(flags, room, max(count, 0)):
        return False
    spaces = np.array([kernel_mind.HEAD, kernel_mind.costs_start(flags, memory)])
    sizes, neglected = memory[spaces], memory[spaces + 1]
    return bool(np.all((sizes % 1.0 == 0.0) & (sizes >= 0.0) & (sizes <= room) & (neglected >= 0.0)))
