"""Simulations: many runs of a policy in a world or a family of worlds, as validated jobs of one plan."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from stagewise.files.paths import parse_path
from stagewise.policies.policy import check_policy_protocol
from stagewise.problem.checks import check_bool, check_choice, check_seed
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.guarantee import compute_bound_values
from stagewise.reports.result import Result, merge_results
from stagewise.simulation.compiled_run import can_play
from stagewise.simulation.executors import (
    MIN_PARALLEL_ROUNDS,
    RestartingPool,
    Workers,
    open_executor,
    progress_bar,
    run_tasks,
)
from stagewise.simulation.oracle import Family, PolicyWorlds, build_oracle
from stagewise.simulation.plan import (
    PLAN_KEYS,
    Folder,
    build_warm_start,
    check_count,
    check_memory,
    describe_machine,
    describe_policy,
    get_versions,
    parse_run_numbers,
    unwrap_agent,
)
from stagewise.simulation.run import RunSettings, compile_loop, compute_recorded_rounds, play

Backend = Literal["auto", "cpu", "python", "cuda"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
PlayBatches = Callable[[Mapping[Any, "Batch"]], dict[Any, Result]]


class Job(NamedTuple):
    """The policies and worlds, the settings, the plan and the folder of runs."""

    pairs: PolicyWorlds
    settings: RunSettings
    plan: dict[str, Any]
    folder: Folder


class Batch(NamedTuple):
    """Runs of a job that one worker plays."""

    job: Job
    runs: Sequence[int]


def build_job(
    policy: Any,
    world: Family,
    *,
    rounds: Any,
    seed: Any,
    record_points: Any,
    backend: Any,
    audit: Any = False,
    warm_start: Any = None,
    out: Path | None = None,
    single: bool = False,
) -> Job:
    """Return a job, or raise if it cannot be played; `single`: a GPU plays all runs in one batch."""
    origin, audited = check_seed(seed), check_bool(audit, "audit")
    length, points = check_count(rounds, "rounds"), check_count(record_points, "record_points")
    pairs = PolicyWorlds(policy, world)
    player, first_world = pairs(0)
    check_memory(1, min(length, points), 0)
    chosen = choose_backend(player, first_world, length, backend)
    start = None if warm_start is None else build_warm_start(warm_start, policy, player, chosen)
    oracle = build_oracle(player, first_world)
    bound = (
        compute_bound_values(player, first_world, compute_recorded_rounds(length, points))
        if audited and pairs.fixed
        else None
    )
    settings = RunSettings(length, points, origin, chosen, audited, oracle.limits.size, bound, start and start.state)
    description, limits = pairs.description(), oracle.thresholds
    below = [name for name, sign in zip(limits.names, limits.signs, strict=True) if sign < 0.0]
    plan = {  # everything that a result depends on
        "policy": describe_policy(player),
        "world": description["world"] if description["family"] == "fixed" else description,
        "thresholds": dict(zip(limits.names, limits.values.tolist(), strict=True)),
        "rounds": length,
        "record_points": points,
        "seed": origin,
        "backend": chosen,
        "versions": get_versions(),
        "machine": describe_machine(),
        **({"at_least": below} if below else {}),  # the thresholds that are lower limits
        **({"audit": True} if audited else {}),
        **({"warm_start": start.description} if start else {}),
    }
    plan = json.loads(json.dumps(plan))
    return Job(pairs, settings, plan, Folder(out, plan, PLAN_KEYS, single and chosen == "cuda", again=pairs.described))


def resolve_cuda(backend: Backend, executor: Workers) -> tuple[Backend, Workers]:
    """Return backend and executor; the executor "cuda" means the backend "cuda"."""
    return ("cuda", None) if isinstance(executor, str) and executor == "cuda" else (backend, executor)


def choose_backend(policy: Any, world: Any, rounds: int, backend: Any) -> str:
    """Return "cpu", "python" or "cuda"; raise if the rounds exceed the policy's horizon."""
    backend = check_choice(backend, BACKENDS, "backend")
    check_policy_protocol(policy)
    horizon = getattr(policy, "horizon", None)
    if horizon is not None and rounds > horizon:
        fact, remedy = f"the policy's horizon is {horizon}", "its confidence radii hold only up to the horizon"
        raise InvalidProblem.conflict("rounds", rounds, fact, remedy)
    return ("cpu" if can_play(policy, world) else "python") if backend == "auto" else backend


@contextmanager
def open_workers(
    executor: Workers, shows: bool, tasks: int, runs: int, rounds: int, compiles: bool = True
) -> Iterator[PlayBatches]:
    """Yield a function that plays batches, except those that their folders hold, and saves each when it is finished.

    `tasks`, `runs` and `rounds` are the totals. A GPU is used only by this process.
    """
    with (
        open_executor(executor, tasks, runs * rounds) as workers,
        progress_bar(shows and runs * rounds >= MIN_PARALLEL_ROUNDS, runs, rounds, compiles) as advance,
    ):

        def finish(batches: Mapping[Any, Batch]) -> dict[Any, Result]:
            saved = {key: batch.job.folder.found(batch.runs) for key, batch in batches.items()}
            done = {key: result for key, result in saved.items() if result is not None}
            advance(sum(len(result.runs) for result in done.values()))
            local, remote = {}, {}
            for key, (job, runs) in batches.items():
                if key in done:
                    continue
                if workers is None or job.settings.backend == "cuda":
                    local[key] = (job.pairs, job.settings, runs)
                else:
                    remote[key] = (job.pairs.make_picklable(runs), job.settings, runs)
            firsts = {id(batches[key].job): batches[key] for key in reversed(remote)}
            for job, runs in firsts.values() if isinstance(workers, RestartingPool) else ():
                compile_loop(job.pairs, job.settings, runs[0])
            for todo, executor in ((local, None), (remote, workers)):
                for key, result in run_tasks(play, todo, executor):
                    job = batches[key].job
                    result.manifest.update({**job.plan, **result.manifest})
                    job.folder.keep(result)
                    advance(len(result.runs))
                    done[key] = result
            return {key: done[key] for key in batches}

        yield finish


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
