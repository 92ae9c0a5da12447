"""A hundred thousand runs at once, on a GPU: batches go there, traces come back. The one door to this folder."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stagewise.kernels.audit import UNKNOWN, audit_size
from stagewise.kernels.compile import Ints
from stagewise.kernels.layout import LIMITS
from stagewise.kernels.trace import Trace, running_size
from stagewise.problem.errors import InvalidProblem
from stagewise.simulation.compiled import LoopInputs, inputs_for, plays, prepare
from stagewise.simulation.gpu.general import INSTEAD, loop_on_device, shared_by, sizes_of
from stagewise.simulation.gpu.registers import call_for
from stagewise.simulation.judge import Judge
from stagewise.simulation.recording import empty_trace, recorded

THREADS = 256  # a block
KEPT = 2**27  # numbers of all traces of a batch: a gigabyte


def driver() -> Any:
    """Return numba's CUDA target, or say why there is none."""
    try:
        from numba import cuda
    except ImportError:
        raise InvalidProblem(f"backend is 'cuda' and numba-cuda is missing (stagewise[cuda]); {INSTEAD}") from None
    if not cuda.is_available():
        raise InvalidProblem(f"backend is 'cuda', and this machine has no CUDA device that works; {INSTEAD}")
    return cuda


def play(policy: Any, judge: Judge, rounds: int, points: int, seed: int, runs: Ints, audited: bool = False) -> Trace:
    """Play these runs, all of their rounds, in as many batches as their traces need room for; a run a row."""
    cuda = driver()
    if not plays(policy, judge.world):
        name = f"{type(policy).__name__} in a {judge.world.called} like this"
        raise InvalidProblem(f"backend is 'cuda', which cannot play {name}; use backend='python'")
    inputs = inputs_for(policy, judge, audited)
    if inputs.loop.moving:
        raise InvalidProblem(
            f"backend is 'cuda', whose runs share their safe action, and here rounds have their own; {INSTEAD}"
        )
    launch = launcher(policy, judge, inputs)
    ends, m = recorded(rounds, points), judge.world.costs
    batch = max(THREADS, KEPT // (ends.size * (3 + m)))
    blank = np.zeros(audit_size(m), dtype=np.int64)
    prepare(blank, inputs.form, int(inputs.layout[LIMITS]))
    parts = []
    for first in range(0, runs.size, batch):
        chosen = runs[first : first + batch]
        traces = empty_trace(ends, max(m, 1), runs=(chosen.size,))  # a device array cannot be empty
        traces = traces._replace(audit=np.tile(blank, (chosen.size, 1)))
        device = [cuda.to_device(array) for array in traces[1:]]
        launch(cuda.to_device(ends), cuda.to_device(chosen), np.int64(seed), np.int64(rounds), *device)
        parts.append([array.copy_to_host() for array in device])
    whole = Trace(ends, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    np.copyto(whole.audit, UNKNOWN, where=blank == UNKNOWN)
    running = whole.running[:, : running_size(m)]
    return whole._replace(cost=whole.cost[:, :, :m], largest=whole.largest[:, :m], running=running)


def launcher(policy: Any, judge: Judge, inputs: LoopInputs) -> Callable[..., None]:
    """Return how a batch is started: ends, run numbers, seed, rounds, traces."""
    cuda, unrolled = driver(), call_for(policy, judge, inputs)
    kernel, shared = unrolled or (loop_on_device(inputs.form, inputs.loop, sizes_of(inputs)), shared_by(inputs))
    arguments = tuple(cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in shared)

    def launch(ends: Any, runs: Any, seed: Any, rounds: Any, *traces: Any) -> None:
        spread(kernel, runs.size)(*arguments, ends, runs, seed, rounds, *traces)

    return launch


def spread(kernel: Any, runs: int) -> Any:
    """Return a kernel set up for so many runs, a thread each.

    Numba warns of fewer than 128 blocks. How many runs there are is the user's business, and a few are played too.
    """
    import numba

    config: Any = numba.config
    asked, config.CUDA_LOW_OCCUPANCY_WARNINGS = config.CUDA_LOW_OCCUPANCY_WARNINGS, 0
    try:
        return kernel[(runs + THREADS - 1) // THREADS, THREADS]
    finally:
        config.CUDA_LOW_OCCUPANCY_WARNINGS = asked
