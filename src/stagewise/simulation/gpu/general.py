"""The simulation loop as a GPU kernel: one run per thread, compiled for one size of problem.

The arrays of a run are in the thread's local memory; shared arrays (settings, actions, truth) are in device memory.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.layout import copy_values
from stagewise.engine.loop import LoopSpec, World, build_loop
from stagewise.engine.model import RoundSpec
from stagewise.engine.trace import Trace, audit_size
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.simulation.compiled_run import LoopInputs

MAX_THREAD_NUMBERS = 48_000  # numbers in the local memory of a thread
RAY_REGISTERS, MIXTURE_REGISTERS = 64, 128  # per thread; the fastest values (benchmarks/README.md)
CPU_HINT = "backend='cpu' plays the same runs"


class Sizes(NamedTuple):
    """The array lengths that a kernel is compiled for."""

    memory: int
    answer: int
    scratch: int
    judging: int
    signals: int  # 1 + m of the world
    limits: int  # thresholds of the world
    actions: int
    features: int
    masked: int  # length of the eligibility mask; 0: all actions are eligible


def get_sizes(inputs: LoopInputs) -> Sizes:
    """Return the sizes of a problem; raise InvalidProblem if a run does not fit into a thread's local memory."""
    lengths = (max(inputs.memory.size, 1), inputs.answer, inputs.scratch, inputs.judging)
    count, d = inputs.features.shape
    sizes = Sizes(
        *lengths, inputs.world.noise.size, inputs.world.thresholds.size, count, max(d, 1), inputs.eligible.size
    )
    needed = sum(lengths) + (count * d + inputs.world.truths.size if inputs.loop.fresh else 0)
    if needed > MAX_THREAD_NUMBERS:
        template = (
            "a run of this problem needs {needed:,} numbers; a thread of backend='cuda' has room for "
            "{max_thread_numbers:,}; {cpu_hint}"
        )
        data = {"needed": needed, "max_thread_numbers": MAX_THREAD_NUMBERS, "cpu_hint": CPU_HINT}
        raise InvalidProblem(ErrorCode.TOO_LARGE, template, **data)
    return sizes


def pad_empty(values: Any) -> Any:
    """Return an array without an axis of length 0, because a device array cannot be empty."""
    if values.size:
        return np.ascontiguousarray(values)
    return np.zeros(tuple(max(length, 1) for length in values.shape), dtype=values.dtype)


def get_shared_arrays(inputs: LoopInputs) -> tuple[Any, ...]:
    """Return the arrays that all runs share, in the order of the kernel's arguments."""
    arrays = (inputs.features, inputs.eligible, inputs.layout, inputs.settings, inputs.memory, *inputs.world)
    return tuple(pad_empty(each) if isinstance(each, np.ndarray) else each for each in arrays)


def get_max_registers(round_spec: RoundSpec) -> int:
    """Return the maximal number of registers per thread."""
    arms = any(not model.between for model in round_spec.models)
    return MIXTURE_REGISTERS if arms or round_spec.mixes else RAY_REGISTERS


@cache
def build_kernel(round_spec: RoundSpec, loop: LoopSpec, sizes: Sizes) -> Any:
    """Return the kernel for one form of round in one kind of world, for problems of one size."""
    from numba import cuda, float64, int64

    play, fresh, support = build_loop(round_spec, loop), loop.fresh, sizes.signals + 1
    memory_length, answer_length, scratch_length, judging_length, signals, limits, count, d, masked = sizes
    audit_length = audit_size(signals - 1) if loop.audited else 0
    feature_shape, truth_shape = ((count, d), (signals, count + 1)) if fresh else ((1, 1), (1, 1))

    @cuda.jit(max_registers=get_max_registers(round_spec))
    def kernel(
        features, eligible, layout, settings, memory, parameters, truths, noise, signs, thresholds, outcomes, best,
        safe, drawn, ends, runs, seed, rounds, regret, reward, cost, bests, largest, running, audit,
    ):  # fmt: skip
        index = cuda.grid(1)
        if index < runs.size:
            run_memory, answer = cuda.local.array(memory_length, float64), cuda.local.array(answer_length, float64)
            scratch, judging = cuda.local.array(scratch_length, float64), cuda.local.array(judging_length, float64)
            mixture = cuda.local.array(support, int64)
            means, values = cuda.local.array(signals, float64), cuda.local.array(signals, float64)
            listed, true = cuda.local.array(feature_shape, float64), cuda.local.array(truth_shape, float64)
            copy_values(memory, 0, run_memory, 0, memory_length)
            if fresh:
                for signal in range(signals):
                    true[signal, count] = truths[signal, count]
            world = World(
                parameters, true if fresh else truths, noise, signs, thresholds[:limits], outcomes, best, safe, drawn
            )  # fmt: skip
            trace = Trace(
                ends, regret[index], reward[index], cost[index, :, : signals - 1], bests[index],
                largest[index, : signals - 1], running[index], audit[index, :audit_length],
            )  # fmt: skip
            play(
                listed if fresh else features, eligible[:masked], layout, settings, run_memory, answer, scratch,
                judging, mixture, means, values, world, trace, seed, runs[index], 0, rounds,
            )  # fmt: skip

    return kernel
