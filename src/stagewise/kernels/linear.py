"""The linear policies' border with Python: flat arrays of settings and memory, named again inside.

A NamedTuple that crosses costs as much as the arithmetic of a decision at d = 10, an array a twentieth of that; hence
flat (docs/decisions/0004-one-array-crosses-into-a-kernel.md).
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.look import BLOCK, look, recall
from stagewise.kernels.promise import Promise, named_promise
from stagewise.kernels.radius import Belief
from stagewise.kernels.ridge import AT_SAFE, ELSEWHERE, Anchor, Followed, Regression, Ridge, learn, tally_size
from stagewise.kernels.shape import Shape, named_shape, together
from stagewise.kernels.sight import NEWS, Sight
from stagewise.kernels.watch import contradiction, note_safe, same

HEAD = 2  # numbers before the regressions: d, and how many candidates are followed
NEVER = -1.0  # in the place of the latter: the candidates changed, and none are followed any more


class Mind(NamedTuple):
    """A linear policy, named. Reward and costs are regressed together when both are known, or both unknown, at x₀."""

    shape: Shape
    reward: Regression  # of both, where they are regressed together
    costs: Regression  # the same one then
    promise: Promise
    safe: Floats  # (d,) x₀
    parameter_bound: float  # S of the reward
    reach: float  # L
    followed: Floats  # (M, d) the candidates that are followed
    wanders: bool  # candidates changed once: none are followed


@kernel
def learned_dimension(shape: Shape, known: bool) -> int:
    """Return n: one less than d where the value at a non-zero safe action is known."""
    return shape.dimension - 1 if known and not shape.origin else shape.dimension


@kernel
def regression_size(dimension: int, signals: int, followed: int) -> int:
    own = dimension * dimension + signals * dimension + tally_size(signals)
    return own + followed * (dimension + signals + 1)


@kernel
def memory_size(shape: Shape, followed: int) -> int:
    """Return the length of the array of memory where so many candidates are followed."""
    n, rest = learned_dimension(shape, shape.reward_known), HEAD + followed * shape.dimension
    if together(shape):
        return regression_size(n, 1 + shape.constraints, followed) + rest
    costs = regression_size(learned_dimension(shape, shape.cost_known), shape.constraints, followed)
    return regression_size(n, 1, followed) + costs + rest


def work_size(d: int, m: int, followed: int) -> int:
    """Return the length of the scratch array."""
    return (d + 2) * BLOCK + 3 * d + m + 3 + followed


@kernel
def anchor_at(shape: Shape, known: bool, numbers: Floats, first: int, last: int) -> Anchor:
    """Return the anchor of signals `first` to `last`."""
    d, m = shape.dimension, shape.constraints
    safe, reflector, values = 4, 4 + d, 4 + 2 * d + 3 * (1 + m)
    nothing = numbers[:0]
    if not known:
        zeros = values + 1 + m
        return Anchor(nothing, 0.0, numbers[zeros + first : zeros + last], numbers[safe : safe + d])
    values_known = numbers[values + first : values + last]
    if shape.origin:
        return Anchor(nothing, 0.0, values_known, nothing)
    return Anchor(numbers[reflector : reflector + d], numbers[3], values_known, nothing)


@kernel
def belief_of(shape: Shape, numbers: Floats, first: int, last: int) -> Belief:
    """Return what is assumed of signals `first` to `last`."""
    k = 1 + shape.constraints
    noise = 4 + 2 * shape.dimension
    bound, confidence = noise + k, noise + 2 * k
    return Belief(
        shape.radius,
        numbers[0],
        numbers[1],
        numbers[noise + first : noise + last],
        numbers[bound + first : bound + last],
        numbers[confidence + first : confidence + last],
    )


@kernel
def named_promise_of(shape: Shape, numbers: Floats) -> Promise:
    """Name the end of the settings."""
    return named_promise(
        numbers,
        shape.constraints,
        shape.directional,
        shape.inflated,
        shape.reward_known,
        shape.cost_known,
        shape.offers_safe,
        shape.returns,
    )


@kernel
def regression_at(
    memory: Floats, offset: int, followed: int, dimension: int, signals: int, anchor: Anchor, belief: Belief
) -> Regression:
    """Name a regression in the memory: T | fits | tally | columns | estimates | forms."""
    fits = offset + dimension * dimension
    tally = fits + signals * dimension
    columns = tally + tally_size(signals)
    estimates = columns + dimension * followed
    forms = estimates + signals * followed
    return Regression(
        Ridge(
            memory[offset:fits].reshape(dimension, dimension),
            memory[fits:tally].reshape(signals, dimension),
            memory[tally:columns],
        ),
        Followed(
            memory[columns:estimates].reshape(dimension, followed),
            memory[estimates:forms].reshape(signals, followed),
            memory[forms : forms + followed],
        ),
        anchor,
        belief,
    )


@kernel
def named_mind(flags: Ints, numbers: Floats, memory: Floats) -> Mind:
    """Name settings and memory.

    numbers: λ, L, S, unit | x₀ | reflector | R | S | log 1/δ | known | zeros | the promise
    memory:  d, M | regression | the costs' own regression, where they have one | the M candidates that are followed
    """
    shape = named_shape(flags)
    d, m, followed = shape.dimension, shape.constraints, max(int(memory[1]), 0)
    last, first = (1 + m, 0) if together(shape) else (1, 1)
    reward = regression_at(
        memory,
        HEAD,
        followed,
        learned_dimension(shape, shape.reward_known),
        last,
        anchor_at(shape, shape.reward_known, numbers, 0, last),
        belief_of(shape, numbers, 0, last),
    )
    offset = HEAD if first == 0 else HEAD + regression_size(learned_dimension(shape, shape.reward_known), 1, followed)
    costs = regression_at(
        memory,
        offset,
        followed,
        learned_dimension(shape, shape.cost_known),
        1 + m - first,
        anchor_at(shape, shape.cost_known, numbers, first, 1 + m),
        belief_of(shape, numbers, first, 1 + m),
    )
    return Mind(
        shape,
        reward,
        costs,
        named_promise_of(shape, numbers),
        numbers[4 : 4 + d],
        numbers[2],
        numbers[1],
        memory[memory.size - followed * d :].reshape(followed, d),
        memory[1] == NEVER,
    )


@kernel
def start_memory(flags: Ints, numbers: Floats, memory: Floats) -> None:
    """Write the memory of a policy that has seen nothing: V = λI, no fits."""
    memory[:] = 0.0
    memory[0] = flags[0]
    mind = named_mind(flags, numbers, memory)
    for i in range(mind.reward.ridge.root.shape[0]):
        mind.reward.ridge.root[i, i] = 1.0 / math.sqrt(numbers[0])
    for i in range(mind.costs.ridge.root.shape[0]):
        mind.costs.ridge.root[i, i] = 1.0 / math.sqrt(numbers[0])


@kernel
def is_at(action: Floats, safe: Floats, features: Floats, ray: int, step: float) -> bool:
    """Say whether an action is, to the bit, this step on this ray."""
    same = True
    for i in range(action.size):
        same &= action[i] == (1.0 - step) * safe[i] + step * features[ray, i]
    return same


@kernel
def learn_from(
    action: Floats, ray: int, step: float, values: Floats, flags: Ints, numbers: Floats, memory: Floats, work: Floats
) -> None:
    """Take in the reward and the costs (1 + m,) seen when the action (d,) was played.

    `ray` and `step` tell where it lies on the followed rays, if it does; AT_SAFE and 0 that it is the safe action.
    """
    mind = named_mind(flags, numbers, memory)
    if ray == AT_SAFE:
        for i in range(action.size):
            if action[i] != mind.safe[i]:
                ray = ELSEWHERE
    elif ray >= mind.followed.shape[0] or (ray >= 0 and not is_at(action, mind.safe, mind.followed, ray, step)):
        ray = ELSEWHERE
    if mind.followed.shape[0] == 0:
        ray = ELSEWHERE
    study(mind, action, ray, step, False, values, work)


@kernel
def study(mind: Mind, action: Floats, ray: int, step: float, lean: bool, values: Floats, work: Floats) -> None:
    """Take in the reward and the costs (1 + m,) of an action that lies where it is said to (see `ridge.learn`)."""
    at_safe = same(action, mind.safe)
    if together(mind.shape):
        learn(mind.reward, action, ray, step, lean, values, work)
        if at_safe:
            note_safe(mind.reward.ridge.tally, values, mind.reward.anchor.known)
    else:
        learn(mind.reward, action, ray, step, lean, values[:1], work)
        learn(mind.costs, action, ray, step, lean, values[1:], work)
        if at_safe:
            note_safe(mind.costs.ridge.tally, values[1:], mind.costs.anchor.known)


@kernel
def mistold(mind: Mind) -> int:
    """Return what of a cost was declared and is contradicted, or 0."""
    return contradiction(mind.promise, mind.costs.belief, mind.costs.ridge.tally, 0.0)


@kernel
def see(features: Floats, known: bool, mind: Mind, sight: Sight, work: Floats) -> None:
    """Fill in what is believed; `known`: the candidates are those that are followed, and the sight is `remembered`."""
    m, start = mind.shape.constraints, sight.start
    sight.verdict[3 + m] = 0.0 if known or mind.wanders else NEWS
    if known:
        start[1 + m] = recall(mind.reward, sight.reward_view, work)
    else:
        start[1 + m] = look(features, mind.reward, sight.reward_view, work)
    start[2 + m] = start[1 + m]
    if not together(mind.shape):
        if known:
            start[2 + m] = recall(mind.costs, sight.cost_view, work)
        else:
            start[2 + m] = look(features, mind.costs, sight.cost_view, work)
