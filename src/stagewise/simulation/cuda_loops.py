"""The compiled loops as a GPU's kernels: one run a thread, compiled for one size of problem.

What a run owns lies in the thread's own memory; what all runs share (settings, actions, truth) lies in the device's.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.audit import audit_size
from stagewise.kernels.trace import Trace
from stagewise.kernels.world import Truth
from stagewise.problem.errors import InvalidProblem
from stagewise.simulation.arms_loop import Bandit, arms_loop
from stagewise.simulation.compiled import count_of, filled, room_for
from stagewise.simulation.judge import Judge
from stagewise.simulation.mixtures_loop import mixtures_loop
from stagewise.simulation.rays_loop import rays_loop
from stagewise.simulation.stage import Player, Room, Stage

OWN = 48_000  # numbers of its own that a thread may hold
ON_RAYS, MIXED = 64, 128  # registers a thread: with fewer, more warps wait for memory (benchmarks/README.md)
INSTEAD = "backend='cpu' plays the same runs"


class Sizes(NamedTuple):
    """What a kernel is compiled for."""

    memory: int
    sheet: int
    work: int
    flat: int
    support: int
    means: int  # 1 + m
    limits: int
    actions: int
    dimension: int
    masked: int  # how long the mask of what is on offer is; 0: all are


def check(sizes: Sizes) -> Sizes:
    """Refuse a problem whose runs do not fit into a thread's own memory."""
    needed = sizes.memory + sizes.sheet + sizes.work + 2 * sizes.flat + sizes.actions * sizes.dimension
    if needed > OWN:
        raise InvalidProblem(
            f"a run of this problem keeps {needed:,} numbers; a thread of backend='cuda' has room for {OWN:,}; "
            f"{INSTEAD}"
        )
    return sizes


def padded(values: Any) -> Any:
    """Return an array with at least one entry, since a device array cannot be empty."""
    return np.zeros(1, dtype=values.dtype) if values.size == 0 else np.ascontiguousarray(values)


def room_maker(sizes: Sizes) -> Any:
    """Return what gives a thread its work space, written into the kernel that asks for it."""
    from numba import cuda, float64, int64

    _, sheet, work, flat, support, signals, _, _, _, masked = sizes

    @cuda.jit(device=True, inline="always")
    def room_with(truths, eligible):
        return Room(
            cuda.local.array(sheet, float64),
            cuda.local.array(work, float64),
            cuda.local.array(flat, float64),
            cuda.local.array(support, int64),
            cuda.local.array(flat, float64),
            cuda.local.array(support, int64),
            cuda.local.array(signals, float64),
            cuda.local.array(signals, float64),
            eligible[:masked],
            truths,
        )

    return room_with


def sizes_on_stage(player: Player, stage: Stage, judge: Judge) -> Sizes:
    """Return what a linear problem is compiled for."""
    room = room_for(judge, count_of(judge.world), int(player.flags[1]))
    sizes = (player.memory.size, room.sheet.size, room.work.size, room.flat.size, room.support.size)
    return Sizes(*sizes, room.means.size, stage.thresholds.size, *stage.features.shape, room.eligible.size)


def shared_on_stage(player: Player, stage: Stage, judge: Judge) -> tuple[Any, ...]:
    """Return what all runs of a linear problem share, in the order of the kernel's arguments."""
    truth = stage.truth
    told = (player.flags, player.numbers, player.memory, player.inflation)
    known = (truth.parameters, truth.noise, truth.kind, stage.safe, judge.signs, stage.signed, stage.safe_means)
    room = filled(room_for(judge, count_of(judge.world), 0), judge)
    offered = (room.truths, padded(room.eligible))
    return (*told, stage.features, *known, padded(stage.thresholds), stage.best, judge.mixes, *offered)


