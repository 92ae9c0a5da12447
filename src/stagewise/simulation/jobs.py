"""Runs of one plan, checked and ready, and how `simulate`, `sweep`, `certify` and `verify` all have them played."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from stagewise.policies.policy import check_verbs
from stagewise.problem.checks import one_of, seed_of, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.regret_bound import bound_values
from stagewise.reports.result import Result
from stagewise.simulation.compiled import plays
from stagewise.simulation.executors import PAYS, Workers, opened, performed
from stagewise.simulation.folder import SAME, Folder
from stagewise.simulation.judge import judge
from stagewise.simulation.learned import begun_from
from stagewise.simulation.pairs import Family, Pairs
from stagewise.simulation.plan import described, machine, versions
from stagewise.simulation.progress import bar
from stagewise.simulation.recording import recorded
from stagewise.simulation.run import Settings, play
from stagewise.simulation.size import check_room, counted

Backend = Literal["auto", "cpu", "python", "cuda"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
Finish = Callable[[Mapping[Any, "Batch"]], dict[Any, Result]]


class Job(NamedTuple):
    """What is played, how, and where it is kept."""

    pairs: Pairs
    settings: Settings
    plan: dict[str, Any]
    folder: Folder


class Interrupted(KeyboardInterrupt):
    """Ctrl+C while runs were played: so many of them are kept, and the same call continues there."""

    def __init__(self, kept: int, runs: int) -> None:
        super().__init__(f"{kept:,} of {runs:,} runs are kept")
        self.kept, self.runs = kept, runs


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
    learned: Any = None,
    out: Path | None = None,
    single: bool = False,
) -> Job:
    """Return what can be played, or refuse it; `single`: a GPU will play all runs in one batch."""
    origin, audited = seed_of(seed), switch(audit, "audit")
    length, points = counted(rounds, "rounds"), counted(record, "record")
    pairs = Pairs(policy, world)
    player, place = pairs(0)
    check_room(1, min(length, points), 0)
    chosen = backend_for(player, place, length, backend)
    begun = None if learned is None else begun_from(learned, policy, player, chosen)
    arbiter = judge(player, place)
    bound = bound_values(player, place, recorded(length, points)) if audited and pairs.fixed else None
    settings = Settings(length, points, origin, chosen, audited, arbiter.limits.size, bound, begun and begun.state)
    told, limits = pairs.description(), arbiter.thresholds
    below = [name for name, sign in zip(limits.names, limits.signs, strict=True) if sign < 0.0]
    plan = {  # what a result is a function of, and what made it
        "policy": described(player),
        "world": told["world"] if told["family"] == "fixed" else told,
        "thresholds": dict(zip(limits.names, limits.values.tolist(), strict=True)),
        "rounds": length,
        "record": points,
        "seed": origin,
        "backend": chosen,
        "versions": versions(),
        "machine": machine(),
        **({"at_least": below} if below else {}),  # which of the thresholds are from below
        **({"audit": True} if audited else {}),
        **({"learned": begun.told} if begun else {}),
    }
    plan = json.loads(json.dumps(plan))
    return Job(pairs, settings, plan, Folder(out, plan, SAME, single and chosen == "cuda", again=pairs.described))


def on_cuda(backend: Backend, executor: Workers) -> tuple[Backend, Workers]:
    """Return backend and executor; the executor "cuda" is the backend of that name, which needs no other."""
    return ("cuda", None) if isinstance(executor, str) and executor == "cuda" else (backend, executor)


def backend_for(policy: Any, world: Any, rounds: int, backend: Any) -> str:
    """Return "cpu", "python" or "cuda", and refuse rounds that the policy's radii do not hold for."""
    backend = one_of(backend, BACKENDS, "backend")
    check_verbs(policy)
    horizon = getattr(policy, "horizon", None)
    if horizon is not None and rounds > horizon:
        raise InvalidProblem(f"rounds is {rounds} and the policy's horizon {horizon}; its radii hold only up to that")
    return ("cpu" if plays(policy, world) else "python") if backend == "auto" else backend


@contextmanager
def counting(interrupted: Callable[[], Interrupted]) -> Iterator[None]:
    """Say of Ctrl+C how far the runs had come."""
    try:
        yield
    except KeyboardInterrupt:
        raise interrupted() from None


@contextmanager
def working(executor: Workers, shows: bool, tasks: int, runs: int, rounds: int) -> Iterator[Finish]:
    """Yield what has batches played, but for those that their folders hold, and keeps each as soon as it is done.

    So many tasks, runs and rounds of each are expected in all. A GPU is this process's own: no worker has it.
    """
    kept = 0
    with (
        counting(lambda: Interrupted(kept, runs)),
        opened(executor, tasks, runs * rounds) as workers,
        bar(shows and runs * rounds >= PAYS, runs, rounds) as tell,
    ):

        def finish(batches: Mapping[Any, Batch]) -> dict[Any, Result]:
            found = {key: batch.job.folder.found(batch.runs) for key, batch in batches.items()}
            done = {key: result for key, result in found.items() if result is not None}
            nonlocal kept
            kept += sum(len(result.runs) for result in done.values())
            tell(sum(len(result.runs) for result in done.values()))
            here, there = {}, {}
            for key, (job, runs) in batches.items():
                if key in done:
                    continue
                if workers is None or job.settings.backend == "cuda":
                    here[key] = (job.pairs, job.settings, runs)
                else:
                    there[key] = (job.pairs.sent(runs), job.settings, runs)
            for todo, executor in ((here, None), (there, workers)):
                for key, result in performed(play, todo, executor):
                    job = batches[key].job
                    result.manifest.update({**job.plan, **result.manifest})
                    kept += len(result.runs) * job.folder.keep(result)
                    tell(len(result.runs))
                    done[key] = result
            return {key: done[key] for key in batches}

        yield finish
