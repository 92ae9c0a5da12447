"""The unrolled loops, compiled: which problems they are written for, and with which numbers they are called."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels import normal
from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.draw import uniform, uniform_pair
from stagewise.kernels.layout import DIRECTIONAL, HOME, INFLATED, LIMITS, OFFERS_SAFE, PARTS, RETURNS, part_of
from stagewise.kernels.loop.round import MIXTURE, RAYS, Form
from stagewise.kernels.promise import ceiling_of, has, limit_of, weigh
from stagewise.kernels.rules.pair import safe_share
from stagewise.kernels.rules.ray import safe_step
from stagewise.kernels.rules.tie import tie_floor
from stagewise.kernels.signals.arms import declared_of_arms, is_ranged, look_arms, unit_radius
from stagewise.kernels.signals.look import recall_ridge
from stagewise.kernels.signals.radius import radius
from stagewise.kernels.signals.ridge import declared_of_ridge, frame_of, place
from stagewise.kernels.world import noisy
from stagewise.reports.assumptions import assumptions
from stagewise.simulation.compiled import LoopInputs
from stagewise.simulation.gpu import unrolled_arms, unrolled_rays
from stagewise.simulation.gpu.unrolled import PLACES
from stagewise.simulation.judge import Judge

WRITTEN = DIRECTIONAL | INFLATED | OFFERS_SAFE | RETURNS  # the switches that they are written for
MOST_RAYS = 12  # beyond them the numbers of a run do not fit into a thread's 255 registers
MOST_ARMS = 16
MANY: int | None = None  # registers for rays: as many as a thread can have
FEWER = 128  # registers for arms: twice the warps, for the price of a few numbers in memory (benchmarks/README.md)
TABLES = (  # of the normal quantiles: a thread reads an argument faster than it makes a number out of its own code
    (normal.CENTRE_NUMERATOR, normal.CENTRE_DENOMINATOR),
    (normal.TAIL_NUMERATOR, normal.TAIL_DENOMINATOR),
    (normal.FAR_NUMERATOR, normal.FAR_DENOMINATOR),
)
PART_OF, HAS, WEIGH = named(part_of), named(has), named(weigh)
LIMIT_OF, CEILING_OF = named(limit_of), named(ceiling_of)
RECALL, PLACE, STATED, FRAME = named(recall_ridge), named(place), named(declared_of_ridge), named(frame_of)
LOOK_ARMS, STATED_OF_ARMS = named(look_arms), named(declared_of_arms)


class Call(NamedTuple):
    """A compiled loop and what it is called with, before what every batch brings."""

    play: Any
    arguments: tuple[Any, ...]


def call_for(policy: Any, judge: Judge, inputs: LoopInputs) -> Call | None:
    """Return the unrolled loop that plays this policy in this world, if there is one.

    These loops hold nothing that was declared against the data, so they play only in worlds where all of it is true.
    They are written for fixed actions, all on offer, and one model that knows the values at the safe action.
    """
    layout, world, limits = inputs.layout, inputs.world, inputs.world.thresholds.size
    if getattr(policy, "watch", False) and not all(row["kept"] for row in assumptions(policy, judge.world)):
        return None
    if inputs.loop.fresh or inputs.eligible.size or int(layout[PARTS]) != 1 or limits not in (0, world.noise.size - 1):
        return None
    if not PART_OF(layout, inputs.memory, 0).anchored or not HAS(layout, RETURNS) or HAS(layout, ~WRITTEN):
        return None
    form = inputs.form._replace(single=0)
    if form == Form(ridge=1, rule=RAYS) and not inputs.loop.blended:
        return rays_call(policy, inputs)
    return arms_call(policy, inputs) if form == Form(arms=1, rule=MIXTURE) else None


def rays_call(policy: Any, inputs: LoopInputs) -> Call | None:
    """Return the loop over a few fixed rays: before anything is seen, estimates are what is known of the rays."""
    layout, settings, part = inputs.layout, inputs.settings, PART_OF(inputs.layout, inputs.memory, 0)
    count, costs = len(inputs.features), int(layout[LIMITS])
    if count > MOST_RAYS or costs > 2:
        return None
    bounds, work = np.zeros((1 + costs, 3, count + 1)), np.empty(2 * part.width)
    RECALL(part, settings, inputs.memory, bounds, work)
    limits = limit_scalars(inputs, bounds)
    if limits is None:
        return None
    declared, coordinates = STATED(part, settings), np.empty((count, part.size))
    for ray in range(count):
        PLACE(part, settings, inputs.features[ray], coordinates[ray])
    each = np.column_stack([declared.noise, declared.bound, declared.confidence, declared.known])
    ridge = FRAME(part, settings).ridge
    rest = (getattr(policy, "cost_scale", 1.0), ridge, policy.action_bound**2)
    scalars = [float(value) for value in (*each.flat, *np.ravel(limits), *rest)]
    form = unrolled_rays.RaysForm(
        count, costs, inputs.world.noise.size, not part.reflected, HAS(layout, DIRECTIONAL), HAS(layout, OFFERS_SAFE),
        int(part.radius), int(part.size), inputs.world.outcomes, inputs.world.thresholds.size > 0,
        bool(inputs.loop.audited),
    )  # fmt: skip
    known = np.ascontiguousarray(bounds[:, CENTRE, :count])
    tables = (coordinates @ coordinates.T / ridge, known, truth_of(inputs))
    return Call(compiled(unrolled_rays.written, form, MANY), (*tables, *scalars, *world_scalars(inputs), TABLES))


def limit_scalars(inputs: LoopInputs, bounds: Floats) -> list[tuple[float, float, float]] | None:
    """Return slack, ceiling and factor of every limit whose safe cost is known; None: there is no slack."""
    layout, settings, costs, factors = inputs.layout, inputs.settings, bounds[1:, CENTRE, -1], np.empty(len(bounds) - 1)
    if not WEIGH(layout, settings, bounds, factors):
        return None
    ceilings = [CEILING_OF(layout, settings, j) for j in range(factors.size)]
    slacks = [LIMIT_OF(layout, settings, j) - min(costs[j], ceilings[j]) for j in range(factors.size)]
    return list(zip(slacks, ceilings, factors, strict=True))


def truth_of(inputs: LoopInputs) -> Floats:
    """Return the true means (1 + m, K) of what is listed, in the world's own direction."""
    return np.ascontiguousarray(inputs.world.truths[:, :-1] * inputs.world.signs[:, None])


