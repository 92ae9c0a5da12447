"""The one loop as a GPU's kernel: a run a thread, compiled for one size of problem.

What a run owns lies in the thread's own memory; what all runs share (settings, actions, truth) lies in the device's.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.audit import audit_size
from stagewise.kernels.loop.memory import copy
from stagewise.kernels.loop.play import LoopForm, World, play_for
from stagewise.kernels.loop.round import Form
from stagewise.kernels.trace import Trace
from stagewise.problem.errors import InvalidProblem
from stagewise.simulation.compiled import LoopInputs

OWN = 48_000  # numbers of its own that a thread may hold
ON_RAYS, ON_MIXTURES = 64, 128  # registers a thread: with fewer, more warps wait for memory (benchmarks/README.md)
INSTEAD = "backend='cpu' plays the same runs"


class Sizes(NamedTuple):
    """How long the arrays are that a kernel is compiled for."""

    memory: int
    answer: int
    scratch: int
    judging: int
    signals: int  # 1 + m of the world
    limits: int  # that runs are judged by
    actions: int
    features: int
    masked: int  # how long the mask of what is on offer is; 0: all are


def sizes_of(inputs: LoopInputs) -> Sizes:
    """Return the sizes of a problem, or refuse one whose runs do not fit into a thread's own memory."""
    lengths = (max(inputs.memory.size, 1), inputs.answer, inputs.scratch, inputs.judging)
    count, d = inputs.features.shape
    sizes = Sizes(
        *lengths, inputs.world.noise.size, inputs.world.thresholds.size, count, max(d, 1), inputs.eligible.size
    )
    needed = sum(lengths) + (count * d + inputs.world.truths.size if inputs.loop.fresh else 0)
    if needed > OWN:
        raise InvalidProblem(
            f"a run of this problem keeps {needed:,} numbers; a thread of backend='cuda' has room for {OWN:,}; "
            f"{INSTEAD}"
        )
    return sizes


def padded(values: Any) -> Any:
    """Return an array without an axis of length 0, since a device array cannot be empty."""
    if values.size:
        return np.ascontiguousarray(values)
    return np.zeros(tuple(max(length, 1) for length in values.shape), dtype=values.dtype)


def shared_by(inputs: LoopInputs) -> tuple[Any, ...]:
    """Return what all runs share, in the order of the kernel's arguments."""
    told = (inputs.features, inputs.eligible, inputs.layout, inputs.settings, inputs.memory, *inputs.world)
    return tuple(padded(each) if isinstance(each, np.ndarray) else each for each in told)


def most_registers(form: Form) -> int:
    """Return how many registers a thread may have."""
    return ON_MIXTURES if form.arms or form.mixes else ON_RAYS


@cache
def loop_on_device(form: Form, loop: LoopForm, sizes: Sizes) -> Any:
    """Return the loop of one form in one kind of world, for problems of one size."""
    from numba import cuda, float64, int64

    play, fresh, support = play_for(form, loop), loop.fresh, sizes.signals + 1
    own, written, work, judged, signals, limits, count, d, masked = sizes
    watched = audit_size(signals - 1) if loop.audited else 0
    listed_own, true_own = ((count, d), (signals, count + 1)) if fresh else ((1, 1), (1, 1))

    @cuda.jit(max_registers=most_registers(form))
    def kernel(
        features, eligible, layout, settings, memory, parameters, truths, noise, signs, thresholds, outcomes, best,
        safe, drawn, ends, runs, seed, rounds, regret, reward, cost, bests, largest, running, audit,
    ):  # fmt: skip
        place = cuda.grid(1)
        if place < runs.size:
            mine, answer = cuda.local.array(own, float64), cuda.local.array(written, float64)
            scratch, judging = cuda.local.array(work, float64), cuda.local.array(judged, float64)
            mixture = cuda.local.array(support, int64)
            means, values = cuda.local.array(signals, float64), cuda.local.array(signals, float64)
            listed, true = cuda.local.array(listed_own, float64), cuda.local.array(true_own, float64)
            copy(memory, 0, mine, 0, own)
            if fresh:
                for signal in range(signals):
                    true[signal, count] = truths[signal, count]
            world = World(
                parameters, true if fresh else truths, noise, signs, thresholds[:limits], outcomes, best, safe, drawn
            )  # fmt: skip
            trace = Trace(
                ends, regret[place], reward[place], cost[place, :, : signals - 1], bests[place],
                largest[place, : signals - 1], running[place], audit[place, :watched],
            )  # fmt: skip
            play(
                listed if fresh else features, eligible[:masked], layout, settings, mine, answer, scratch, judging,
                mixture, means, values, world, trace, seed, runs[place], 0, rounds,
            )  # fmt: skip

    return kernel
