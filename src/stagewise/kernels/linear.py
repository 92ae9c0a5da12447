"""The linear policies' border with Python: flat arrays of settings, memory and results, named again inside.

A NamedTuple that crosses costs as much as the arithmetic of a decision at d = 10, an array a twentieth of that; hence
flat (docs/decisions/0004-one-array-crosses-into-a-kernel.md).
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.promise import Promise, named_promise
from stagewise.kernels.radius import Belief
from stagewise.kernels.ridge import BLOCK, Anchor, Ridge, View, learn, look


class Shape(NamedTuple):
    """The whole numbers and switches of a linear policy; they cross as a plain array, which is cheaper."""

    dimension: int  # d
    constraints: int  # m
    radius: int  # MIXTURE, LOGDET or PAPER
    origin: bool  # the safe action is the zero vector, or there is none
    reward_known: bool  # at the safe action
    cost_known: bool
    directional: bool
    inflated: bool
    offers_safe: bool


@kernel
def named_shape(flags: Ints) -> Shape:
    return Shape(
        flags[0],
        flags[1],
        flags[2],
        flags[3] != 0,
        flags[4] != 0,
        flags[5] != 0,
        flags[6] != 0,
        flags[7] != 0,
        flags[8] != 0,
    )


class Terms(NamedTuple):
    """The settings, named. Reward and costs are regressed together when both are known, or both unknown, at x₀."""

    reward_anchor: Anchor  # of both, where they are regressed together
    cost_anchor: Anchor
    reward_belief: Belief
    cost_belief: Belief
    promise: Promise
    safe: Floats  # (d,) x₀
    parameter_bound: float  # S of the reward
    reach: float  # L


class Sight(NamedTuple):
    """What is believed of M candidates and of the safe action, and room for what a rule makes of it."""

    estimates: Floats  # (1 + m, M) reward, then every cost
    reward_widths: Floats  # (M,) ‖x‖ in the reward's norm
    cost_widths: Floats  # (M,)
    reward_crosses: Floats  # (M,) <x, x₀> in that norm; untouched where the safe reward is known
    cost_crosses: Floats  # (M,)
    start: Floats  # (m + 3,) at the safe action: reward, costs, reward width, cost width
    radii: Floats  # (1 + m,) of the reward and of every cost
    hoped: Floats  # (M,) by the rule: the optimistic reward,
    steps: Floats  # (M,) how far the safe step goes,
    reaches: Floats  # (M,) and the plausible one
    verdict: Floats  # (3 + m,) of the decision: step, hoped reward, pessimistic costs; last the safe action's hope
    action: Floats  # (d,) and the action played


@kernel
def together(shape: Shape) -> bool:
    """Say whether one regression serves the reward and the costs."""
    return shape.constraints == 0 or shape.reward_known == shape.cost_known


@kernel
def learned_dimension(shape: Shape, known: bool) -> int:
    """Return n: one less than d where the value at a non-zero safe action is known."""
    return shape.dimension - 1 if known and not shape.origin else shape.dimension


@kernel
def ridge_size(dimension: int, signals: int) -> int:
    return dimension * dimension + signals * dimension + 2


@kernel
def memory_size(shape: Shape) -> int:
    """Return the length of the array of memory."""
    n = learned_dimension(shape, shape.reward_known)
    if together(shape):
        return ridge_size(n, 1 + shape.constraints)
    return ridge_size(n, 1) + ridge_size(learned_dimension(shape, shape.cost_known), shape.constraints)


def sheet_size(d: int, m: int, count: int) -> int:
    """Return the length of the array of results for `count` candidates."""
    return (8 + m) * count + (m + 3) + (1 + m) + (3 + m) + d


def work_size(d: int, m: int) -> int:
    """Return the length of the scratch array."""
    return (d + 2) * BLOCK + 3 * d + m + 3


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
def named_terms(shape: Shape, numbers: Floats) -> Terms:
    """Name the settings: λ, L, S, unit | x₀ | reflector | R | S | log 1/δ | known | zeros | the promise."""
    d, m = shape.dimension, shape.constraints
    last, first = (1 + m, 0) if together(shape) else (1, 1)
    promise = named_promise(
        numbers, m, shape.directional, shape.inflated, shape.reward_known, shape.cost_known, shape.offers_safe
    )
    return Terms(
        anchor_at(shape, shape.reward_known, numbers, 0, last),
        anchor_at(shape, shape.cost_known, numbers, first, 1 + m),
        belief_of(shape, numbers, 0, last),
        belief_of(shape, numbers, first, 1 + m),
        promise,
        numbers[4 : 4 + d],
        numbers[2],
        numbers[1],
    )


@kernel
def ridge_at(memory: Floats, offset: int, dimension: int, signals: int) -> Ridge:
    fits = offset + dimension * dimension
    tally = fits + signals * dimension
    return Ridge(
        memory[offset:fits].reshape(dimension, dimension),
        memory[fits:tally].reshape(signals, dimension),
        memory[tally : tally + 2],
    )


@kernel
def reward_ridge(shape: Shape, memory: Floats) -> Ridge:
    """Return the regression that holds the reward in its first row, and the costs too where one serves both."""
    signals = 1 + shape.constraints if together(shape) else 1
    return ridge_at(memory, 0, learned_dimension(shape, shape.reward_known), signals)


@kernel
def cost_ridge(shape: Shape, memory: Floats) -> Ridge:
    """Return the regression of the costs where they have their own."""
    before = ridge_size(learned_dimension(shape, shape.reward_known), 1)
    return ridge_at(memory, before, learned_dimension(shape, shape.cost_known), shape.constraints)


@kernel
def named_sight(shape: Shape, sheet: Floats, count: int) -> Sight:
    """Name the results: estimates | widths | crosses | hoped | steps | reaches | start | radii | verdict | action."""
    m = shape.constraints
    rows = sheet[: (8 + m) * count].reshape(8 + m, count)
    widths = 1 + m
    start = rows.size
    radii = start + m + 3
    verdict = radii + 1 + m
    action = verdict + 3 + m
    return Sight(
        rows[:widths],
        rows[widths],
        rows[widths] if together(shape) else rows[widths + 1],
        rows[widths + 2],
        rows[widths + 2] if together(shape) else rows[widths + 3],
        sheet[start:radii],
        sheet[radii:verdict],
        rows[widths + 4],
        rows[widths + 5],
        rows[widths + 6],
        sheet[verdict:action],
        sheet[action : action + shape.dimension],
    )


@kernel
def start_memory(flags: Ints, numbers: Floats, memory: Floats) -> None:
    """Write the memory of a policy that has seen nothing: V = λI, no fits."""
    shape = named_shape(flags)
    memory[:] = 0.0
    ridge = reward_ridge(shape, memory)
    for i in range(ridge.root.shape[0]):
        ridge.root[i, i] = 1.0 / math.sqrt(numbers[0])
    if not together(shape):
        ridge = cost_ridge(shape, memory)
        for i in range(ridge.root.shape[0]):
            ridge.root[i, i] = 1.0 / math.sqrt(numbers[0])


@kernel
def learn_from(features: Floats, values: Floats, flags: Ints, numbers: Floats, memory: Floats, work: Floats) -> None:
    """Take in the reward and the costs (1 + m,) seen when the action (d,) was played."""
    shape = named_shape(flags)
    terms = named_terms(shape, numbers)
    if together(shape):
        learn(reward_ridge(shape, memory), terms.reward_anchor, features, values, work)
    else:
        learn(reward_ridge(shape, memory), terms.reward_anchor, features, values[:1], work)
        learn(cost_ridge(shape, memory), terms.cost_anchor, features, values[1:], work)


@kernel
def see(
    features: Floats, shape: Shape, terms: Terms, reward: Ridge, memory: Floats, sight: Sight, work: Floats
) -> None:
    """Fill in what is believed; `reward` is the reward's regression, with the costs where one serves both."""
    m = shape.constraints
    start, radii = sight.start, sight.radii
    last = 1 + m if together(shape) else 1
    view = View(sight.estimates[:last], sight.reward_widths, sight.reward_crosses, start[:last], radii[:last])
    start[1 + m] = look(features, terms.reward_anchor, reward, terms.reward_belief, view, work)
    start[2 + m] = start[1 + m]
    if not together(shape):
        view = View(sight.estimates[1:], sight.cost_widths, sight.cost_crosses, start[1 : 1 + m], radii[1:])
        costs = cost_ridge(shape, memory)
        start[2 + m] = look(features, terms.cost_anchor, costs, terms.cost_belief, view, work)
