"""Jobs: validated runs of one plan, and how `simulate`, `certify` and `verify` play them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from stagewise.policies.policy import check_policy_protocol
from stagewise.problem.checks import check_bool, check_choice, check_seed
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.regret_bound import compute_bound_values
from stagewise.reports.result import Result
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
