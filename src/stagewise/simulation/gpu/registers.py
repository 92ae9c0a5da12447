"""Compile the unrolled loops: which problems they support, and the arguments that they are called with."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine import random as normal
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import (
    CERTIFIED,
    DIRECTIONAL,
    ENFORCES_LIMITS,
    INFLATED,
    LIMITS,
    MODEL_BLOCKS,
    OFFERS_SAFE,
    SAFE_INDEX,
    SUB_GAUSSIAN,
    get_largest_reward,
    get_max_regret_ratio,
    get_model_block,
    get_posterior_scale,
)
from stagewise.engine.pair import safe_share, tie_floor
from stagewise.engine.random import uniform, uniform_pair
from stagewise.engine.workspace import (
    CENTRE,
    HALF,
    compute_bonus_factors,
    get_ceiling,
    get_limit,
    has_switch,
    safe_step,
)
from stagewise.engine.world_draws import noisy
from stagewise.models.arms import ARMS, fill_arm_bounds, get_arms_assumptions, is_ranged, unit_radius
from stagewise.models.per_candidate import PER_CANDIDATE_RIDGE, compute_half_width, get_candidate_sets, get_edges
from stagewise.models.regression import (
    compute_cached_ridge_bounds,
    fill_coordinates,
    get_coordinate_frame,
    get_ridge_assumptions,
    radius,
)
from stagewise.models.ridge import RIDGE
from stagewise.reports.guarantee import check_assumptions
from stagewise.rules.certified import CERTIFIED_RAY
from stagewise.rules.mixture import MIXTURE
from stagewise.rules.ray import RAY
from stagewise.simulation.compiled_run import LoopInputs
from stagewise.simulation.gpu import unrolled as unrolled_arms
from stagewise.simulation.gpu import unrolled as unrolled_rays
from stagewise.simulation.gpu import unrolled_certified
from stagewise.simulation.gpu.unrolled import RECORD_INDICES
from stagewise.simulation.oracle import Oracle

SUPPORTED_SWITCHES = (
    DIRECTIONAL | INFLATED | OFFERS_SAFE | ENFORCES_LIMITS | CERTIFIED
)  # switches that the loops support
MAX_RAYS = 12  # with more, a run does not fit into a thread's 255 registers
MAX_ARMS = 16
RAY_REGISTERS: int | None = None  # no limit for rays
ARM_REGISTERS = 128  # for arms: twice the warps, at the price of a few spilled numbers (benchmarks/README.md)
TABLES = (  # of the normal quantiles; an argument is faster to read than a constant in the code
    (normal.CENTRE_NUMERATOR, normal.CENTRE_DENOMINATOR),
    (normal.TAIL_NUMERATOR, normal.TAIL_DENOMINATOR),
    (normal.FAR_NUMERATOR, normal.FAR_DENOMINATOR),
)
GET_MODEL_BLOCK, HAS_SWITCH, COMPUTE_BONUS_FACTORS = (
    as_python(get_model_block),
    as_python(has_switch),
    as_python(compute_bonus_factors),
)
GET_LIMIT, GET_CEILING = as_python(get_limit), as_python(get_ceiling)
COMPUTE_CACHED_BOUNDS, FILL_COORDINATES, GET_RIDGE_ASSUMPTIONS, GET_FRAME = (
    as_python(compute_cached_ridge_bounds),
    as_python(fill_coordinates),
    as_python(get_ridge_assumptions),
    as_python(get_coordinate_frame),
)
GET_EDGES, GET_SETS = as_python(get_edges), as_python(get_candidate_sets)
GET_POSTERIOR_SCALE, GET_MAX_REGRET_RATIO, GET_LARGEST_REWARD = (
    as_python(get_posterior_scale),
    as_python(get_max_regret_ratio),
    as_python(get_largest_reward),
)
FILL_ARM_BOUNDS, GET_ARMS_ASSUMPTIONS = as_python(fill_arm_bounds), as_python(get_arms_assumptions)


class Call(NamedTuple):
    """A compiled loop and its arguments, before those of a batch."""

    play: Any
    arguments: tuple[Any, ...]


def build_call(policy: Any, oracle: Oracle, inputs: LoopInputs) -> Call | None:
    """Return the unrolled loop that plays this policy in this world, or None.

    These loops do not test assumptions, so they play only in worlds where all of them are true. They support fixed
    actions, all eligible, and one model that knows the values at the safe action.
    """
    layout, world, limits = inputs.layout, inputs.world, inputs.world.thresholds.size
    if getattr(policy, "check_assumptions", False) and not all(
        row["kept"] for row in check_assumptions(policy, oracle.world)
    ):
        return None
    if (
        inputs.loop.fresh
        or inputs.eligible.size
        or int(layout[MODEL_BLOCKS]) != 1
        or limits not in (0, world.noise.size - 1)
    ):
        return None
    if (
        not view_block(inputs).anchored
        or not HAS_SWITCH(layout, ENFORCES_LIMITS)
        or HAS_SWITCH(layout, ~SUPPORTED_SWITCHES)
    ):
        return None
    spec = inputs.round_spec
    if spec.models == (RIDGE,) and spec.rule == RAY and not inputs.loop.blended:
        return build_rays_call(policy, inputs)
    if spec.models == (PER_CANDIDATE_RIDGE,) and spec.rule == CERTIFIED_RAY:
        return build_certified_call(inputs)
    return build_arms_call(policy, inputs) if spec.models == (ARMS,) and spec.rule == MIXTURE else None


def view_block(inputs: LoopInputs) -> Any:
    return as_python(inputs.round_spec.models[0].view)(inputs.layout, inputs.memory, 0)


def build_rays_call(policy: Any, inputs: LoopInputs) -> Call | None:
    """Return the loop over a few fixed rays, whose estimates without data are the known values; None if unsupported."""
    layout, settings, block = inputs.layout, inputs.settings, view_block(inputs)
    count, costs = len(inputs.features), int(layout[LIMITS])
    if count > MAX_RAYS or costs > 2:
        return None
    bounds, work = np.zeros((1 + costs, 3, count + 1)), np.empty(2 * block.width)
    COMPUTE_CACHED_BOUNDS(block, settings, inputs.memory, bounds, work)
    limits = get_limit_scalars(inputs, bounds)
    if limits is None:
        return None
    declared, coordinates = GET_RIDGE_ASSUMPTIONS(block, settings), np.empty((count, block.size))
    for ray in range(count):
        FILL_COORDINATES(block, settings, inputs.features[ray], coordinates[ray])
    each = np.column_stack([declared.noise, declared.bound, declared.confidence, declared.known])
    ridge = GET_FRAME(block, settings).ridge
    rest = (getattr(policy, "cost_confidence_scale", 1.0), ridge, policy.action_bound**2)
    scalars = [float(value) for value in (*each.flat, *np.ravel(limits), *rest)]
    form = unrolled_rays.RaysForm(
        count, costs, inputs.world.noise.size, not block.reflected, HAS_SWITCH(layout, DIRECTIONAL),
        HAS_SWITCH(layout, OFFERS_SAFE), int(block.radius), int(block.size), inputs.world.outcomes,
        inputs.world.thresholds.size > 0, bool(inputs.loop.audited),
    )  # fmt: skip
    known = np.ascontiguousarray(bounds[:, CENTRE, :count])
    tables = (coordinates @ coordinates.T / ridge, known, get_true_means(inputs))
    return Call(
        compile_loop(unrolled_rays.write_rays_source, form, RAY_REGISTERS),
        (*tables, *scalars, *get_world_scalars(inputs), TABLES),
    )


def build_certified_call(inputs: LoopInputs) -> Call | None:
    """Return the loop of CAPS over a few fixed rays, whose sets of their own are of noise; None if unsupported."""
    layout, settings, block = inputs.layout, inputs.settings, view_block(inputs)
    count, costs, size = len(inputs.features), int(layout[LIMITS]), int(block.size)
    if count > MAX_RAYS or size > MAX_RAYS or not 1 <= costs <= 2 or block.per_candidate != SUB_GAUSSIAN:
        return None
    declared, edges, sets = GET_RIDGE_ASSUMPTIONS(block, settings), GET_EDGES(block, settings), GET_SETS(block)
    bounds, coordinates = np.zeros((1 + costs, 3, count + 1)), np.empty((count, size))
    bounds[:, CENTRE, -1] = declared.known
    limits = get_limit_scalars(inputs, bounds)
    if limits is None:
        return None
    for ray in range(count):
        FILL_COORDINATES(block, settings, inputs.features[ray], coordinates[ray])
    log_count, frame = 2.0 * math.log(count), GET_FRAME(block, settings)
    posterior = GET_POSTERIOR_SCALE(settings) * declared.noise
    each = [*declared, posterior, edges.low + log_count, edges.high + log_count]
    rest = (GET_LARGEST_REWARD(settings), GET_MAX_REGRET_RATIO(settings), frame.ridge, frame.action_bound**2)
    scalars = [float(value) for value in (*np.column_stack(each).flat, *np.ravel([row[:2] for row in limits]), *rest)]
    rows, lows, highs = block.rows[size:], *(ends.reshape(-1, block.width) for ends in (sets.lows, sets.highs))
    initial = [rows[1 + costs], *(row for k in range(1 + costs) for row in (rows[k], lows[k], highs[k]))]
    form = unrolled_certified.CertifiedForm(
        count, costs, inputs.world.noise.size, int(block.radius), size, inputs.world.outcomes,
        inputs.world.thresholds.size > 0, bool(inputs.loop.audited),
    )  # fmt: skip
    tables = (
        np.ascontiguousarray(np.array(initial)[:, :count]),
        coordinates,
        tuple(map(float, coordinates.flat)),
        get_true_means(inputs),
    )
    return Call(
        compile_loop(unrolled_certified.write_source, form, RAY_REGISTERS),
        (*tables, *scalars, *get_world_scalars(inputs), TABLES),
    )


def get_limit_scalars(inputs: LoopInputs, bounds: Floats) -> list[tuple[float, float, float]] | None:
    """Return slack, ceiling and bonus factor of every limit; None: there is no slack."""
    layout, settings, costs, factors = inputs.layout, inputs.settings, bounds[1:, CENTRE, -1], np.empty(len(bounds) - 1)
    if not COMPUTE_BONUS_FACTORS(layout, settings, bounds, factors):
        return None
    ceilings = [GET_CEILING(layout, settings, j) for j in range(factors.size)]
    slacks = [GET_LIMIT(layout, settings, j) - min(costs[j], ceilings[j]) for j in range(factors.size)]
    return list(zip(slacks, ceilings, factors, strict=True))


def get_true_means(inputs: LoopInputs) -> Floats:
    """Return the true means (1 + m, K) of the listed actions, in the world's own signs."""
    return np.ascontiguousarray(inputs.world.truths[:, :-1] * inputs.world.signs[:, None])


