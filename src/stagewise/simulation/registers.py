"""The unrolled loops, compiled: which problems they are written for, and with which numbers they are called."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels import counts, linear, normal, opb
from stagewise.kernels.compile import Floats, kernel, named
from stagewise.kernels.draw import uniform, uniform_pair
from stagewise.kernels.mixture import safe_share
from stagewise.kernels.promise import Promise, factor_of
from stagewise.kernels.radius import LOGDET, MIXTURE, closed_form, log_determinant, mixture
from stagewise.kernels.ray import safe_step
from stagewise.kernels.ridge import place
from stagewise.kernels.shape import named_shape
from stagewise.kernels.tie import tie_floor
from stagewise.kernels.world import noisy
from stagewise.policies.lclucb import LCLUCB, ROFUL
from stagewise.policies.linucb import LinUCB
from stagewise.policies.opb import OPB
from stagewise.reports.assumptions import assumptions
from stagewise.simulation import unrolled_arms, unrolled_rays
from stagewise.simulation.compiled import bandit_for, eligible_in, player_for, stage_for
from stagewise.simulation.judge import Judge
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.linear import LinearWorld

MOST_RAYS = 12  # beyond them the numbers of a run do not fit into a thread's 255 registers
MOST_ARMS = 16
MANY: int | None = None  # registers for rays: as many as a thread can have
FEWER = 128  # registers for arms: twice the warps, for the price of a few numbers in memory (benchmarks/README.md)
TABLES = (  # of the normal quantiles: a thread reads an argument faster than it makes a number out of its own code
    (normal.CENTRE_NUMERATOR, normal.CENTRE_DENOMINATOR),
    (normal.TAIL_NUMERATOR, normal.TAIL_DENOMINATOR),
    (normal.FAR_NUMERATOR, normal.FAR_DENOMINATOR),
)


class Call(NamedTuple):
    """A compiled loop and what it is called with, before what every batch brings."""

    play: Any
    arguments: tuple[Any, ...]


def call_for(policy: Any, judge: Judge, audited: bool = False) -> Call | None:
    """Return the unrolled loop that plays this policy in this world, if there is one.

    These loops hold nothing that was declared against the data, so they play only in worlds where all of it is true.
    """
    world = judge.world
    if getattr(policy, "watch", False) and not all(row["kept"] for row in assumptions(policy, world)):
        return None
    if eligible_in(world).size:
        return None  # they are written for all that is listed
    if type(policy) in (LCLUCB, ROFUL, LinUCB) and isinstance(world, LinearWorld):
        return rays_call(policy, judge, world, audited)
    if type(policy) is OPB and isinstance(world, ArmsWorld):
        return arms_call(policy, judge, world, audited)
    return None


def rays_call(policy: Any, judge: Judge, world: LinearWorld, audited: bool) -> Call | None:
    """Return the loop over a few fixed rays from a safe action whose reward and costs are known."""
    stage, player = stage_for(judge, world), player_for(policy, world)
    shape = named_shape(player.flags)
    count, limits = len(stage.features), judge.limits.size
    if stage.fresh or count > MOST_RAYS or shape.constraints > 2 or not (shape.reward_known and shape.cost_known):
        return None
    if limits not in (0, world.costs) or judge.mixes:
        return None
    sizes = (count, shape.constraints, 1 + world.costs)
    switches = (shape.origin, shape.directional, shape.offers_safe)
    form = unrolled_rays.Rays(*sizes, *switches, int(stage.truth.kind), limits > 0, audited)
    mind = named(linear.named_mind)(player.flags, player.numbers, player.memory)
    coordinates, known = placed(mind, stage.features)
    gram = coordinates @ coordinates.T / mind.reward.belief.ridge
    truth = world.parameters @ stage.features.T
    scalars = (*ray_scalars(mind, form), *world_scalars(world, judge))
    dimension = mind.reward.ridge.root.shape[0]
    play = compiled_rays(form, int(shape.radius), dimension)
    return Call(play, (gram, known, truth, *scalars, TABLES))


def placed(mind: linear.Mind, features: Floats) -> tuple[Floats, Floats]:
    """Return the learned coordinates (M, n) of the rays' ends, and the part of each signal that is known (1 + m, M)."""
    anchor = mind.reward.anchor
    coordinates = np.empty((len(features), mind.reward.ridge.root.shape[0]))
    shares = np.array([place(row, anchor, coordinates[i]) for i, row in enumerate(np.ascontiguousarray(features))])
    return coordinates, np.outer(anchor.known, shares)


