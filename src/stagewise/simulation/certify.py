"""Certificates: many audited runs in batches, stopped when the answer is clear, the same on any executor."""

import math
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.policies.always_safe import AlwaysSafe
from stagewise.policies.opb import OPB
from stagewise.policies.settings import probability
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.assumptions import assumptions
from stagewise.reports.certificate import Certificate, Terms, conclusions, reweighed, weighed
from stagewise.reports.findings import Findings, joined, totals
from stagewise.reports.regret_bound import regret_bound
from stagewise.simulation.executors import PAYS, Workers, opened, performed
from stagewise.simulation.judge import World, judge
from stagewise.simulation.progress import bar
from stagewise.simulation.recording import recorded
from stagewise.simulation.simulate import audit_of, backend_for, counted, described, machine, one_run, versions

POINTS = 20  # of the regret curves
Family = World | Callable[[int], Any]


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
    times at once (docs/certify.md). With `out`, certificate.json and certificate.html are written there.
    """
    begun = time.perf_counter()
    counted(rounds, "rounds")
    counted(runs, "runs")
    sure = probability(confidence, "confidence")
    first, place = pair(policy, world, 0)
    chosen = backend_for(first, place, rounds, backend)
    terms = terms_for(first, place, delta, sure, chosen)
    batch = batch_size(rounds, runs)
    starts = range(0, runs, batch)
    tasks = {start: (rounds, seed, chosen, start, min(batch, runs - start)) for start in starts}
    parts: list[Findings] = []
    tally = np.zeros(2 + len(terms.names), dtype=np.int64)
    with (
        opened(executor, len(tasks), rounds * runs) as workers,
        bar(progress and rounds * runs >= PAYS, runs, 0, rounds) as advance,
    ):
        while len(parts) < len(tasks):
            wave = list(starts)[len(parts) : len(parts) + max(len(parts), os.cpu_count() or 1)]
            given = {start: (carried(policy, world, tasks[start]), *tasks[start]) for start in wave}
            found = {}
            for start, findings in performed(findings_of, given, workers):
                if findings.margin.shape[1] != len(terms.names) - 1:
                    raise InvalidProblem(f"run {start} has not as many thresholds as run 0; all must have")
                found[start] = findings
                for _ in findings.runs:
                    advance()
            for start in wave:
                parts.append(found[start])
                tally += tallied(found[start])
                if early and reweighed(int(tally[0]), int(tally[1]), tally[2:].tolist(), terms, False).clear:
                    break
            else:
                continue
            break
    findings = joined(parts)
    result = weighed(findings, terms, len(findings.runs) == runs)
    ends = recorded(rounds, POINTS)
    bound = regret_bound(first, place, ends)
    content = conclusions(findings, ends, terms, result)
    content["regret"]["theorem"] = bound if isinstance(bound, str) else bound.theorem
    content["regret"]["failure"] = None if isinstance(bound, str) else bound.failure
    content |= {
        "policy": described(first),
        "world": family_description(policy, world),
        "thresholds": thresholds_of(first, place),
        "mixes": judge(first, place).mixes,
        "assumptions": assumptions(first, place),
        "plan": {
            "rounds": rounds,
            "runs": runs,
            "seed": seed,
            "batch": batch,
            "early": early,
            "backend": chosen,
            "points": POINTS,
        },
        "batches": [totals(part) for part in parts],
        "made": {
            "versions": {**versions(), "numba": numba.__version__},
            "machine": machine(),
            "seconds": round(time.perf_counter() - begun, 1),
        },
        "verify": "stagewise certify --verify certificate.json",
    }
    certificate = Certificate(content)
    if out is not None:
        certificate.save(out)
    return certificate


def findings_of(family: Any, rounds: int, seed: int, backend: str, first: int, count: int) -> Findings:
    """Play and audit `count` runs from run `first` on: one task for many runs."""
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


def tallied(findings: Findings) -> Ints:
    """Return how many runs there are, how many violate, and in how many an interval of each signal missed."""
    missing = (findings.missed > 0).sum(axis=0)
    return np.concatenate([[len(findings.runs), (findings.violations > 0).sum()], missing])


class Same:
    """The family of one policy and one world."""

    def __init__(self, policy: Any, world: Any) -> None:
        self.pair = (policy, world)

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return both, for any run."""
        return self.pair