@cache
def stage_kernel(sizes: Sizes, mixes: bool, sampled: bool, fresh: bool, audited: bool) -> Any:
    """Return the kernel for linear problems of one size."""
    from numba import cuda, float64

    loop = mixtures_loop(fresh, audited) if mixes else rays_loop(sampled, fresh, audited)
    own, signals, limits, count, dimension = sizes.memory, sizes.means, sizes.limits, sizes.actions, sizes.dimension
    room_with, watched = room_maker(sizes), audit_size(sizes.means - 1) if audited else 0
    listed_own, true_own = (count, dimension) if fresh else (1, 1), (signals, count) if fresh and audited else (1, 1)

    @cuda.jit(max_registers=MIXED if mixes else ON_RAYS)
    def kernel(
        flags, numbers, memory, inflation, features, parameters, noise, kind, safe, signs, signed, safe_means,
        thresholds, best, mixed, truths, eligible, ends, runs, seed, rounds,
        regret, reward, cost, bests, largest, running, audit,
    ):  # fmt: skip
        place = cuda.grid(1)
        if place < runs.size:
            mine = cuda.local.array(own, float64)
            for i in range(own):
                mine[i] = memory[i]
            table, true_table = cuda.local.array(listed_own, float64), cuda.local.array(true_own, float64)
            room = room_with(true_table if fresh else truths, eligible)
            truth = Truth(parameters, noise, kind)
            listed = table if fresh else features
            stage = Stage(listed, fresh, truth, safe, signs, signed, safe_means, thresholds[:limits], best)
            player = Player(sampled, flags, numbers, mine, inflation)
            trace = Trace(
                ends, regret[place], reward[place], cost[place, :, : signals - 1], bests[place],
                largest[place, : signals - 1], running[place], audit[place, :watched],
            )  # fmt: skip
            loop(player, stage, room, trace, mixed, seed, runs[place], 0, rounds)

    return kernel


def sizes_for_arms(bandit: Bandit, judge: Judge) -> Sizes:
    """Return what a problem with arms is compiled for."""
    room = room_for(judge, bandit.means.shape[1], 0)
    return Sizes(
        bandit.memory.size, 1, room.work.size, room.flat.size, room.support.size, len(bandit.means),
        bandit.thresholds.size, 0, 0, room.eligible.size,
    )  # fmt: skip


def shared_by_arms(bandit: Bandit, judge: Judge) -> tuple[Any, ...]:
    """Return what all runs with arms share, in the order of the kernel's arguments."""
    told, signs = (bandit.flags, bandit.numbers, bandit.memory), np.ones(len(bandit.means))
    signs[: bandit.signs.size] = bandit.signs
    known = (bandit.means, bandit.noise, bandit.outcomes, signs, padded(bandit.thresholds), bandit.safe)
    room = filled(room_for(judge, bandit.means.shape[1], 0), judge)
    return (*told, *known, bandit.safe_reward, bandit.best, room.truths, padded(room.eligible))


@cache
def arms_kernel(sizes: Sizes, constrained: bool, audited: bool) -> Any:
    """Return the kernel for arms, of one number."""
    from numba import cuda, float64

    loop, own, signals, limits = arms_loop(audited), sizes.memory, sizes.means, sizes.limits
    room_with, watched = room_maker(sizes), audit_size(sizes.means - 1) if audited else 0

    @cuda.jit(max_registers=MIXED)
    def kernel(
        flags, numbers, memory, means, noise, outcomes, signs, thresholds, safe, safe_reward, best, truths, eligible,
        ends, runs, seed, rounds, regret, reward, cost, bests, largest, running, audit,
    ):  # fmt: skip
        place = cuda.grid(1)
        if place < runs.size:
            mine = cuda.local.array(own, float64)
            for i in range(own):
                mine[i] = memory[i]
            room, limited = room_with(truths, eligible), thresholds[:limits]
            bandit = Bandit(
                constrained, flags, numbers, mine, means, noise, outcomes, signs, limited, safe, safe_reward, best
            )
            trace = Trace(
                ends, regret[place], reward[place], cost[place, :, : signals - 1], bests[place],
                largest[place, : signals - 1], running[place], audit[place, :watched],
            )  # fmt: skip
            loop(bandit, room, trace, room.true_flat, seed, runs[place], 0, rounds)

    return kernel
