"""Runs of one plan, checked and ready: what `simulate`, `sweep`, `certify` and `verify` all hand to workers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from stagewise.policies.policy import check_verbs
from stagewise.problem.checks import alone, one_of, seed_of, shown, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.regret_bound import bound_values
from stagewise.reports.result import Result
from stagewise.simulation.compiled import plays
from stagewise.simulation.executors import performed
from stagewise.simulation.folder import SAME, Folder
from stagewise.simulation.judge import judge
from stagewise.simulation.pairs import Family, Pairs
from stagewise.simulation.plan import planned
from stagewise.simulation.recording import recorded
from stagewise.simulation.run import Settings, play
from stagewise.simulation.size import MOST, counted, how_many

BACKENDS = ("auto", "cpu", "python", "cuda")
Key = TypeVar("Key")


class Job(NamedTuple):
    """What is played, how, and where it is kept."""

    pairs: Pairs
    settings: Settings
    plan: dict[str, Any]
    folder: Folder


class Batch(NamedTuple):
    """Some runs of a job, which one worker plays."""

    job: Job
    runs: Sequence[int]


def job_for(
    policy: Any,
    world: Family,
    *,
    rounds: Any,
    seed: Any,
    record: Any,
    backend: Any,
    audit: Any = False,
    out: Path | None = None,
    same: Sequence[str] = SAME,
    single: bool = False,
) -> Job:
    """Return what can be played, or refuse it; `single`: a GPU will play all runs in one batch."""
    origin, audited = seed_of(seed), switch(audit, "audit")
    length, points = counted(rounds, "rounds"), counted(record, "record")
    pairs = Pairs(policy, world)
    player, place = pairs(0)
    chosen = backend_for(player, place, length, backend)
    arbiter = judge(player, place)
    bound = bound_values(player, place, recorded(length, points)) if audited and pairs.fixed else None
    settings = Settings(length, points, origin, chosen, audited, arbiter.limits.size, bound)
    plan = planned(pairs, arbiter, settings)
    return Job(pairs, settings, plan, Folder(out, plan, same, single and chosen == "cuda", again=pairs.described))


def backend_for(policy: Any, world: Any, rounds: int, backend: Any) -> str:
    """Return "cpu", "python" or "cuda", and refuse rounds that the policy's radii do not hold for."""
    backend = one_of(backend, BACKENDS, "backend")
    check_verbs(policy)
    horizon = getattr(policy, "horizon", None)
    if horizon is not None and rounds > horizon:
        raise InvalidProblem(f"rounds is {rounds} and the policy's horizon {horizon}; its radii hold only up to that")
    return ("cpu" if plays(policy, world) else "python") if backend == "auto" else backend


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


def kept(batches: Mapping[Key, Batch]) -> dict[Key, Result]:
    """Return the batches that their folders hold already."""
    found = {key: batch.job.folder.found(batch.runs) for key, batch in batches.items()}
    return {key: result for key, result in found.items() if result is not None}


def played(
    batches: Mapping[Key, Batch], workers: Executor | None, advance: Callable[[int], None]
) -> Iterator[tuple[Key, Result]]:
    """Yield every batch as it was played, and keep it in its folder. A GPU is this process's own: no worker has it."""
    for executor in (None, workers) if workers is not None else (None,):
        tasks = {
            key: (job.pairs if executor is None else job.pairs.sent(runs), job.settings, runs)
            for key, (job, runs) in batches.items()
            if workers is None or (job.settings.backend == "cuda") == (executor is None)
        }
        for key, result in performed(play, tasks, executor):
            job = batches[key].job
            result.manifest.update({**job.plan, **result.manifest})
            job.folder.keep(result)
            advance(len(result.runs))
            yield key, result
