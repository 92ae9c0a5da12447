"""Some runs, played one after the other or all at once on a GPU, as one result: all that a worker is ever asked for."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.audit import FIRST, HOPELESS, MISSED, SETTLED
from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.draw import signed
from stagewise.kernels.trace import VIOLATIONS, Trace
from stagewise.policies.policy import State
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.regret_bound import bound_values
from stagewise.reports.result import Result, merged
from stagewise.simulation.compiled import Compiled
from stagewise.simulation.judge import Judge, judge
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.python import Hand
from stagewise.simulation.recording import empty_trace, recorded

STRETCH = 200_000  # rounds between two looks at the keyboard
COUNTED = {"first_violation": FIRST, "hopeless": HOPELESS, "settled": SETTLED}


class Settings(NamedTuple):
    """How runs are played, whatever policy and world it is."""

    rounds: int
    record: int  # points kept of each
    seed: int
    backend: str
    audit: bool
    limits: int  # how many every run has
    bound: Floats | None = None  # what a theorem allows, reckoned once where all runs have the same policy and world
    learned: State | None = None  # what every run has learned before

    @property
    def points(self) -> int:
        """How many points there are of each."""
        return min(self.rounds, self.record)


def one_run(policy: Any, arbiter: Judge, settings: Settings, run: int) -> Trace:
    """Return the record of one run; it depends on nothing but these arguments."""
    rounds = settings.rounds
    trace = empty_trace(recorded(rounds, settings.record), arbiter.world.costs, settings.audit)
    kind = Compiled if settings.backend == "cpu" else Hand
    player = kind(policy, arbiter, trace, signed(settings.seed), run, settings.learned)
    for first in range(0, rounds, STRETCH):
        player.play(first, min(first + STRETCH, rounds))
    return trace


def play(pairs: Pairs, settings: Settings, runs: Sequence[int]) -> Result:
    """Play these runs; the manifest is left to the caller, but for limits that each run has of its own."""
    begun = time.perf_counter()
    result = play_on_device(pairs, settings, runs) if settings.backend == "cuda" else play_each(pairs, settings, runs)
    own = {} if pairs.policy is not None else {"thresholds_of_runs": result.manifest["thresholds_of_runs"]}
    return replace(result, manifest={**own, "seconds": time.perf_counter() - begun})


def play_each(pairs: Pairs, settings: Settings, runs: Sequence[int]) -> Result:
    """Play one run after the other."""
    parts: list[Result] = []
    for run in runs:
        if not (parts and pairs.fixed):
            policy, world = pairs(run)
            arbiter, bound = judge(policy, world), bound_for(policy, world, settings)
            m = arbiter.limits.size
            if m != settings.limits:
                raise InvalidProblem(f"run {run} has {m} thresholds, and run 0 has {settings.limits}; all must agree")
        trace = one_run(policy, arbiter, settings, run)
        row: list[Any] = [values[None] for values in trace[1:]]
        parts.append(result_of(arbiter, bound, Trace(trace.ends, *row), np.array([run], dtype=np.int64)))
    return merged(parts)


def play_on_device(pairs: Pairs, settings: Settings, runs: Sequence[int]) -> Result:
    """Do the same on a GPU, where all runs share one policy and one world."""
    from stagewise.simulation.gpu import play as gpu

    if not pairs.fixed:
        raise InvalidProblem("backend is 'cuda', which plays runs of one world, and each run has its own; use 'cpu'")
    policy, world = pairs(0)
    arbiter, numbers = judge(policy, world), np.array(runs, dtype=np.int64)
    how = (settings.rounds, settings.record, signed(settings.seed), numbers, settings.audit)
    return result_of(arbiter, bound_for(policy, world, settings), gpu.play(policy, arbiter, *how), numbers)


def bound_for(policy: Any, world: Any, settings: Settings) -> Floats | None:
    """Return what a theorem allows at the recorded rounds; None: no audit is kept."""
    if not settings.audit or settings.bound is not None:
        return settings.bound
    return bound_values(policy, world, recorded(settings.rounds, settings.record))


def result_of(arbiter: Judge, bound: Floats | None, rows: Trace, runs: Ints) -> Result:
    """Return the records of runs, one a row, as a result in the user's own direction."""
    signs, limits = arbiter.signs[1:], arbiter.thresholds
    audit = (
        {
            **{name: rows.audit[:, place].copy() for name, place in COUNTED.items()},
            "missed": rows.audit[:, MISSED:].copy(),
            "margin": arbiter.limits - rows.largest[:, : arbiter.limits.size],
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
        safe=np.tile(arbiter.safe_on_average(), (len(runs), 1)),
    )
