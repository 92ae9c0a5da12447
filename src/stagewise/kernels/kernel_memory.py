"""The kernel policy's memory: begun, given more room, and following other candidates."""

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.following import copy_ridge, copy_table
from stagewise.kernels.kernel_mind import Mind, named_mind
from stagewise.kernels.linear import NEVER
from stagewise.kernels.newton import Space, follow, used
from stagewise.kernels.shape import together


@kernel
def copy_space(old: Space, new: Space) -> None:
    """Copy what was learned, into a space with as much room or more."""
    new.basis.size[0], new.basis.size[1] = old.basis.size[0], old.basis.size[1]
    copy_table(old.basis.points, new.basis.points)
    copy_table(old.basis.root, new.basis.root)
    copy_ridge(old.ridge, new.ridge)
    for i in range(old.basis.ties.size):
        new.basis.ties[i] = old.basis.ties[i]


@kernel
def copy_followed(old: Space, new: Space) -> None:
    """Copy what is kept of the same candidates."""
    copy_table(old.places, new.places)
    copy_table(old.followed.columns, new.followed.columns)
    copy_table(old.followed.estimates, new.followed.estimates)
    for candidate in range(old.residuals.size):
        new.followed.forms[candidate] = old.followed.forms[candidate]
        new.residuals[candidate] = old.residuals[candidate]


@kernel
def enlarge(flags: Ints, numbers: Floats, memory: Floats, room: int, changed: Floats) -> None:
    """Write the same memory with more room for basis points."""
    changed[:] = 0.0
    changed[0], changed[1], changed[2] = memory[0], memory[1], room
    old, new = named_mind(flags, numbers, memory), named_mind(flags, numbers, changed)
    copy_table(old.reward.candidates, new.reward.candidates)
    copy_space(old.reward, new.reward)
    copy_followed(old.reward, new.reward)
    if not together(old.shape):
        copy_space(old.costs, new.costs)
        copy_followed(old.costs, new.costs)


@kernel
def change_followed(
    features: Floats, flags: Ints, numbers: Floats, memory: Floats, changed: Floats, work: Floats
) -> None:
    """Write the same memory following these candidates (M, d) and x₀; with none, it never follows any again."""
    changed[:] = 0.0
    changed[0], changed[1], changed[2] = memory[0], features.shape[0] if features.shape[0] > 0 else NEVER, memory[2]
    old, new = named_mind(flags, numbers, memory), named_mind(flags, numbers, changed)
    copy_table(features, new.reward.candidates)
    set_out(new)
    copy_space(old.reward, new.reward)
    if not together(old.shape):
        copy_space(old.costs, new.costs)
    follow_all(new, work)


@kernel
def set_out(mind: Mind) -> None:
    """Put the safe action behind the candidates."""
    home = mind.reward.candidates[mind.reward.residuals.size - 1]
    for i in range(mind.safe.size):
        home[i] = mind.safe[i]


@kernel
def follow_all(mind: Mind, work: Floats) -> None:
    """Write what is kept of the candidates from now on; `work` is (2 room,)."""
    size = used(mind.reward)
    follow(mind.reward, work[:size], work[size : 2 * size])
    if not together(mind.shape):
        size = used(mind.costs)
        follow(mind.costs, work[:size], work[size : 2 * size])


@kernel
def start_memory(flags: Ints, numbers: Floats, room: int, memory: Floats, work: Floats) -> None:
    """Write the memory of a policy that has seen nothing: no basis, and nothing followed but the safe action."""
    memory[:] = 0.0
    memory[0], memory[2] = flags[0], room
    mind = named_mind(flags, numbers, memory)
    set_out(mind)
    follow_all(mind, work)
