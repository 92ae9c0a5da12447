"""Certificates: many audited runs in batches, stopped when the answer is clear, the same on any executor."""

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import chain
from pathlib import Path
from typing import Any

import numba
import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.problem.checks import number, seed_of
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.assumptions import assumptions
from stagewise.reports.certificate import Certificate, Terms, conclusions, reweighed, weighed
from stagewise.reports.files import usable
from stagewise.reports.findings import Findings, joined, totals
from stagewise.reports.regret_bound import regret_bound
from stagewise.simulation.claim import terms_for, thresholds_of
from stagewise.simulation.executors import PAYS, Workers, opened, performed
from stagewise.simulation.judge import judge
from stagewise.simulation.kept import Kept
from stagewise.simulation.plan import described, machine, versions
from stagewise.simulation.progress import bar
from stagewise.simulation.recording import recorded
from stagewise.simulation.run import audit_of, one_run
from stagewise.simulation.simulate import backend_for, on_cuda, simulate
from stagewise.simulation.size import check_room, counted
from stagewise.simulation.travel import Family, carried, family_description, pair
from stagewise.worlds.world import World

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

    `world` is a world; or a function from a run's number to its own world, or to its own policy and world (`policy` is
    None then). `delta` is the policy's own unless given. Every statement is made with `confidence`. `early`: stop as
    soon as the claim and the intervals it rests on are decided, or the claim is refuted, by intervals that hold at all
    times at once (docs/certify.md). With `out`, certificate.json and certificate.html are written there; batches that
    were played are kept there until then, so that the same call goes on where it was cut short.
    """
    begun = time.perf_counter()
    counted(rounds, "rounds")
    counted(runs, "runs")
    seed_of(seed)
    sure = number(confidence, "confidence")
    if not 0.0 < sure < 1.0:
        raise InvalidProblem(f"confidence is {sure}; it must lie strictly between 0 and 1, as no test is ever certain")
    backend, executor = on_cuda(backend, executor)
    first, place = pair(policy, world, 0)
    chosen = backend_for(first, place, rounds, backend)
    terms = terms_for(first, place, delta, sure, chosen)
    if not early:
        check_room(runs, POINTS, place.costs)
    plan: dict[str, Any] = {
        "rounds": int(rounds),
        "runs": int(runs),
        "seed": int(seed),
        "batch": batch_size(rounds, runs, chosen),
        "early": bool(early),
        "backend": chosen,
        "points": POINTS,
    }
    if out is not None:
        usable(out)  # now, and not after hours of play
    kept = Kept(None if out is None else Path(out), kept_plan(first, family_description(policy, world), plan))
    with (
        opened(executor, -(-runs // plan["batch"]), rounds * runs) as workers,
        bar(progress and rounds * runs >= PAYS, runs, 0, rounds) as advance,
    ):
        parts = gathered(policy, world, plan, terms, workers, advance, kept)
    content = {
        **concluded(first, place, parts, plan, terms),
        "world": family_description(policy, world),
        "plan": plan,
        "batches": [totals(part) for part in parts],
        "made": {
            "day": time.strftime("%Y-%m-%d", time.gmtime()),
            "versions": packages(),
            "machine": machine(),
            "seconds": round(time.perf_counter() - begun, 1),
        },
        "verify": "stagewise certify --verify certificate.json",
    }
    certificate = Certificate(content)
    if out is not None:
        certificate.save(out)
        kept.forget()
    return certificate


def gathered(
    policy: Any,
    world: Family,
    plan: dict[str, Any],
    terms: Terms,
    workers: Executor | None,
    advance: Callable[[], None],
    kept: Kept,
) -> list[Findings]:
    """Play batch after batch until the answer is clear.

    Batches are handed out in waves, each as large as all before it, and weighed in the order of their runs: what is
    played beyond the clear answer is left out, so that the number of workers changes nothing.
    """
    runs, batch = plan["runs"], plan["batch"]
    starts = range(0, runs, batch)
    parts: list[Findings] = []
    tally = np.zeros(2 + len(terms.names), dtype=np.int64)
    while len(parts) < len(starts):
        wave = starts[len(parts) : len(parts) + max(len(parts), os.cpu_count() or 1)]
        before = {start: kept.found(start) for start in wave}
        found = {start: findings for start, findings in before.items() if findings is not None}
        left = [start for start in wave if start not in found]
        tasks = {start: task_for(policy, world, plan, start, min(batch, runs - start)) for start in left}
        for start, findings in chain(list(found.items()), performed(findings_of, tasks, workers)):
            if start in tasks:
                kept.keep(start, findings)
            found[start] = findings
            for _ in findings.runs:
                advance()
        for start in wave:
            if found[start].margin.shape[1] != len(terms.names) - 1:
                raise InvalidProblem(f"run {start} has not as many thresholds as run 0; all must have")
            parts.append(found[start])
            tally += tallied(found[start])
            if plan["early"] and reweighed(int(tally[0]), int(tally[1]), tally[2:].tolist(), terms, False).clear:
                return parts
    return parts


def kept_plan(policy: Any, family: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
    """Return what a batch is a function of."""
    same = {name: plan[name] for name in ("rounds", "seed", "batch", "backend", "points")}
    return {"policy": described(policy), "world": family, **same, "versions": packages()}


def task_for(policy: Any, world: Family, plan: dict[str, Any], first: int, count: int) -> tuple[Any, ...]:
    """Return what `findings_of` is called with."""
    return (carried(policy, world, first, count), plan["rounds"], plan["seed"], plan["backend"], first, count)


def concluded(policy: Any, world: World, parts: list[Findings], plan: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """Return what the runs say, and of what."""
    findings, ends = joined(parts), recorded(plan["rounds"], POINTS)
    result = weighed(findings, terms, len(findings.runs) == plan["runs"])
    content = conclusions(findings, ends, terms, result)
    bound = regret_bound(policy, world, ends)
    content["regret"]["theorem"] = bound if isinstance(bound, str) else bound.theorem
    content["regret"]["failure"] = None if isinstance(bound, str) else bound.failure
    return {
        **content,
        "policy": described(policy),
        "thresholds": thresholds_of(policy, world),
        "mixes": judge(policy, world).mixes,
        "assumptions": assumptions(policy, world),
    }


def packages() -> dict[str, str]:
    """Return what arithmetic depends on."""
    return {**versions(), "numba": numba.__version__}


def findings_of(family: Any, rounds: int, seed: int, backend: str, first: int, count: int) -> Findings:
    """Play and audit `count` runs from run `first` on: one task for many runs."""
    if backend == "cuda":
        return findings_on_device(family, rounds, seed, first, count)
    ends = recorded(rounds, POINTS)
    rows: list[tuple[Any, ...]] = []
    known: tuple[Any, Any, Floats] | None = None
    for run in range(first, first + count):
        policy, world = family(run)
        if known is None or known[0] is not policy or known[1] is not world:
            bound = regret_bound(policy, world, ends)
            known = (policy, world, np.full(ends.size, math.nan) if isinstance(bound, str) else bound.values)
        trace = one_run(policy, world, rounds, POINTS, seed, run, backend, True)
        limits, audit = judge(policy, world).limits, audit_of(trace)
        if rows and limits.size != rows[0][-2].shape[1]:
            raise InvalidProblem(f"run {run} has {limits.size} thresholds, and an earlier one has not; all must have")
        rows.append(
            (
                np.array([run]),
                np.array([int(trace.running[2])]),
                audit["first_violation"],
                audit["hopeless"],
                audit["settled"],
                audit["missed"],
                trace.regret[None],
                (limits - trace.largest)[None],
                known[2][None],
            )
        )
    return Findings(*(np.concatenate(column) for column in zip(*rows, strict=True)))


def findings_on_device(family: Any, rounds: int, seed: int, first: int, count: int) -> Findings:
    """Do the same on a GPU, where all runs of a batch share one policy and one world."""
    policy, world = family(first)
    other = family(first + count - 1)
    if other[0] is not policy or other[1] is not world:
        raise InvalidProblem("backend is 'cuda', which plays runs of one world, and each run has its own; use 'cpu'")
    told: dict[str, Any] = {"rounds": rounds, "runs": range(first, first + count), "seed": seed, "record": POINTS}
    played = simulate(policy, world, **told, backend="cuda", audit=True)
    arbiter, bound = judge(policy, world), regret_bound(policy, world, played.rounds)
    values = np.full(played.rounds.size, math.nan) if isinstance(bound, str) else bound.values
    audit: dict[str, Any] = played.audit or {}
    return Findings(
        played.runs,
        played.violations,
        audit["first_violation"],
        audit["hopeless"],
        audit["settled"],
        audit["missed"],
        played.regret,
        arbiter.limits - played.max_cost * arbiter.signs[1:],
        np.broadcast_to(values, played.regret.shape).copy(),
    )


def tallied(findings: Findings) -> Ints:
    """Return how many runs there are, how many violate, and in how many an interval of each signal missed."""
    missing = (findings.missed > 0).sum(axis=0)
    return np.concatenate([[len(findings.runs), (findings.violations > 0).sum()], missing])


def batch_size(rounds: int, runs: int, backend: str) -> int:
    """Return how many runs make a batch: a fortieth of all, a thousand or some seconds' work at most; more on a GPU."""
    if backend == "cuda":
        return min(DEVICE_BATCH, runs)
    return max(1, min(1000, -(-runs // 40), 20_000_000 // rounds))
