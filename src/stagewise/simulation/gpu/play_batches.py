"""Play many runs on a GPU, in batches, one run per thread. The entry point of this package.

The arrays of a run are in the thread's local memory; shared arrays (settings, actions, truth) are in device memory.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.engine.layout import LIMITS, copy_values
from stagewise.engine.loop import UNKNOWN, LoopSpec, Trace, World, audit_size, build_loop, running_size
from stagewise.engine.model import RoundSpec
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.simulation.compiled_run import LoopInputs, build_inputs, get_form, mark_unknown
from stagewise.simulation.gpu.registers import build_call
from stagewise.simulation.oracle import Oracle
from stagewise.simulation.run import compute_recorded_rounds, empty_trace

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


THREADS = 256  # per block
MAX_TRACE_NUMBERS = 2**27  # numbers in all traces of a batch: one gigabyte


def get_cuda() -> Any:
    """Return numba's CUDA module; raise InvalidProblem if there is no usable device."""
    try:
        from numba import cuda
    except ImportError:
        template = "backend is 'cuda', but numba-cuda is not installed (stagewise[cuda]); {cpu_hint}"
        raise InvalidProblem(ErrorCode.MISSING_DEPENDENCY, template, cpu_hint=CPU_HINT) from None
    if not cuda.is_available():
        template = "backend is 'cuda', but this machine has no working CUDA device; {cpu_hint}"
        raise InvalidProblem(ErrorCode.BACKEND_UNAVAILABLE, template, cpu_hint=CPU_HINT)
    return cuda


def play(policy: Any, oracle: Oracle, rounds: int, points: int, seed: int, runs: Ints, audited: bool = False) -> Trace:
    """Play all rounds of these runs, in batches that fit into memory; return their traces, one row per run."""
    cuda = get_cuda()
    form = get_form(policy, oracle.world)
    if form is None or form.counts_capacity_in("rows"):
        name = f"{type(policy).__name__} in a {oracle.world.type_name} like this"
        template = "backend is 'cuda', which cannot play {name}; use backend='python'"
        raise InvalidProblem(ErrorCode.UNSUPPORTED_BACKEND, template, name=name)
    inputs = build_inputs(policy, oracle, audited)
    if inputs.loop.moving:
        raise InvalidProblem(
            ErrorCode.UNSUPPORTED_BACKEND,
            "backend is 'cuda', which needs one safe action for all rounds; here each round has its own; {cpu_hint}",
            cpu_hint=CPU_HINT,
        )
    launch = build_launcher(policy, oracle, inputs)
    ends, m = compute_recorded_rounds(rounds, points), oracle.world.costs
    batch = max(THREADS, MAX_TRACE_NUMBERS // (ends.size * (3 + m)))
    blank = np.zeros(audit_size(m), dtype=np.int64)
    mark_unknown(blank, inputs.round_spec, int(inputs.layout[LIMITS]))
    batches = []
    for first in range(0, runs.size, batch):
        batch_runs = runs[first : first + batch]
        traces = empty_trace(ends, max(m, 1), runs=(batch_runs.size,))  # a device array cannot be empty
        traces = traces._replace(audit=np.tile(blank, (batch_runs.size, 1)))
        device = [cuda.to_device(array) for array in traces[1:]]
        launch(cuda.to_device(ends), cuda.to_device(batch_runs), np.int64(seed), np.int64(rounds), *device)
        batches.append([array.copy_to_host() for array in device])
    result = Trace(ends, *(np.concatenate(arrays) for arrays in zip(*batches, strict=True)))
    np.copyto(result.audit, UNKNOWN, where=blank == UNKNOWN)
    running = result.running[:, : running_size(m)]
    return result._replace(cost=result.cost[:, :, :m], largest=result.largest[:, :m], running=running)


def build_launcher(policy: Any, oracle: Oracle, inputs: LoopInputs) -> Callable[..., None]:
    """Return a function that launches a batch: ends, run numbers, seed, rounds, traces."""
    cuda, unrolled = get_cuda(), build_call(policy, oracle, inputs)
    kernel, shared = unrolled or (
        build_kernel(inputs.round_spec, inputs.loop, get_sizes(inputs)),
        get_shared_arrays(inputs),
    )
    arguments = tuple(cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in shared)

    def launch(ends: Any, runs: Any, seed: Any, rounds: Any, *traces: Any) -> None:
        configure_kernel(kernel, runs.size)(*arguments, ends, runs, seed, rounds, *traces)

    return launch


def configure_kernel(kernel: Any, runs: int) -> Any:
    """Return a kernel configured for this many runs, one thread each.

    Numba warns about fewer than 128 blocks; the warning is switched off, because a small number of runs is legitimate.
    """
    import numba

    config: Any = numba.config
    previous, config.CUDA_LOW_OCCUPANCY_WARNINGS = config.CUDA_LOW_OCCUPANCY_WARNINGS, 0
    try:
        return kernel[(runs + THREADS - 1) // THREADS, THREADS]
    finally:
        config.CUDA_LOW_OCCUPANCY_WARNINGS = previous
