"""Many runs of a policy in a world: in any order, on any worker, interrupted and continued."""

import time
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stagewise.files.paths import path_of
from stagewise.kernels.draw import signed
from stagewise.policies.policy import check_verbs
from stagewise.problem.checks import alone, one_of, seed_of, shown, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.result import Result, kept, merged
from stagewise.simulation.compiled import plays
from stagewise.simulation.executors import PAYS, Workers, opened, performed
from stagewise.simulation.judge import judge
from stagewise.simulation.plan import begin, finished, planned
from stagewise.simulation.progress import bar
from stagewise.simulation.recording import recorded
from stagewise.simulation.run import audit_columns, one_run, result_of
from stagewise.simulation.size import MOST, check_room, counted, how_many
from stagewise.worlds.world import World

BACKENDS = ("auto", "cpu", "python", "cuda")
Name = TypeVar("Name", bound=Hashable)


class Job(NamedTuple):
    """Runs of one policy in one world, checked and ready."""

    policy: Any
    world: World
    rounds: int
    record: int
    seed: int
    backend: str
    audit: bool
    runs: list[int]
    plan: dict[str, Any]
    out: Path | None

    def task(self, run: int) -> tuple[Any, ...]:
        """Return what `one_run` is called with."""
        return (self.policy, self.world, self.rounds, self.record, self.seed, run, self.backend, self.audit)


def simulate(
    policy: Any,
    world: World,
    *,
    rounds: int,
    runs: int | Iterable[int] = 1,
    seed: int = 0,
    record: int = 1000,
    backend: str = "auto",
    executor: Workers = None,
    progress: bool = True,
    audit: bool = False,
    out: str | Path | None = None,
) -> Result:
    """Play `runs` runs (a number, or the numbers of the runs) of `rounds` rounds, keeping `record` points of each.

    Every random number is a function of seed, run and round: a run is the same alone or among others, on any worker, at
    any recording rate. `backend`: "cpu" is the compiled loop, "cuda" the same on a GPU, for ten thousand runs and more,
    "python" plays any object with start, decide and learn, "auto" picks "cpu" where it can. `executor` is any
    concurrent.futures.Executor, "processes:N", "dask:ADDRESS", "dask:local" or "cuda", which is backend="cuda"; without
    one a process pool is used when it pays. `audit`: also count in which rounds an interval missed the truth or less
    was hoped for than was possible (`Result.audit`). With `out` every finished run is kept there at once, and the same
    call continues where it was interrupted. Long work shows a progress bar unless `progress` is False.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> result = simulate(policy, sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5]), rounds=100, runs=2)
    >>> result.violations.tolist()
    [0, 0]
    """
    backend, executor = on_cuda(backend, executor)
    job = job_for(policy, world, rounds, runs, seed, record, backend, audit, out)
    return collected({"": job}, executor, progress)[""]


def job_for(
    policy: Any,
    world: World,
    rounds: int,
    runs: int | Iterable[int],
    seed: int,
    record: int,
    backend: str,
    audit: bool,
    out: str | Path | None,
) -> Job:
    """Return a simulation that can be played, or refuse it."""
    origin, audited = seed_of(seed), switch(audit, "audit")
    length, points = counted(rounds, "rounds"), counted(record, "record")
    place = None if out is None else path_of(out, "out")
    chosen = backend_for(policy, world, length, backend)
    plan = planned(policy, world, length, points, origin, chosen)
    check_room(how_many(runs), min(length, points), world.costs)
    numbers = run_numbers(runs)
    if audited:
        plan["audit"] = True
    return Job(policy, world, length, points, origin, chosen, audited, numbers, plan, place)


def run_numbers(runs: Any) -> list[int]:
    """Return the numbers of the runs, from how many there are or the numbers themselves."""
    if isinstance(alone(runs), int | np.integer):
        return list(range(how_many(runs)))
    try:
        numbers = list(runs) if isinstance(runs, Iterable) else []
    except Exception:  # whatever the object's own code came to
        numbers = []
    whole = all(isinstance(run, int | np.integer) and 0 <= run < MOST for run in numbers)
    if not numbers or not whole or len(set(numbers)) < len(numbers):
        raise InvalidProblem(
            f"runs is {shown(runs)}; it must be a number of runs, or different run numbers from 0 to {MOST - 1}"
        )
    return [int(run) for run in numbers]