def get_world_scalars(inputs: LoopInputs) -> list[float]:
    """Return the values of `unrolled.list_world_names`."""
    world = inputs.world
    each = np.column_stack([world.noise, world.signs, world.truths[:, -1]])
    limits = world.thresholds if world.thresholds.size else np.full(world.noise.size - 1, math.inf)
    return [float(value) for value in (*each.flat, *limits, world.best)]


def build_arms_call(policy: Any, inputs: LoopInputs) -> Call | None:
    """Return the loop over a few arms under one limit; None if unsupported."""
    layout, settings, block = inputs.layout, inputs.settings, view_block(inputs)
    count = len(inputs.features)
    if (
        int(layout[LIMITS]) != 1
        or is_ranged(block.radius)
        or HAS_SWITCH(layout, DIRECTIONAL)
        or not 2 <= count <= MAX_ARMS
    ):
        return None
    bounds, noise = np.zeros((2, 3, count + 1)), GET_ARMS_ASSUMPTIONS(block, settings).noise
    FILL_ARM_BOUNDS(layout, block, inputs.features, False, settings, inputs.memory, bounds, np.empty(0))
    widths, limits = bounds[:, HALF, 0] / noise, get_limit_scalars(inputs, bounds)  # of an arm without pulls
    if limits is None or not np.allclose(widths, widths[0], rtol=1e-15):
        return None
    _, ceiling, factor = limits[0]
    numbers = (*noise, policy.model.confidence, widths[0], *bounds[:, CENTRE, -1], GET_LIMIT(layout, settings, 0))
    scalars = [float(value) for value in (*numbers, ceiling, factor, policy.cost_confidence_scale)]
    form = unrolled_arms.ArmsForm(
        count, int(layout[SAFE_INDEX]), int(block.radius), inputs.world.outcomes, bool(inputs.loop.audited)
    )
    return Call(
        compile_loop(unrolled_arms.write_arms_source, form, ARM_REGISTERS),
        (get_true_means(inputs), *scalars, *get_world_scalars(inputs), TABLES),
    )


@cache
def compile_loop(write: Callable[[Any], str], round_spec: Any, registers: int | None) -> Any:
    """Return the generated loop, compiled for the GPU with a maximal number of registers per thread."""
    from numba import cuda, float64

    from stagewise.simulation.gpu import lockstep

    functions = (
        *(compute_half_width, uniform, uniform_pair, noisy, radius, safe_share, safe_step, tie_floor, unit_radius),
        *(lockstep.larger, lockstep.lesser, lockstep.normals, lockstep.ratio, lockstep.root),
        *(lockstep.fill_normals, lockstep.inverse_root),
    )
    names = {
        "cuda": cuda,
        "math": math,
        "float64": float64,
        **RECORD_INDICES,
        **{function.__name__: function for function in functions},
    }
    exec(compile(write(round_spec), "<unrolled>", "exec"), names)
    return cuda.jit(names["play"], max_registers=registers)
