"""The kernel policy's border with Python: flat arrays of settings and memory, named again inside (decision 4)."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.linear import NEVER
from stagewise.kernels.newton import Basis, Space
from stagewise.kernels.promise import Promise, named_promise
from stagewise.kernels.radius import Belief
from stagewise.kernels.reproducing import Covariance, rank_of
from stagewise.kernels.ridge import Followed, Ridge, tally_size
from stagewise.kernels.shape import Shape, named_shape, together

HEAD = 3  # numbers before the spaces: d, how many candidates are followed (or NEVER), and the room for basis points
FIXED = 4  # numbers before x₀ in the settings: λ, tolerance, lengthscale, k(x₀, x₀)


class Mind(NamedTuple):
    """The policy, named. Reward and costs share a space when both are known, or both unknown, at x₀."""

    shape: Shape
    reward: Space  # of both, where they share one
    costs: Space  # the same one then
    promise: Promise
    safe: Floats  # (d,) x₀
    wanders: bool  # candidates changed once: none but the safe action are followed


@kernel
def space_size(dimension: int, signals: int, room: int, followed: int) -> int:
    """Return how many numbers a space takes; `followed` counts the safe action too."""
    own = 2 + room * (dimension + 1 + room)
    return own + room * (room + signals) + tally_size(signals) + followed * (2 * room + signals + 2)


@kernel
def memory_size(flags: Ints, room: int, followed: int) -> int:
    """Return the length of the array of memory where so many candidates are followed besides the safe action."""
    shape = named_shape(flags)
    d, m, all_ = shape.dimension, shape.constraints, followed + 1
    if together(shape):
        return HEAD + space_size(d, 1 + m, room, all_) + all_ * d
    return HEAD + space_size(d, 1, room, all_) + space_size(d, m, room, all_) + all_ * d


@kernel
def costs_start(flags: Ints, memory: Floats) -> int:
    """Return where the costs' space begins."""
    shape = named_shape(flags)
    if together(shape):
        return HEAD
    return HEAD + space_size(shape.dimension, 1, int(memory[2]), max(int(memory[1]), 0) + 1)


@kernel
def space_at(
    flags: Ints, numbers: Floats, memory: Floats, offset: int, candidates: Floats, known: bool, first: int, last: int
) -> Space:
    """Name the space of signals `first` to `last`.

    u, Σρ | points | ties | L | T | fits | tally | coordinates | Tc | estimates | forms | residuals
    """
    d, signals, k = flags[0], last - first, 1 + flags[1]
    room, count = int(memory[2]), candidates.shape[0]
    points = offset + 2
    ties = points + room * d
    newton = ties + room
    root = newton + room * room
    fits = root + room * room
    tally = fits + signals * room
    places = tally + tally_size(signals)
    columns = places + room * count
    estimates = columns + room * count
    forms = estimates + signals * count
    residuals = forms + count
    noise = FIXED + d
    bounds, confidence, values = noise + k, noise + 2 * k, noise + 3 * k
    safe_norm = numbers[3] if known else 0.0
    return Space(
        Covariance(flags[10], numbers[2], numbers[FIXED:noise], safe_norm, rank_of(flags[10], d, safe_norm)),
        numbers[1],
        Belief(
            flags[2],
            numbers[0],
            0.0,
            numbers[noise + first : noise + last],
            numbers[bounds + first : bounds + last],
            numbers[confidence + first : confidence + last],
        ),
        numbers[values + first : values + last],
        Basis(
            memory[offset:points],
            memory[points:ties].reshape(room, d),
            memory[ties:newton],
            memory[newton:root].reshape(room, room),
        ),
        Ridge(memory[root:fits].reshape(room, room), memory[fits:tally].reshape(signals, room), memory[tally:places]),
        candidates,
        memory[places:columns].reshape(room, count),
        Followed(
            memory[columns:estimates].reshape(room, count),
            memory[estimates:forms].reshape(signals, count),
            memory[forms:residuals],
        ),
        memory[residuals : residuals + count],
    )


@kernel
def named_mind(flags: Ints, numbers: Floats, memory: Floats) -> Mind:
    """Name settings and memory.

    numbers: λ, tolerance, ℓ, k(x₀, x₀) | x₀ | R | B | log 1/δ | known | the promise
    memory:  d, M, room | space | the costs' own space, where they have one | the M candidates followed, and x₀
    """
    shape = named_shape(flags)
    d, m, count = shape.dimension, shape.constraints, max(int(memory[1]), 0) + 1
    candidates = memory[memory.size - count * d :].reshape(count, d)
    last, first = (1 + m, 0) if together(shape) else (1, 1)
    return Mind(
        shape,
        space_at(flags, numbers, memory, HEAD, candidates, shape.reward_known, 0, last),
        space_at(flags, numbers, memory, costs_start(flags, memory), candidates, shape.cost_known, first, 1 + m),
        named_promise(
            numbers,
            m,
            shape.directional,
            shape.inflated,
            shape.reward_known,
            shape.cost_known,
            shape.offers_safe,
        ),
        numbers[FIXED : FIXED + d],
        memory[1] == NEVER,
    )


@kernel
def fullest(flags: Ints, memory: Floats) -> int:
    """Return the number of basis points of the larger space."""
    return int(max(memory[HEAD], memory[costs_start(flags, memory)]))