def on_cuda(backend: str, executor: Workers) -> tuple[str, Workers]:
    """Return backend and executor; the executor "cuda" is the backend of that name, which needs no other."""
    return ("cuda", None) if isinstance(executor, str) and executor == "cuda" else (backend, executor)


def backend_for(policy: Any, world: World, rounds: int, backend: str) -> str:
    """Return "cpu", "python" or "cuda", and refuse rounds that the policy's radii do not hold for."""
    backend = one_of(backend, BACKENDS, "backend")
    check_verbs(policy)
    horizon = getattr(policy, "horizon", None)
    if horizon is not None and rounds > horizon:
        raise InvalidProblem(f"rounds is {rounds} and the policy's horizon {horizon}; its radii hold only up to that")
    return ("cpu" if plays(policy, world) else "python") if backend == "auto" else backend


def collected(jobs: dict[Name, Job], executor: Workers, progress: bool) -> dict[Name, Result]:
    """Play what is not kept yet of all jobs together, and return their results."""
    begun, shows = time.perf_counter(), switch(progress, "progress")
    ready = {name: on_device(job) for name, job in jobs.items() if job.backend == "cuda"}
    jobs = {name: job for name, job in jobs.items() if job.backend != "cuda"}
    done = {name: {} if job.out is None else finished(job.out, job.plan, job.runs) for name, job in jobs.items()}
    ready_runs = sum(map(len, done.values()))
    todo = {(name, run): job.task(run) for name, job in jobs.items() for run in job.runs if run not in done[name]}
    rounds = sum(jobs[name].rounds for name, _ in todo)
    with (
        opened(executor, len(todo), rounds) as workers,
        bar(shows and rounds >= PAYS, ready_runs + len(todo), ready_runs, rounds // max(len(todo), 1)) as advance,
    ):
        for job in jobs.values():
            begin(job.out, job.plan)
        for (name, run), trace in performed(one_run, todo, workers):
            job = jobs[name]
            result = done[name][run] = result_of(job.policy, job.world, trace, run, job.plan)
            if job.out is not None:
                result.save(job.out / "parts" / f"run-{run:06d}")
            advance()
    results = {name: merged([done[name][run] for run in job.runs]) for name, job in jobs.items()}
    for name, result in results.items():
        result.manifest["seconds"] = time.perf_counter() - begun
        if (out := jobs[name].out) is not None:
            result.save(out)
    return {**ready, **results}


def on_device(job: Job) -> Result:
    """Play all runs at once on a GPU; what a folder holds already, whole and of the same plan, is not played again."""
    from stagewise.simulation.gpu.play import play as play_on_gpu

    if job.out is not None:
        finished(job.out, job.plan, [])
        before = kept(job.out)
        if before is not None and list(before.runs) == job.runs:
            return before
    begun, arbiter = time.perf_counter(), judge(job.policy, job.world)
    runs, m = np.array(job.runs, dtype=np.int64), job.world.costs
    traces = play_on_gpu(job.policy, arbiter, job.rounds, job.record, signed(job.seed), runs, job.audit)
    result = Result(
        rounds=recorded(job.rounds, job.record),
        regret=traces.regret,
        reward=traces.reward,
        cost=traces.cost[:, :, :m] * arbiter.signs[1:],
        max_cost=traces.largest[:, :m] * arbiter.signs[1:],
        violations=traces.running[:, 2].astype(np.int64),
        optimum=traces.best,
        runs=runs,
        manifest={**job.plan, "seconds": time.perf_counter() - begun},
        audit=audit_columns(traces.audit) if job.audit else None,
    )
    if job.out is not None:
        begin(job.out, job.plan)
        result.save(job.out)
    return result