class Drawn:
    """The family of worlds, or of policies and worlds, that a function draws."""

    def __init__(self, policy: Any, world: Callable[[int], Any]) -> None:
        self.policy, self.world = policy, world

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return what is played in a run."""
        return pair(self.policy, self.world, run)


class Listed:
    """Policies and worlds drawn beforehand, for functions that cannot travel to another process."""

    def __init__(self, first: int, pairs: list[tuple[Any, Any]]) -> None:
        self.first, self.pairs = first, pairs

    def __call__(self, run: int) -> tuple[Any, Any]:
        """Return what is played in a run."""
        return self.pairs[run - self.first]


def carried(policy: Any, world: Family, task: tuple[Any, ...]) -> Any:
    """Return the family in a form that can travel."""
    if not callable(world):
        return Same(policy, world)
    try:
        pickle.dumps(world)
    except (pickle.PicklingError, AttributeError, TypeError):
        first, count = task[-2:]
        return Listed(first, [pair(policy, world, run) for run in range(first, first + count)])
    return Drawn(policy, world)


def pair(policy: Any, world: Any, run: int) -> tuple[Any, Any]:
    """Return the policy and the world of a run."""
    drawn = world(run) if callable(world) else world
    both = drawn if isinstance(drawn, tuple) else (policy, drawn)
    if len(both) != 2 or both[0] is None:
        raise InvalidProblem("there is no policy; give one, or let the function return a policy and a world")
    return both


def terms_for(policy: Any, world: Any, delta: float | None, confidence: float, backend: str) -> Terms:
    """Return what is claimed; rounds played by hand show no intervals."""
    limits = judge(policy, world).thresholds
    if limits.values.size == 0:
        raise InvalidProblem(f"{type(policy).__name__} has no threshold here, so there is nothing to certify")
    own = float(getattr(policy, "delta", 0.05))
    claimed = probability(own if delta is None else delta, "delta")
    m = limits.values.size
    shares = shares_of(policy, own, m) if backend == "cpu" else (None,) * (1 + m)
    return Terms(claimed, confidence, ("reward", *limits.names), shares)


def shares_of(policy: Any, delta: float, m: int) -> tuple[float | None, ...]:
    """Return how much of δ the intervals of each signal take; None: it has none."""
    if isinstance(policy, AlwaysSafe) or not hasattr(policy, "delta"):
        return (None,) * (1 + m)
    if not hasattr(policy, "share_delta"):  # learners of the reward only
        return (delta, *([None] * m))
    alone = 2 if isinstance(policy, OPB) else 1
    return (delta / (1 + m if policy.share_delta else alone),) * (1 + m)


def thresholds_of(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return the limits as people wrote them."""
    limits = judge(policy, world).thresholds
    words = ["at most" if sign > 0 else "at least" for sign in limits.signs.tolist()]
    rows = zip(limits.names, words, limits.values.tolist(), strict=True)
    return [{"name": name, "side": side, "value": value} for name, side, value in rows]


def family_description(policy: Any, world: Any) -> dict[str, Any]:
    """Return what was played in, as plain values."""
    if hasattr(world, "description"):
        told: dict[str, Any] = world.description()
        return told if "family" in told else {"family": "fixed", "world": told}
    name = f"{getattr(world, '__module__', '')}.{getattr(world, '__qualname__', type(world).__qualname__)}"
    return {"family": "callable", "name": name, "draws_policies": policy is None}


def batch_size(rounds: int, runs: int) -> int:
    """Return how many runs make a batch: a fortieth of all, at most a thousand and some seconds' work."""
    return max(1, min(1000, -(-runs // 40), 20_000_000 // rounds))