def world_scalars(inputs: LoopInputs) -> list[float]:
    """Return the numbers that `unrolled.world_names` names."""
    world = inputs.world
    each = np.column_stack([world.noise, world.signs, world.truths[:, -1]])
    limits = world.thresholds if world.thresholds.size else np.full(world.noise.size - 1, math.inf)
    return [float(value) for value in (*each.flat, *limits, world.best)]


def arms_call(policy: Any, inputs: LoopInputs) -> Call | None:
    """Return the loop over a few arms under one limit, with intervals around the means."""
    layout, settings, part = inputs.layout, inputs.settings, PART_OF(inputs.layout, inputs.memory, 0)
    count = len(inputs.features)
    if int(layout[LIMITS]) != 1 or is_ranged(part.radius) or HAS(layout, DIRECTIONAL) or not 2 <= count <= MOST_ARMS:
        return None
    bounds, noise = np.zeros((2, 3, count + 1)), STATED_OF_ARMS(part, settings).noise
    LOOK_ARMS(layout, part, settings, inputs.memory, bounds)
    widths, limits = bounds[:, HALF, 0] / noise, limit_scalars(inputs, bounds)  # of an arm never pulled
    if limits is None or not np.allclose(widths, widths[0], rtol=1e-15):
        return None
    _, ceiling, factor = limits[0]
    numbers = (*noise, policy.model.confidence, widths[0], *bounds[:, CENTRE, -1], LIMIT_OF(layout, settings, 0))
    scalars = [float(value) for value in (*numbers, ceiling, factor, policy.cost_scale)]
    form = unrolled_arms.ArmsForm(
        count, int(layout[HOME]), int(part.radius), inputs.world.outcomes, bool(inputs.loop.audited)
    )
    return Call(
        compiled(unrolled_arms.written, form, FEWER), (truth_of(inputs), *scalars, *world_scalars(inputs), TABLES)
    )


@cache
def compiled(written: Callable[[Any], str], form: Any, registers: int | None) -> Any:
    """Return the loop that is written for a form, for the GPU, in as many registers a thread at most."""
    from numba import cuda

    from stagewise.simulation.gpu import lockstep

    called = (
        *(uniform, uniform_pair, noisy, radius, safe_share, safe_step, tie_floor, unit_radius),
        *(lockstep.larger, lockstep.lesser, lockstep.normals, lockstep.ratio, lockstep.root),
    )
    names = {"cuda": cuda, "math": math, **PLACES, **{function.__name__: function for function in called}}
    exec(compile(written(form), "<unrolled>", "exec"), names)
    return cuda.jit(names["play"], max_registers=registers)
