"""Runs, played one after the other or all at once on a GPU, as one result."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.random import to_signed_seed
from stagewise.engine.trace import (
    FIRST_NEAR_OPTIMAL_ROUND,
    FIRST_VIOLATION,
    INTERVAL_MISSES,
    OPTIMISM_FAILURES,
    VIOLATIONS,
    Trace,
    audit_size,
    running_size,
)
from stagewise.policies.policy import PolicyState
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.reports.regret_bound import compute_bound_values
from stagewise.reports.result import Result, merge_results
from stagewise.simulation.compiled_run import CompiledRun
from stagewise.simulation.oracle import Oracle, PolicyWorlds, build_oracle
from stagewise.simulation.python_run import PythonRun

CHUNK_ROUNDS = 200_000  # rounds between two looks at the keyboard
AUDIT_COUNTS = {
    "first_violation": FIRST_VIOLATION,
    "optimism_failures": OPTIMISM_FAILURES,
    "first_near_optimal_round": FIRST_NEAR_OPTIMAL_ROUND,
}


class RunSettings(NamedTuple):
    """How runs are played, for any policy and world."""

    rounds: int
    record_points: int  # points kept of each
    seed: int
    backend: str
    audit: bool
    limits: int  # how many every run has
    bound: Floats | None = None  # what a theorem allows, reckoned once where all runs have the same policy and world
    warm_start: PolicyState | None = None  # what every run has learned before

    @property
    def points(self) -> int:
        """The number of recorded points."""
        return min(self.rounds, self.record_points)


def compute_recorded_rounds(rounds: int, points: int) -> Ints:
    """Return the rounds (counted from 1) that close the intervals: evenly spaced, the last round among them."""
    count = min(rounds, points)
    return np.arange(1, count + 1, dtype=np.int64) * rounds // count


def empty_trace(ends: Ints, costs: int, audited: bool = False, runs: tuple[int, ...] = ()) -> Trace:
    """Return the record of a run that has not begun; with `runs`, of so many, on a first axis more."""
    points = (*runs, ends.size)
    return Trace(
        ends,
        np.zeros(points),
        np.zeros(points),
        np.zeros((*points, costs)),
        np.zeros(points),
        np.full((*runs, costs), -np.inf),
        np.zeros((*runs, running_size(costs))),
        np.zeros((*runs, audit_size(costs) if audited else 0), dtype=np.int64),
    )


def play_run(policy: Any, oracle: Oracle, settings: RunSettings, run: int) -> Trace:
    """Return the trace of one run; it depends only on these arguments."""
    rounds = settings.rounds
    trace = empty_trace(compute_recorded_rounds(rounds, settings.record_points), oracle.world.costs, settings.audit)
    kind = CompiledRun if settings.backend == "cpu" else PythonRun
    player = kind(policy, oracle, trace, to_signed_seed(settings.seed), run, settings.warm_start)
    for first in range(0, rounds, CHUNK_ROUNDS):
        player.play(first, min(first + CHUNK_ROUNDS, rounds))
    return trace


def play(pairs: PolicyWorlds, settings: RunSettings, runs: Sequence[int]) -> Result:
    """Play these runs; the caller completes the manifest."""
    start = time.perf_counter()
    result = play_on_device(pairs, settings, runs) if settings.backend == "cuda" else play_each(pairs, settings, runs)
    own = {} if pairs.policy is not None else {"thresholds_of_runs": result.manifest["thresholds_of_runs"]}
    return replace(result, manifest={**own, "seconds": time.perf_counter() - start})


def compile_loop(pairs: PolicyWorlds, settings: RunSettings, run: int) -> None:
    """Play one round, so that the loop is compiled once, and not in every process."""
    if settings.backend != "python":
        play(pairs, settings._replace(rounds=1, record_points=1, bound=None), [run])


def play_each(pairs: PolicyWorlds, settings: RunSettings, runs: Sequence[int]) -> Result:
    parts: list[Result] = []
    for run in runs:
        if not (parts and pairs.fixed):
            policy, world = pairs(run)
            oracle, bound = build_oracle(policy, world), compute_bound(policy, world, settings)
            m = oracle.limits.size
            if m != settings.limits:
                template = "run {run} has {m} thresholds, and run 0 has {limits}; all runs must have the same number"
                raise InvalidProblem(ErrorCode.WORLD_MISMATCH, template, run=run, m=m, limits=settings.limits)
        trace = play_run(policy, oracle, settings, run)
        row: list[Any] = [values[None] for values in trace[1:]]
        parts.append(build_result(oracle, bound, Trace(trace.ends, *row), np.array([run], dtype=np.int64)))
    return merge_results(parts)


def play_on_device(pairs: PolicyWorlds, settings: RunSettings, runs: Sequence[int]) -> Result:
    """Play all runs on a GPU; they share one policy and one world."""
    from stagewise.simulation.gpu import play_batches as gpu

    if not pairs.fixed:
        text = "backend is 'cuda', which plays all runs in one world, and here each run has its own; use backend='cpu'"
        raise InvalidProblem(ErrorCode.UNSUPPORTED_BACKEND, text)
    policy, world = pairs(0)
    oracle, numbers = build_oracle(policy, world), np.array(runs, dtype=np.int64)
    how = (settings.rounds, settings.record_points, to_signed_seed(settings.seed), numbers, settings.audit)
    return build_result(oracle, compute_bound(policy, world, settings), gpu.play(policy, oracle, *how), numbers)


def compute_bound(policy: Any, world: Any, settings: RunSettings) -> Floats | None:
    """Return the regret bound of a theorem at the recorded rounds; None without an audit."""
    if not settings.audit or settings.bound is not None:
        return settings.bound
    return compute_bound_values(policy, world, compute_recorded_rounds(settings.rounds, settings.record_points))


def build_result(oracle: Oracle, bound: Floats | None, rows: Trace, runs: Ints) -> Result:
    """Return the traces of runs as a result, in the user's direction."""
    signs, limits = oracle.signs[1:], oracle.thresholds
    audit = (
        {
            **{name: rows.audit[:, index].copy() for name, index in AUDIT_COUNTS.items()},
            "missed": rows.audit[:, INTERVAL_MISSES:].copy(),
            "margin": oracle.limits - rows.largest[:, : oracle.limits.size],
            "bound": np.broadcast_to(bound, rows.regret.shape),
        }
        if bound is not None
        else None
    )
    own = dict(zip(limits.names, limits.values.tolist(), strict=True))
    return Result(
        rounds=rows.ends,
        regret=rows.regret,
        reward=rows.reward,
        cost=rows.cost * signs,
        max_cost=rows.largest * signs,
        violations=rows.running[:, VIOLATIONS].astype(np.int64),
        optimum=rows.best,
        runs=runs,
        manifest={"thresholds_of_runs": [own] * len(runs)},
        audit=audit,
        safe=np.tile(oracle.safe_on_average(), (len(runs), 1)),
    )