def ray_scalars(mind: linear.Mind, form: unrolled_rays.Rays) -> list[float]:
    """Return the numbers that `unrolled_rays.scalar_names` names."""
    belief, promise, known = mind.reward.belief, mind.promise, mind.reward.anchor.known
    each = [(belief.noise[k], belief.norm_bound[k], belief.confidence[k], known[k]) for k in range(1 + form.costs)]
    limits = [limit_scalars(promise, j, known[0], known[1 + j]) for j in range(form.costs)]
    rest = (promise.cost_scale, belief.ridge, belief.action_bound**2)
    return [float(value) for values in [*each, *limits, rest] for value in values]


def limit_scalars(promise: Promise, constraint: int, reward: float, cost: float) -> tuple[float, float, float]:
    """Return slack, ceiling and factor of one constraint whose safe cost is known."""
    slack = promise.limits[constraint] - min(cost, promise.ceilings[constraint])
    factor = factor_of(promise, 1.0 - reward, slack) if promise.inflated else 0.0
    return slack, promise.ceilings[constraint], factor


def world_scalars(world: LinearWorld | ArmsWorld, judge: Judge) -> list[float]:
    """Return the numbers that `unrolled.world_names` names."""
    each = [(world.noise[s], judge.signs[s], judge.safe_means[s]) for s in range(1 + world.costs)]
    limits = judge.limits if judge.limits.size else np.full(world.costs, math.inf)
    return [float(value) for values in [*each, limits, [judge.best(world.actions)]] for value in values]


def arms_call(policy: OPB, judge: Judge, world: ArmsWorld, audited: bool) -> Call | None:
    """Return the loop over a few arms under one limit, with a known safe arm and intervals around the means."""
    bandit = bandit_for(policy, judge, world)
    terms = named(opb.named_terms)(bandit.flags, bandit.numbers)
    promise, radius, count = terms.promise, terms.radius, world.table.shape[1]
    fits = promise.limits.size == 1 and radius.kind < counts.KL and promise.reward_known and promise.cost_known
    if not fits or promise.directional or not 2 <= count <= MOST_ARMS:
        return None
    halves = named(counts.named_tally)(radius.kind, 1, count, policy.start().memory).halves
    width = halves[0, 0] / radius.noise[0]  # of an arm never pulled, for the noisier half too
    if not np.allclose(halves / radius.noise[:, np.newaxis], width, rtol=1e-15):
        return None
    reward, cost = terms.known
    _, ceiling, factor = limit_scalars(promise, 0, reward, cost)
    told = (*radius.noise, radius.confidence, width, reward, cost, promise.limits[0], ceiling, factor)
    scalars = [float(value) for value in (*told, promise.cost_scale)] + world_scalars(world, judge)
    play = compiled_arms(unrolled_arms.Arms(count, int(terms.safe), int(bandit.outcomes), audited))
    return Call(play, (world.table.copy(), *scalars, int(radius.kind), TABLES))


def radius_for(kind: int, dimension: int) -> Callable[..., float]:
    """Return β as a function of what one signal assumes and of what was seen."""

    @kernel
    def radius(
        noise: float, bound: float, ridge: float, confidence: float, log_det: float, seen: int, length_squared: float
    ) -> float:
        if kind == MIXTURE:
            return mixture(noise, bound, ridge, confidence, log_det)
        if kind == LOGDET:
            return log_determinant(noise, bound, ridge, confidence, log_det)
        return closed_form(noise, bound, ridge, confidence, dimension, seen * length_squared)

    return radius


CALLED = (uniform, uniform_pair, noisy, safe_share, safe_step, tie_floor, counts.unit_radius)


def compiled(source: str, registers: int | None = None, **more: Any) -> Any:
    """Return the loop that a source text defines, for the GPU, in as many registers a thread at most."""
    from numba import cuda

    from stagewise.simulation import lockstep

    called = (*CALLED, lockstep.larger, lockstep.lesser, lockstep.normals, lockstep.ratio, lockstep.root)
    room = {"cuda": cuda, "math": math, **{function.__name__: function for function in called}, **more}
    exec(compile(source, "<unrolled>", "exec"), room)
    return cuda.jit(room["play"], max_registers=registers)


@cache
def compiled_rays(form: unrolled_rays.Rays, kind: int, dimension: int) -> Any:
    """Return the loop over rays of one form."""
    return compiled(unrolled_rays.written(form), registers=MANY, radius=radius_for(kind, dimension))


@cache
def compiled_arms(form: unrolled_arms.Arms) -> Any:
    """Return the loop over arms of one form."""
    return compiled(unrolled_arms.written(form), registers=FEWER)
