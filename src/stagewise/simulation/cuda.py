"""A hundred thousand runs at once: the loops of cpu.py on a GPU, one run a thread, compiled for one size of problem.

What a run owns lies in the thread's own memory; what all runs share (settings, actions, truth) lies in the device's.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.audit import MISSED, UNKNOWN, audit_size
from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.trace import Trace
from stagewise.kernels.world import Truth
from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.doslb import DOSLB
from stagewise.policies.oplb import OPLB
from stagewise.problem.errors import InvalidProblem
from stagewise.simulation import cpu
from stagewise.simulation.compiled import bandit_for, count_of, player_for, plays, room_for, stage_for
from stagewise.simulation.judge import Judge
from stagewise.simulation.recording import recorded
from stagewise.simulation.registers import MOST_ARMS, MOST_RAYS, call_for
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.table import TableWorld

THREADS = 256  # a block
OWN = 48_000  # numbers of its own that a thread may hold
KEPT = 2**27  # numbers of all traces of a batch: a gigabyte
INSTEAD = "backend='cpu' plays the same runs"


class Traces(NamedTuple):
    """What is kept of many runs: the arrays of `Trace` with a first axis more."""

    regret: Floats  # (runs, R)
    reward: Floats
    cost: Floats  # (runs, R, m)
    best: Floats
    largest: Floats  # (runs, m)
    running: Floats  # (runs, 5 + m)
    audit: Ints  # (runs, 4 + m) see kernels/audit.py; written where it was asked for


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


def driver() -> Any:
    """Return numba's CUDA target, or say why there is none."""
    try:
        from numba import cuda
    except ImportError:
        raise InvalidProblem(f"backend is 'cuda' and numba-cuda is missing (stagewise[cuda]); {INSTEAD}") from None
    if not cuda.is_available():
        raise InvalidProblem(f"backend is 'cuda', and this machine has no CUDA device that works; {INSTEAD}")
    return cuda


