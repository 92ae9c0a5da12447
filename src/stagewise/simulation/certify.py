"""Certificates: audited runs played in batches, stopped when the answer is clear, the same on any executor."""

import os
import shutil
import time
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from stagewise.files.paths import path_of
from stagewise.problem.checks import number, shown, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import percent
from stagewise.reports.certificate import Certificate
from stagewise.reports.evidence import Terms, clear, plus, weighed
from stagewise.reports.files import usable
from stagewise.reports.findings import spread, totals
from stagewise.reports.regret_bound import regret_bound
from stagewise.reports.result import Result, merged
from stagewise.simulation.claim import setting, terms_for
from stagewise.simulation.closeness import closeness
from stagewise.simulation.executors import Workers
from stagewise.simulation.folder import SAME, Folder
from stagewise.simulation.jobs import Backend, Batch, Job, job_for, on_cuda, working
from stagewise.simulation.pairs import Family, Pairs
from stagewise.simulation.plan import machine, versions
from stagewise.simulation.recording import recorded
from stagewise.simulation.run import play
from stagewise.simulation.size import check_length, check_room, counted
from stagewise.worlds.kinds import world_kind

POINTS = 20  # of the regret curves
DEVICE_BATCH = 2**15  # runs that a GPU plays at once
LONGEST = 200  # letters of a name


