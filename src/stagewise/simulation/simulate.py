"""Many runs of a policy in a world: in any order, on any worker, interrupted and continued."""

import json
import os
import platform
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

import stagewise
from stagewise.kernels.draw import signed
from stagewise.kernels.trace import Trace
from stagewise.policies.saved import KINDS, encoded
from stagewise.problem.errors import InvalidFile, InvalidProblem
from stagewise.reports.result import Result, merged, write_text
from stagewise.simulation.compiled import Compiled, plays
from stagewise.simulation.judge import World, judge
from stagewise.simulation.progress import bar
from stagewise.simulation.python import Hand
from stagewise.simulation.recording import empty_trace, recorded

STRETCH = 200_000  # rounds between two looks at the keyboard
PAYS = 2_000_000  # rounds from which a process pool is worth its start


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
    progress: bool = True,
    out: str | Path | None = None,
) -> Result:
    """Play `runs` runs (a number, or the numbers of the runs) of `rounds` rounds, keeping `record` points of each.

    Every random number is a function of seed, run and round: a run is the same alone or among others, on any worker, at
    any recording rate. `backend`: "cpu" is the compiled loop, "cuda" the same on a GPU, for ten thousand runs and more,
    "python" plays any object with start, decide and learn, "auto" picks "cpu" where it can. `executor` is any
    concurrent.futures.Executor; without one a process pool is used when it pays. With `out` every finished run is kept
    there at once, and the same call continues where it was interrupted. Long work shows a progress bar, where rich is
    installed, unless `progress` is False.
    """
    numbers = list(range(counted(runs, "runs"))) if isinstance(runs, int | np.integer) else [int(run) for run in runs]
    counted(rounds, "rounds")
    counted(record, "record")
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise InvalidProblem(f"runs is {runs!r}; it must be a number of runs, or different run numbers from 0 on")
    if backend not in ("auto", "cpu", "python", "cuda"):
        raise InvalidProblem(f"backend is {backend!r}; it must be 'auto', 'cpu', 'python' or 'cuda'")
    horizon = getattr(policy, "horizon", None)
    if horizon is not None and rounds > horizon:
        raise InvalidProblem(f"rounds is {rounds} and the policy's horizon {horizon}; its radii hold only up to that")
    chosen = ("cpu" if plays(policy, world) else "python") if backend == "auto" else backend
    plan = planned(policy, world, int(rounds), int(record), int(seed), chosen)
    begun = time.perf_counter()
    if chosen == "cuda":
        return on_device(policy, world, plan, numbers, out)
    done = {} if out is None else finished(Path(out), plan, numbers)
    rest = [run for run in numbers if run not in done]
    todo = {run: (policy, world, int(rounds), int(record), int(seed), run, chosen) for run in rest}
    with bar(progress and len(todo) * rounds >= PAYS, len(numbers), len(done), int(rounds)) as advance:
        for run, trace in played(todo, executor, int(rounds)):
            done[run] = result_of(policy, world, trace, run, plan)
            if out is not None:
                done[run].save(Path(out) / "parts" / f"run-{run:06d}")
            advance()
    result = merged([done[run] for run in numbers])
    result.manifest["seconds"] = time.perf_counter() - begun
    if out is not None:
        result.save(out)
    return result


def on_device(policy: Any, world: World, plan: dict[str, Any], numbers: list[int], out: str | Path | None) -> Result:
    """Play all runs at once on a GPU; what `out` holds already, whole and of the same plan, is not played again."""
    from stagewise.simulation import cuda

    if out is not None:
        finished(Path(out), plan, [])
        if (Path(out) / "manifest.json").exists() and list((kept := Result.load(out)).runs) == numbers:
            return kept
    begun, arbiter = time.perf_counter(), judge(policy, world)
    runs, m = np.array(numbers, dtype=np.int64), world.costs
    traces = cuda.play(policy, arbiter, plan["rounds"], plan["record"], signed(plan["seed"]), runs)
    result = Result(
        rounds=recorded(plan["rounds"], plan["record"]),
        regret=traces.regret,
        reward=traces.reward,
        cost=traces.cost[:, :, :m] * arbiter.signs[1:],
        max_cost=traces.largest[:, :m] * arbiter.signs[1:],
        violations=traces.running[:, 2].astype(np.int64),
        optimum=traces.best,
        runs=runs,
        manifest={**plan, "seconds": time.perf_counter() - begun},
    )
    if out is not None:
        result.save(out)
    return result


def played(todo: dict[int, Any], executor: Executor | None, rounds: int) -> Iterator[tuple[int, Trace]]:
    """Yield each run's record as it comes."""
    cores = os.cpu_count() or 1
    if executor is None and (len(todo) < 2 or rounds * len(todo) < PAYS or cores < 2):
        for run, task in todo.items():
            yield run, one_run(*task)
        return
    pool = executor or ProcessPoolExecutor(min(cores, len(todo)))
    try:
        futures = {pool.submit(one_run, *task): run for run, task in todo.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        if executor is None:
            pool.shutdown(cancel_futures=True)


def planned(policy: Any, world: World, rounds: int, record: int, seed: int, backend: str) -> dict[str, Any]:
    """Return what a result is a function of, and what made it, as plain JSON values."""
    arbiter = judge(policy, world)
    plan = {
        "policy": described(policy),
        "world": world.description(),
        "thresholds": dict(zip(arbiter.thresholds.names, arbiter.thresholds.values.tolist(), strict=True)),
        "rounds": rounds,
        "record": record,
        "seed": seed,
        "backend": backend,
        "versions": {"stagewise": stagewise.__version__, "python": platform.python_version(), "numpy": np.__version__},
        "machine": f"{platform.machine()} {platform.system()}, {os.cpu_count()} cores",
    }
    copy: dict[str, Any] = json.loads(json.dumps(plan))
    return copy


def described(policy: Any) -> Any:
    """Return a policy as plain values; by its repr where a file could not hold it."""
    try:
        return encoded(policy) if type(policy).__name__ in KINDS else told(policy)
    except InvalidProblem:
        return told(policy)


def told(policy: Any) -> dict[str, str]:
    """Return a policy's kind and repr."""
    return {"kind": type(policy).__name__, "settings": repr(policy)}


def finished(out: Path, plan: dict[str, Any], numbers: list[int]) -> dict[int, Result]:
    """Return the runs that the folder holds already; refuse a folder of another plan."""
    path = out / "plan.json"
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(plan, indent=1))
    kept = json.loads(path.read_text(encoding="utf-8"))
    for key in ("policy", "world", "rounds", "record", "seed"):
        if kept.get(key) != plan[key]:
            raise InvalidFile(f"{out} holds runs of another plan, whose {key} differs; choose another folder")
    parts = {run: out / "parts" / f"run-{run:06d}" for run in numbers}
    return {run: Result.load(part) for run, part in parts.items() if (part / "manifest.json").exists()}


def result_of(policy: Any, world: World, trace: Trace, run: int, plan: dict[str, Any]) -> Result:
    """Return one run as a result, in the user's own direction."""
    signs = judge(policy, world).signs[1:]
    return Result(
        rounds=trace.ends,
        regret=trace.regret[None],
        reward=trace.reward[None],
        cost=(trace.cost * signs)[None],
        max_cost=(trace.largest * signs)[None],
        violations=np.array([int(trace.running[2])], dtype=np.int64),
        optimum=trace.best[None],
        runs=np.array([run], dtype=np.int64),
        manifest=dict(plan),
    )


def counted(value: Any, name: str) -> int:
    """Return a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidProblem(f"{name} is {value!r}; it must be a whole number of at least 1")
    return int(value)
