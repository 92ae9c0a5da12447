"""Certificates: audited runs played in batches, stopped when the answer is clear, the same on any executor."""

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from stagewise.files.paths import path_of
from stagewise.problem.checks import number, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.certificate import Certificate
from stagewise.reports.evidence import Tally, Terms, weighed, weights
from stagewise.reports.files import usable
from stagewise.reports.findings import spread, totals
from stagewise.reports.result import Result, merged
from stagewise.simulation.claim import setting, terms_for, theorem
from stagewise.simulation.executors import PAYS, Workers, opened
from stagewise.simulation.folder import SAME, Folder
from stagewise.simulation.jobs import Batch, Job, job_for, kept, played
from stagewise.simulation.judge import OURS
from stagewise.simulation.pairs import Family, Pairs
from stagewise.simulation.plan import machine, versions
from stagewise.simulation.progress import bar
from stagewise.simulation.simulate import on_cuda
from stagewise.simulation.size import check_room, counted

POINTS = 20  # of the regret curves
DEVICE_BATCH = 2**15  # runs that a GPU plays at once


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
    backend: str = "auto",
    executor: Workers = None,
    progress: bool = True,
    out: str | Path | None = None,
) -> Certificate:
    """Test the claim "a run of `rounds` rounds breaks a limit with probability at most δ" on up to `runs` audited runs.

    `policy` and `world` are as for `simulate`, and so are the runs. `delta` is the policy's own unless given. Every
    statement is made with `confidence`. `early`: stop as soon as the claim and the intervals it rests on are decided,
    or the claim is refuted, by intervals that hold at all times at once (docs/certify.md). With `out`, certificate.json
    and certificate.html are written there; batches that were played are kept there until then, so that the same call
    goes on where it was cut short.
    """
    begun, place = time.perf_counter(), None if out is None else path_of(out, "out")
    most, shows, stops = counted(runs, "runs"), switch(progress, "progress"), switch(early, "early")
    sure = number(confidence, "confidence")
    if not 0.0 < sure < 1.0:
        raise InvalidProblem(f"confidence is {sure}; it must lie strictly between 0 and 1, as no test is ever certain")
    backend, executor = on_cuda(backend, executor)
    job = audited(policy, world, rounds, seed, backend, place)
    terms = terms_for(*job.pairs(0), delta, sure, job.settings.backend)
    length, total = job.settings.rounds, job.settings.rounds * most
    plan = plan_for(length, most, job.settings.seed, stops, job.settings.backend)
    if not stops:
        check_room(most, POINTS, job.pairs(0)[1].costs)
    with (
        opened(executor, -(-most // plan["batch"]), total) as workers,
        bar(shows and total >= PAYS, most, 0, length) as advance,
    ):
        parts = gathered(job, plan, terms, workers, advance)
    made = {
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": versions(),
        "machine": machine(),
        "seconds": round(time.perf_counter() - begun, 1),
    }
    certificate = Certificate({**concluded(job.pairs, parts, plan, terms), "made": made})
    if place is not None:
        certificate.save(place)
    if job.folder.place is not None and job.folder.place.exists():
        shutil.rmtree(job.folder.place)
    return certificate


def audited(policy: Any, world: Family, rounds: Any, seed: Any, backend: Any, out: Path | None = None) -> Job:
    """Return the runs of a certificate; their batches are kept below `out` where a file can tell them apart."""
    told: dict[str, Any] = {"rounds": rounds, "seed": seed, "record": POINTS, "backend": backend, "audit": True}
    job = job_for(policy, world, **told)
    place = None if out is None else usable(out)  # now, and not after hours of play
    kind = job.pairs.description().get("world", {}).get("kind")  # none, where a function draws them
    known = kind in [ours.__name__ for ours in OURS] and isinstance(job.plan["policy"]["settings"], dict)
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
    job: Job, plan: dict[str, Any], terms: Terms, workers: Executor | None, advance: Callable[[int], None]
) -> list[Result]:
    """Play batch after batch until the answer is clear.

    Batches are handed out in waves, each as large as all before it, and weighed in the order of their runs: what is
    played beyond the clear answer is left out, so that the number of workers changes nothing.
    """
    size, last = plan["batch"], plan["runs"]
    starts, parts, tally = range(0, last, size), list[Result](), Tally.of(terms)
    while len(parts) < len(starts):
        wave = starts[len(parts) : len(parts) + max(len(parts), os.cpu_count() or 1)]
        batches = {start: Batch(job, range(start, min(start + size, last))) for start in wave}
        found = kept(batches)
        advance(sum(len(part.runs) for part in found.values()))
        found |= dict(played({start: batches[start] for start in wave if start not in found}, workers, advance))
        for start in wave:
            parts.append(found[start])
            tally = tally.plus(totals(found[start]))
            if plan["early"] and weighed(tally, terms, complete=False).clear:
                return parts
    return parts


def concluded(pairs: Pairs, parts: list[Result], plan: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """Return everything that a certificate says of these runs: it is the same whoever played them, and when."""
    batches, result = [totals(part) for part in parts], merged(parts)
    summary = weighed(Tally.of(terms, batches), terms, complete=len(result.runs) == plan["runs"])
    content = {
        **weights(terms, plan["rounds"], summary),
        **spread(result, terms.names[1:]),
        **setting(pairs, plan),
        "batches": batches,
    }
    content["regret"] |= theorem(pairs, result.rounds)
    return content
