"""Many runs of a policy in a world or a family of worlds: in any order, on any worker, interrupted and continued."""

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from stagewise.files.paths import path_of
from stagewise.problem.checks import switch
from stagewise.problem.renamed import renamed
from stagewise.reports.result import Result, merged
from stagewise.simulation.executors import Workers
from stagewise.simulation.jobs import Backend, Batch, Job, job_for, on_cuda, working
from stagewise.simulation.pairs import Family
from stagewise.simulation.size import check_length, check_room, run_numbers

Name = TypeVar("Name", bound=Hashable)


class Simulation(NamedTuple):
    """A job, and which of its runs are asked for."""

    job: Job
    runs: list[int]

    @property
    def batches(self) -> list[Batch]:
        """What is played and kept at a time: one run, or all of them on a GPU."""
        parts = [self.runs] if self.job.settings.backend == "cuda" else [[run] for run in self.runs]
        return [Batch(self.job, part) for part in parts]


@renamed(start="learned")
def simulate(
    policy: Any,
    world: Family,
    *,
    rounds: int,
    runs: int | Iterable[int] = 1,
    seed: int = 0,
    record: int = 1000,
    backend: Backend = "auto",
    executor: Workers = None,
    progress: bool = True,
    audit: bool = False,
    learned: Any = None,
    out: str | Path | None = None,
) -> Result:
    """Play `runs` runs (a number, or the numbers of the runs) of `rounds` rounds, keeping `record` points of each.

    `world` is a world; or a function from a run's number to its own world (such as `sw.SphereFamily`), or to its own
    policy and world (`policy` is None then). Every random number is a function of seed, run and round: a run is the
    same alone or among others, on any worker, at any recording rate. `backend`: "cpu" is the compiled loop, "cuda" the
    same on a GPU, for ten thousand runs and more, "python" plays any object with start, decide and learn, "auto" picks
    "cpu" where it can. `executor` is any concurrent.futures.Executor, "processes:N", "dask:ADDRESS", "dask:local" or
    "cuda", which is backend="cuda"; without one a process pool is used when it pays. `audit`: also count in which
    rounds an interval missed the truth or less was hoped for than was possible (`Result.audit`). `learned`: every run
    begins with what an agent of this policy has learned, with a state, or for a problem with a log, as a frame that
    `agent.learn_frame` takes. With `out` every
    finished run is kept there at once, and the same call continues where it was interrupted (unless a function that
    does not describe itself draws the worlds). Long work shows a progress bar unless `progress` is False.

    >>> import stagewise as sw
    >>> policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> result = simulate(policy, sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5]), rounds=100, runs=2)
    >>> result.violations.tolist()
    [0, 0]
    """
    backend, executor = on_cuda(backend, executor)
    place = None if out is None else path_of(out, "out")
    told: dict[str, Any] = {"rounds": rounds, "seed": seed, "record": record, "backend": backend, "audit": audit}
    told["learned"] = learned
    return collected({"": asked(policy, world, runs, out=place, **told)}, executor, progress)[""]


def asked(policy: Any, world: Family, runs: Any, **told: Any) -> Simulation:
    """Return a simulation that can be played and held in memory, or refuse it."""
    job = job_for(policy, world, single=True, **told)
    settings = job.settings
    return Simulation(job, run_numbers(runs, settings.points, job.pairs(0)[1].costs, settings.rounds))


def collected(simulations: Mapping[Name, Simulation], executor: Workers, progress: bool) -> dict[Name, Result]:
    """Play what is not kept yet of all simulations together, and return their results."""
    shows = switch(progress, "progress")
    batches = {(name, at): batch for name, one in simulations.items() for at, batch in enumerate(one.batches)}
    runs = sum(len(one.runs) for one in simulations.values())
    first = next(iter(simulations.values())).job
    rounds = first.settings.rounds  # all have as many
    check_room(runs, first.settings.points, first.settings.limits)
    check_length(runs, rounds)
    with working(executor, shows, len(batches), runs, rounds) as finished:
        done = finished(batches)
    results = {}
    for name, one in simulations.items():
        results[name] = merged([done[name, at] for at in range(len(one.batches))])
        one.job.folder.finish(results[name])
    return results