def certify(
    policy: Any,
    world: Family,
    *,
    rounds: int,
    runs: int = 100_000,
    seed: int = 0,
    delta: float | None = None,
    confidence: float = 0.999,
    early: bool = True,
    backend: Backend = "auto",
    executor: Workers = None,
    progress: bool = True,
    out: str | Path | None = None,
    name: str | None = None,
) -> Certificate:
    """Test the claim "a run of `rounds` rounds breaks a limit with probability at most δ" on up to `runs` audited runs.

    `policy`, `world`, `seed`, `backend`, `executor` and `progress` are as for `simulate`, and so are the runs. `delta`
    is the policy's own unless given. Every statement is made with `confidence`. `early`: stop as soon as the claim and
    the intervals it rests on are decided, or the claim is refuted, by intervals that hold at all times at once
    (docs/how-to/certify.md). With `out`, certificate.json and certificate.html are written there; batches that were
    played are kept there until then, so that the same call goes on where it was cut short. `name` is what
    the page is about, such as the campaign.
    """
    place, title = None if out is None else path_of(out, "out"), None if name is None else named(name)
    most, shows, stops = counted(runs, "runs"), switch(progress, "progress"), switch(early, "early")
    sure = number(confidence, "confidence")
    if not 0.0 < sure < 1.0:
        share = percent(sure) if sure > 1.0 else ""
        raise InvalidProblem(
            f"confidence is {sure}; it must lie strictly between 0 and 1, as no test is ever certain{share}"
        )
    backend, executor = on_cuda(backend, executor)
    job = audited(policy, world, rounds, seed, backend, place)
    told = job.settings
    terms = terms_for(job.pairs, delta, sure, told.rounds, told.backend)
    plan = plan_for(told.rounds, most, told.seed, stops, told.backend)
    if not stops:
        check_room(most, POINTS, job.pairs(0)[1].costs)
        check_length(most, told.rounds)
    compiled = compiling(job)
    begun = time.perf_counter()
    with working(executor, shows, -(-most // plan["batch"]), most, told.rounds) as finished:
        parts, batches = gathered(job, plan, terms, finished)
    whole = merged(parts)
    said = concluded(job.pairs, plan, terms, batches, whole)
    said["closeness"] = closeness(job.pairs, plan, len(whole.runs))
    made = {
        **({} if title is None else {"name": title}),
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": versions(),
        "machine": machine(),
        "compiling": round(compiled, 1),
        "seconds": round(time.perf_counter() - begun, 1),
    }
    certificate = Certificate({**said, "made": made})
    if place is not None:
        certificate.save(place)
    if job.folder.place is not None and job.folder.place.exists():
        shutil.rmtree(job.folder.place)
    return certificate


def compiling(job: Job) -> float:
    """Play one round, so that what is compiled is, and return the seconds; by hand nothing is compiled for the runs."""
    begun = time.perf_counter()
    if job.settings.backend != "python":
        play(job.pairs, job.settings._replace(rounds=1, record=1, bound=None), [0])
    return time.perf_counter() - begun


def named(name: Any) -> str:
    """Return what a certificate is called, or refuse it."""
    if not isinstance(name, str) or not 0 < len(name.strip()) <= LONGEST:
        raise InvalidProblem(f"name is {shown(name)}; it must be a line of at most {LONGEST} letters, for a heading")
    return " ".join(name.split())


def audited(policy: Any, world: Family, rounds: Any, seed: Any, backend: Any, out: Path | None = None) -> Job:
    """Return the runs of a certificate; their batches are kept below `out` where a file can tell them apart."""
    told: dict[str, Any] = {"rounds": rounds, "seed": seed, "record": POINTS, "backend": backend, "audit": True}
    job = job_for(policy, world, **told)
    place = None if out is None else usable(out)  # now, and not after hours of play
    kind = job.pairs.description().get("world", {}).get("kind")  # none, where a function draws them
    known = world_kind(kind) is not None and isinstance(job.plan["policy"]["settings"], dict)
    if place is None or not known:
        return job
    return job._replace(folder=Folder(place / "batches", job.plan, (*SAME, "backend", "versions")))


def plan_for(rounds: int, runs: int, seed: int, early: bool, backend: str) -> dict[str, Any]:
    """Return what is to be played, as a certificate says it."""
    told = {"rounds": rounds, "runs": runs, "seed": seed, "batch": batch_size(rounds, runs, backend)}
    return {**told, "early": early, "backend": backend, "points": POINTS}


def batch_size(rounds: int, runs: int, backend: str) -> int:
    """Return how many runs make a batch: a fortieth of all, a thousand or some seconds' work at most; more on a GPU."""
    if backend == "cuda":
        return min(DEVICE_BATCH, runs)
    return max(1, min(1000, -(-runs // 40), 20_000_000 // rounds))


def gathered(
    job: Job, plan: dict[str, Any], terms: Terms, finished: Callable[[dict[int, Batch]], dict[int, Result]]
) -> tuple[list[Result], list[dict[str, Any]]]:
    """Play batch after batch until the answer is clear; return them and their totals.

    Batches are handed out in waves, each as large as all before it, and weighed in the order of their runs: what is
    played beyond the clear answer is left out, so that the number of workers changes nothing.
    """
    size, last = plan["batch"], plan["runs"]
    starts, parts, batches, counts = range(0, last, size), list[Result](), list[dict[str, Any]](), list[int]()
    while len(parts) < len(starts):
        wave = starts[len(parts) : len(parts) + max(len(parts), os.cpu_count() or 1)]
        for part in finished({start: Batch(job, range(start, min(start + size, last))) for start in wave}).values():
            parts.append(part)
            batches.append(totals(part))
            counts = plus(counts, batches[-1])
            if plan["early"] and clear(counts, terms):
                return parts, batches
    return parts, batches


def concluded(
    pairs: Pairs, plan: dict[str, Any], terms: Terms, batches: list[dict[str, Any]], result: Result | None
) -> dict[str, Any]:
    """Return everything that a certificate says of these runs: it is the same whoever played them, and when.

    Without the runs' result, only what their totals say, and the theorem that bounds their regret.
    """
    counts, ends = reduce(plus, batches, list[int]()), recorded(plan["rounds"], POINTS)
    bound = regret_bound(*pairs(0), ends)
    found, fails = (bound, None) if isinstance(bound, str) else (bound.theorem, bound.failure)
    told: dict[str, Any] = {"regret": {"rounds": ends.tolist()}} if result is None else spread(result, terms.names[1:])
    told["regret"] |= {"theorem": found, "failure": fails}
    said = weighed(counts, terms, complete=counts[0] == plan["runs"])
    return {**said, **told, **setting(pairs, plan), "batches": batches}
