"""Play many runs on a GPU, in batches. The entry point of this package."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stagewise.engine.compile import Ints
from stagewise.engine.layout import LIMITS
from stagewise.engine.trace import UNKNOWN, Trace, audit_size, running_size
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.simulation.compiled_run import LoopInputs, build_inputs, get_form, mark_unknown
from stagewise.simulation.gpu.general import CPU_HINT, build_kernel, get_shared_arrays, get_sizes
from stagewise.simulation.gpu.registers import build_call
from stagewise.simulation.oracle import Oracle
from stagewise.simulation.run import compute_recorded_rounds, empty_trace

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
