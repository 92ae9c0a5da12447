"""Simulations: many runs of a policy in a world or a family of worlds."""

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from stagewise.files.paths import parse_path
from stagewise.problem.checks import check_bool
from stagewise.reports.result import Result, merge_results
from stagewise.simulation.executors import Workers
from stagewise.simulation.jobs import Backend, Batch, build_job, open_workers, resolve_cuda
from stagewise.simulation.oracle import Family
from stagewise.simulation.plan import check_memory, parse_run_numbers, unwrap_agent

Name = TypeVar("Name", bound=Hashable)


def split_batch(batch: Batch) -> list[Batch]:
    """Return the batches that are played and saved at a time: one run each, or all of them on a GPU."""
    parts = [batch.runs] if batch.job.settings.backend == "cuda" else [[run] for run in batch.runs]
    return [Batch(batch.job, part) for part in parts]


def simulate(
    policy: Any,
    world: Family,
    *,
    rounds: int,
    runs: int | Iterable[int] = 1,
    seed: int = 0,
    record_points: int = 1000,
    backend: Backend = "auto",
    executor: Workers = None,
    progress: bool = True,
    audit: bool = False,
    warm_start: Any = None,
    out: str | Path | None = None,
) -> Result:
    """Play runs of a policy in a world, and return their regret, rewards, costs and violations.

    Every random number is a function of seed, run and round: a run is the same alone or among others, on any worker and
    at any recording rate.

    Args:
        policy: A policy, a `Problem`, or any object with start, decide and learn; None if `world` draws policies too.
            An agent stands for its policy and what it has learned, and stays as it is.
        world: A world; or a function from a run number to its world (such as `sw.LinearWorldFamily`), or to its
            policy and world.
        rounds: The number of rounds of a run.
        runs: The number of runs, or the run numbers.
        seed: The seed.
        record_points: The number of points that are recorded of each run.
        backend: "cpu" is the compiled loop, "cuda" the same on a GPU, for ten thousand runs and more. "python" plays
            any object with start, decide and learn. "auto" uses "cpu" where it can.
        executor: A concurrent.futures.Executor, "processes:N" or "cuda"; by default a process pool is used if it is
            faster.
        progress: Show a progress bar for long simulations, on a terminal.
        audit: Also count the rounds in which an interval missed the truth or optimism failed (`Result.audit`).
        warm_start: What every run has learned before: an agent of this policy, a state, or for a problem a log that
            `agent.learn_log_frame` takes.
        out: A folder for the results. Every finished run is saved at once, and the same call continues where it was
            interrupted, unless a function that does not describe itself draws the worlds.

    Returns:
        The result of all runs.

    Raises:
        InvalidProblem: The policy and the world do not fit, or an argument is invalid.
        InvalidFile: The folder holds runs of another plan.

    Example:
        >>> import stagewise as sw
        >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> result = simulate(policy, sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5]), rounds=100, runs=2)
        >>> result.violations.tolist()
        [0, 0]
    """
    backend, executor = resolve_cuda(backend, executor)
    policy, warm_start = unwrap_agent(policy, warm_start)
    folder = None if out is None else parse_path(out, "out")
    settings = {"rounds": rounds, "seed": seed, "record_points": record_points, "backend": backend}
    settings |= {"audit": audit, "warm_start": warm_start}
    return run_simulations({"": build_simulation(policy, world, runs, out=folder, **settings)}, executor, progress)[""]


def build_simulation(policy: Any, world: Family, runs: Any, **settings: Any) -> Batch:
    """Return a job with its runs, or raise if it cannot be played or does not fit into memory."""
    job = build_job(policy, world, single=True, **settings)
    numbers = parse_run_numbers(runs, job.settings.points, job.pairs(0)[1].costs)
    return Batch(job, numbers)


def run_simulations(simulations: Mapping[Name, Batch], executor: Workers, progress: bool) -> dict[Name, Result]:
    """Play all runs that are not saved yet, and return the results."""
    shows = check_bool(progress, "progress")
    batches = {(name, at): batch for name, one in simulations.items() for at, batch in enumerate(split_batch(one))}
    runs = sum(len(one.runs) for one in simulations.values())
    first = next(iter(simulations.values())).job
    rounds = first.settings.rounds  # the same for all
    check_memory(runs, first.settings.points, first.settings.limits)
    compiles = any(one.job.settings.backend != "python" for one in simulations.values())
    with open_workers(executor, shows, len(batches), runs, rounds, compiles) as finished:
        done = finished(batches)
    results = {}
    for name, one in simulations.items():
        results[name] = merge_results([done[name, at] for at in range(len(split_batch(one)))])
        one.job.folder.finish(results[name])
    return results
