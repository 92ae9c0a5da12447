"""Some runs, played one after the other or all at once on a GPU, as one result: all that a worker is ever asked for."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.audit import FIRST, HOPELESS, MISSED, SETTLED
from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.draw import signed
from stagewise.kernels.trace import Trace
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.regret_bound import bound_values
from stagewise.reports.result import Result, merged
from stagewise.simulation.compiled import Compiled
from stagewise.simulation.judge import Judge, judge
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.python import Hand
from stagewise.simulation.recording import empty_trace, recorded
from stagewise.worlds.world import World

STRETCH = 200_000  # rounds between two looks at the keyboard


class Settings(NamedTuple):
    """How runs are played, whatever policy and world it is."""

    rounds: int
    record: int  # points kept of each
    seed: int
    backend: str
    audit: bool
    limits: int  # how many every run has
    bound: Floats | None = None  # what a theorem allows, reckoned once where all runs have the same policy and world


class Pair(NamedTuple):
    """A policy, who judges it in its world, and what a theorem allows it at the recorded rounds."""

    policy: Any
    arbiter: Judge
    bound: Floats | None  # None: no audit is kept


def one_run(policy: Any, arbiter: Judge, settings: Settings, run: int) -> Trace:
    """Return the record of one run; it depends on nothing but these arguments."""
    rounds = settings.rounds
    trace = empty_trace(recorded(rounds, settings.record), arbiter.world.costs, settings.audit)
    player = (Compiled if settings.backend == "cpu" else Hand)(policy, arbiter, trace, signed(settings.seed), run)
    for first in range(0, rounds, STRETCH):
        player.play(first, min(first + STRETCH, rounds))
    return trace


def play(pairs: Pairs, settings: Settings, runs: Sequence[int]) -> Result:
    """Play these runs; the manifest is left to the caller, but for limits that each run has of its own."""
    begun = time.perf_counter()
    result = play_on_device(pairs, settings, runs) if settings.backend == "cuda" else play_each(pairs, settings, runs)
    result.manifest["seconds"] = time.perf_counter() - begun
    return result


def play_each(pairs: Pairs, settings: Settings, runs: Sequence[int]) -> Result:
    """Play one run after the other."""
    parts: list[Result] = []
    pair: Pair | None = None
    for run in runs:
        policy, world = pairs(run)
        if pair is None or pair.policy is not policy or pair.arbiter.world is not world:
            pair = pair_of(policy, world, settings)
            m = pair.arbiter.limits.size
            if m != settings.limits:
                raise InvalidProblem(f"run {run} has {m} thresholds, and run 0 has {settings.limits}; all must agree")
        trace = one_run(policy, pair.arbiter, settings, run)
        row: list[Any] = [values[None] for values in trace[1:]]
        parts.append(result_of(pair, Trace(trace.ends, *row), np.array([run], dtype=np.int64)))
    result = merged(parts)
    own = [part.manifest["thresholds"] for part in parts]
    return replace(result, manifest={} if pairs.policy is not None else {"thresholds_of_runs": own})


def play_on_device(pairs: Pairs, settings: Settings, runs: Sequence[int]) -> Result:
    """Do the same on a GPU, where all runs share one policy and one world."""
    from stagewise.simulation.gpu import play as gpu

    if not pairs.fixed:
        raise InvalidProblem("backend is 'cuda', which plays runs of one world, and each run has its own; use 'cpu'")
    pair, numbers = pair_of(*pairs(0), settings), np.array(runs, dtype=np.int64)
    m = pair.arbiter.world.costs
    traces = gpu.play(
        pair.policy, pair.arbiter, settings.rounds, settings.record, signed(settings.seed), numbers, settings.audit
    )
    traces = traces._replace(cost=traces.cost[:, :, :m], largest=traces.largest[:, :m])
    return replace(result_of(pair, Trace(recorded(settings.rounds, settings.record), *traces), numbers), manifest={})


def pair_of(policy: Any, world: World, settings: Settings) -> Pair:
    """Return who judges a pair, and what a theorem allows it."""
    bound = settings.bound
    if settings.audit and bound is None:
        bound = bound_values(policy, world, recorded(settings.rounds, settings.record))
    return Pair(policy, judge(policy, world), bound)


def result_of(pair: Pair, rows: Trace, runs: Ints) -> Result:
    """Return the records of runs, one a row, as a result in the user's own direction."""
    arbiter = pair.arbiter
    signs, m = arbiter.signs[1:], arbiter.limits.size
    audit = (
        None
        if pair.bound is None
        else {
            "first_violation": rows.audit[:, FIRST].copy(),
            "hopeless": rows.audit[:, HOPELESS].copy(),
            "settled": rows.audit[:, SETTLED].copy(),
            "missed": rows.audit[:, MISSED:].copy(),
            "margin": arbiter.limits - rows.largest[:, :m],
            "bound": np.broadcast_to(pair.bound, rows.regret.shape),
        }
    )
    return Result(
        rounds=rows.ends,
        regret=rows.regret,
        reward=rows.reward,
        cost=rows.cost * signs,
        max_cost=rows.largest * signs,
        violations=rows.running[:, 2].astype(np.int64),
        optimum=rows.best,
        runs=runs,
        manifest={"thresholds": dict(zip(arbiter.thresholds.names, arbiter.thresholds.values.tolist(), strict=True))},
        audit=audit,
    )
