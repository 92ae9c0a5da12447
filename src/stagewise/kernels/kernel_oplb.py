"""OPLB in a reproducing-kernel space: bounds for every action, then one linear program over mixtures."""

import math

from stagewise.kernels.blend import Odds, named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.following import recognised
from stagewise.kernels.kernel_look import look, look_size
from stagewise.kernels.kernel_mind import Mind, named_mind
from stagewise.kernels.newton import study
from stagewise.kernels.oplb import draw_seen
from stagewise.kernels.shape import together
from stagewise.kernels.sight import NEWS, Sight, named_sight
from stagewise.kernels.watch import contradiction, note_safe, same


def learning_size(room: int, m: int, followed: int) -> int:
    """Return the length of the scratch array of learning."""
    return 3 * room + followed + 1 + 1 + m


def work_size(room: int, m: int, followed: int) -> int:
    """Return the length of a scratch array that serves deciding and learning."""
    return look_size(room) + learning_size(room, m, followed)


@kernel
def learn_from(action: Floats, values: Floats, flags: Ints, numbers: Floats, memory: Floats, work: Floats) -> None:
    """Take in the reward and the costs (1 + m,) seen when the action (d,) was played."""
    study_all(named_mind(flags, numbers, memory), action, False, values, work)


@kernel
def study_all(mind: Mind, action: Floats, lean: bool, values: Floats, work: Floats) -> None:
    """Take in the reward and the costs (1 + m,) of an action."""
    at_safe = same(action, mind.safe)
    if together(mind.shape):
        study(mind.reward, action, lean, values, work)
        if at_safe:
            note_safe(mind.reward.ridge.tally, values, mind.reward.known)
    else:
        study(mind.reward, action, lean, values[:1], work)
        study(mind.costs, action, lean, values[1:], work)
        if at_safe:
            note_safe(mind.costs.ridge.tally, values[1:], mind.costs.known)


@kernel
def decide(
    features: Floats,
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    sheet: Floats,
    work: Floats,
    flat: Floats,
    support: Ints,
    lottery: float,
) -> int:
    """Return the action drawn, or minus the reason for the safe one; write the mixture and the action played."""
    mind = named_mind(flags, numbers, memory)
    sight = named_sight(mind.shape, sheet, features.shape[0])
    odds = named_odds(mind.shape.constraints, features.shape[0], flat, support)
    known = recognised(features, mind.reward.candidates[: mind.reward.residuals.size - 1])
    return take(features, known, eligible, mind, sight, odds, work, lottery)


@kernel
def take(
    features: Floats,
    known: bool,
    eligible: Flags,
    mind: Mind,
    sight: Sight,
    odds: Odds,
    work: Floats,
    lottery: float,
) -> int:
    """Decide; `known`: these are the followed actions."""
    see(features, known, mind, sight, work)
    return draw_seen(features, eligible, mind.promise, mind.safe, sight, odds, lottery, mistold(mind))


@kernel
def mistold(mind: Mind) -> int:
    """Return what of a cost was declared and is contradicted, or 0."""
    costs = mind.costs
    return contradiction(mind.promise, costs.belief, costs.ridge.tally, math.sqrt(costs.basis.size[1]))


@kernel
def see(features: Floats, known: bool, mind: Mind, sight: Sight, work: Floats) -> None:
    """Fill in what is believed; `known`: the actions are those that are followed."""
    m, start = mind.shape.constraints, sight.start
    sight.verdict[3 + m] = 0.0 if known or mind.wanders else NEWS
    start[1 + m] = look(features, known, mind.reward, sight.reward_view, work)
    start[2 + m] = start[1 + m]
    if not together(mind.shape):
        start[2 + m] = look(features, known, mind.costs, sight.cost_view, work)