def play(policy: Any, judge: Judge, rounds: int, points: int, seed: int, runs: Ints, audited: bool = False) -> Traces:
    """Play these runs, all of their rounds, in as many batches as their traces need room for."""
    cuda = driver()
    if type(policy) is AlwaysSafe or isinstance(judge.world, TableWorld) or not plays(policy, judge.world):
        name = f"{type(policy).__name__} in a {type(judge.world).__name__} like this"
        raise InvalidProblem(f"backend is 'cuda', which cannot play {name}; {INSTEAD}, or backend='python'")
    launch = launcher(policy, judge, audited)
    ends, m = recorded(rounds, points), judge.world.costs
    batch = max(THREADS, KEPT // (ends.size * (3 + m)))
    parts = []
    for first in range(0, runs.size, batch):
        chosen = runs[first : first + batch]
        traces = empty(chosen.size, ends.size, m)
        device = [cuda.to_device(array) for array in traces]
        launch(cuda.to_device(ends), cuda.to_device(chosen), np.int64(seed), np.int64(rounds), *device)
        parts.append(Traces(*(array.copy_to_host() for array in device)))
    whole = Traces(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    whole.audit[:, MISSED + 1 + policy.thresholds.values.size :] = UNKNOWN
    return whole


def empty(count: int, points: int, m: int) -> Traces:
    """Return the records of runs that have not begun; a world without costs keeps one column that nothing writes to."""
    room = max(m, 1)
    return Traces(
        np.zeros((count, points)),
        np.zeros((count, points)),
        np.zeros((count, points, room)),
        np.zeros((count, points)),
        np.full((count, room), -np.inf),
        np.zeros((count, 5 + m)),
        np.zeros((count, audit_size(m)), dtype=np.int64),
    )


def launcher(policy: Any, judge: Judge, audited: bool) -> Callable[..., None]:
    """Return how a batch is started: ends, run numbers, seed, rounds, traces."""
    cuda, world, fast = driver(), judge.world, call_for(policy, judge, audited)
    shared: tuple[Any, ...]
    if fast is not None:
        kernel, shared = fast
    elif audited:
        raise InvalidProblem(
            f"backend is 'cuda', which audits LC-LUCB, ROFUL and LinUCB on {MOST_RAYS} fixed rays at most, and OPB "
            f"over {MOST_ARMS} arms at most under one limit, all from a known safe action; {INSTEAD}"
        )
    elif isinstance(world, ArmsWorld):
        bandit = bandit_for(policy, judge, world)
        shared, sizes = shared_by_arms(bandit), sizes_for_arms(bandit, judge)
        kernel = arms_kernel(check(sizes), bandit.constrained)
    else:
        assert isinstance(world, LinearWorld)  # `plays` knows no others
        stage, player = stage_for(judge, world), player_for(policy, world)
        mixes = type(policy) is OPLB or (type(policy) is DOSLB and judge.mixes)
        shared, sizes = shared_on_stage(player, stage, judge), sizes_on_stage(player, stage, judge)
        kernel = stage_kernel(check(sizes), mixes, player.sampled, stage.fresh)
    arguments = tuple(cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in shared)

    def launch(ends: Any, runs: Any, seed: Any, rounds: Any, *traces: Any) -> None:
        kernel[(runs.size + THREADS - 1) // THREADS, THREADS](*arguments, ends, runs, seed, rounds, *traces)

    return launch


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
    return np.zeros(1) if values.size == 0 else np.ascontiguousarray(values)


def sizes_on_stage(player: cpu.Player, stage: cpu.Stage, judge: Judge) -> Sizes:
    """Return what a linear problem is compiled for."""
    room = room_for(judge, count_of(judge.world), int(player.flags[1]))
    sizes = (player.memory.size, room.sheet.size, room.work.size, room.flat.size, room.support.size)
    return Sizes(*sizes, room.means.size, stage.thresholds.size, *stage.features.shape)


def shared_on_stage(player: cpu.Player, stage: cpu.Stage, judge: Judge) -> tuple[Any, ...]:
    """Return what all runs of a linear problem share, in the order of the kernel's arguments."""
    truth = stage.truth
    told = (player.flags, player.numbers, player.memory, player.inflation)
    known = (truth.parameters, truth.noise, truth.kind, stage.safe, judge.signs, stage.signed, stage.safe_means)
    return (*told, stage.features, *known, padded(stage.thresholds), stage.best, judge.mixes)


@cache
def stage_kernel(sizes: Sizes, mixes: bool, sampled: bool, fresh: bool) -> Any:
    """Return the kernel for linear problems of one size."""
    from numba import boolean, cuda, float64, int64

    loop = cpu.mixtures_loop(fresh) if mixes else cpu.rays_loop(sampled, fresh)
    own, sheet, room_, flat, support, signals, limits, count, dimension = sizes

    @cuda.jit
    def kernel(
        flags, numbers, memory, inflation, features, parameters, noise, kind, safe, signs, signed, safe_means,
        thresholds, best, mixed, ends, runs, seed, rounds, regret, reward, cost, bests, largest, running, audit,
    ):  # fmt: skip
        place = cuda.grid(1)
        if place < runs.size:
            mine = cuda.local.array(own, float64)
            for i in range(own):
                mine[i] = memory[i]
            table = cuda.local.array((count, dimension) if fresh else (1, dimension), float64)
            listed = table if fresh else features
            room = cpu.Room(
                cuda.local.array(sheet, float64),
                cuda.local.array(room_, float64),
                cuda.local.array(flat, float64),
                cuda.local.array(support, int64),
                cuda.local.array(flat, float64),
                cuda.local.array(support, int64),
                cuda.local.array(signals, float64),
                cuda.local.array(signals, float64),
                cuda.local.array(1, boolean)[:0],
                cuda.local.array((1, 1), float64),
            )
            truth = Truth(parameters, noise, kind)
            stage = cpu.Stage(listed, fresh, truth, safe, signs, signed, safe_means, thresholds[:limits], best)
            player = cpu.Player(sampled, flags, numbers, mine, inflation)
            trace = Trace(
                ends, regret[place], reward[place], cost[place, :, : signals - 1], bests[place],
                largest[place, : signals - 1], running[place], audit[place, :0],
            )  # fmt: skip
            loop(player, stage, room, trace, mixed, seed, runs[place], 0, rounds)

    return kernel


def sizes_for_arms(bandit: cpu.Bandit, judge: Judge) -> Sizes:
    """Return what a problem with arms is compiled for."""
    room = room_for(judge, bandit.means.shape[1], 0)
    return Sizes(
        bandit.memory.size, 1, room.work.size, room.flat.size, room.support.size, len(bandit.means),
        bandit.thresholds.size, 0, 0,
    )  # fmt: skip


def shared_by_arms(bandit: cpu.Bandit) -> tuple[Any, ...]:
    """Return what all runs with arms share, in the order of the kernel's arguments."""
    told, signs = (bandit.flags, bandit.numbers, bandit.memory), np.ones(len(bandit.means))
    signs[: bandit.signs.size] = bandit.signs
    known = (bandit.means, bandit.noise, bandit.outcomes, signs, padded(bandit.thresholds), bandit.safe)
    return (*told, *known, bandit.safe_reward, bandit.best)


@cache
def arms_kernel(sizes: Sizes, constrained: bool) -> Any:
    """Return the kernel for arms, of one number."""
    from numba import boolean, cuda, float64, int64

    loop = cpu.arms_loop()
    own, _, room_, flat, support, signals, limits, _, _ = sizes

    @cuda.jit
    def kernel(
        flags, numbers, memory, means, noise, outcomes, signs, thresholds, safe, safe_reward, best,
        ends, runs, seed, rounds, regret, reward, cost, bests, largest, running, audit,
    ):  # fmt: skip
        place = cuda.grid(1)
        if place < runs.size:
            mine = cuda.local.array(own, float64)
            for i in range(own):
                mine[i] = memory[i]
            room = cpu.Room(
                cuda.local.array(1, float64),
                cuda.local.array(room_, float64),
                cuda.local.array(flat, float64),
                cuda.local.array(support, int64),
                cuda.local.array(flat, float64),
                cuda.local.array(support, int64),
                cuda.local.array(signals, float64),
                cuda.local.array(signals, float64),
                cuda.local.array(1, boolean)[:0],
                cuda.local.array((1, 1), float64),
            )
            bandit = cpu.Bandit(
                constrained,
                flags,
                numbers,
                mine,
                means,
                noise,
                outcomes,
                signs,
                thresholds[:limits],
                safe,
                safe_reward,
                best,
            )
            trace = Trace(
                ends, regret[place], reward[place], cost[place, :, : signals - 1], bests[place],
                largest[place, : signals - 1], running[place], audit[place, :0],
            )  # fmt: skip
            loop(bandit, room, trace, room.true_flat, seed, runs[place], 0, rounds)

    return kernel
