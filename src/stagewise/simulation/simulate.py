"""Many runs of a policy in a world."""

import os
import platform
import time
from collections.abc import Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import numpy as np

import stagewise
from stagewise.kernels.draw import signed
from stagewise.kernels.trace import Trace
from stagewise.problem.errors import InvalidProblem
from stagewise.simulation.compiled import Compiled, plays
from stagewise.simulation.judge import World, judge
from stagewise.simulation.python import Hand
from stagewise.simulation.recording import empty_trace, recorded
from stagewise.simulation.result import Result

STRETCH = 200_000  # rounds between two looks at the clock and the keyboard


def one_run(policy: Any, world: World, rounds: int, points: int, seed: int, run: int, backend: str) -> Trace:
    """Return the record of one run; it depends on nothing but these arguments."""
    arbiter = judge(policy, world)
    trace = empty_trace(recorded(rounds, points), world.costs)
    player = (Compiled if backend == "cpu" else Hand)(policy, arbiter, trace, signed(seed), run)
    for first in range(0, rounds, STRETCH):
        player.play(first, min(first + STRETCH, rounds))
    return trace


def simulate(
    policy: Any,
    world: World,
    *,
    rounds: int,
    runs: int | Iterable[int] = 1,
    seed: int = 0,
    record: int = 1000,
    backend: str = "auto",
    executor: Executor | None = None,
) -> Result:
    """Play `runs` runs (a number, or the numbers of the runs) of `rounds` rounds, keeping `record` points of each.

    Every random number is a function of seed, run and round: a run is the same alone or among others, on any worker, at
    any recording rate. `backend`: "cpu" is the compiled loop, "python" plays any object with start, decide and learn,
    "auto" picks. `executor` is any concurrent.futures.Executor.
    """
    numbers = list(range(counted(runs, "runs"))) if isinstance(runs, int | np.integer) else [int(run) for run in runs]
    counted(rounds, "rounds")
    counted(record, "record")
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise InvalidProblem(f"runs is {runs!r}; it must be a number of runs, or different run numbers from 0 on")
    if backend not in ("auto", "cpu", "python"):
        raise InvalidProblem(f"backend is {backend!r}; it must be 'auto', 'cpu' or 'python'")
    horizon = getattr(policy, "horizon", None)
    if horizon is not None and rounds > horizon:
        raise InvalidProblem(f"rounds is {rounds} and the policy's horizon {horizon}; its radii hold only up to that")
    arbiter = judge(policy, world)
    chosen = ("cpu" if plays(policy, world) else "python") if backend == "auto" else backend
    begun = time.perf_counter()
    tasks = [(policy, world, int(rounds), int(record), int(seed), run, chosen) for run in numbers]
    if executor is not None:
        traces = [future.result() for future in [executor.submit(one_run, *task) for task in tasks]]
    elif len(tasks) > 1 and rounds * len(tasks) > 2_000_000 and (os.cpu_count() or 1) > 1:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            traces = [future.result() for future in [pool.submit(one_run, *task) for task in tasks]]
    else:
        traces = [one_run(*task) for task in tasks]
    costs = arbiter.signs[1:]
    return Result(
        rounds=recorded(rounds, record),
        regret=np.array([trace.regret for trace in traces]),
        reward=np.array([trace.reward for trace in traces]),
        cost=np.array([trace.cost for trace in traces]) * costs,
        max_cost=np.array([trace.largest for trace in traces]) * costs,
        violations=np.array([int(trace.running[2]) for trace in traces], dtype=np.int64),
        optimum=np.array([trace.best for trace in traces]),
        runs=np.array(numbers, dtype=np.int64),
        manifest={
            "policy": {"kind": type(policy).__name__, "settings": repr(policy)},
            "thresholds": dict(zip(arbiter.thresholds.names, arbiter.thresholds.values.tolist(), strict=True)),
            "rounds": int(rounds),
            "seed": int(seed),
            "backend": chosen,
            "seconds": time.perf_counter() - begun,
            "versions": {
                "stagewise": stagewise.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
            },
            "machine": f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores",
        },
    )


def counted(value: Any, name: str) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidProblem(f"{name} is {value!r}; it must be a whole number of at least 1")
    return int(value)
