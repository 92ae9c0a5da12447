"""One run of a policy in a world, and its record as a result."""

from typing import Any

import numpy as np

from stagewise.kernels.audit import FIRST, HOPELESS, MISSED, SETTLED
from stagewise.kernels.compile import Ints
from stagewise.kernels.draw import signed
from stagewise.kernels.trace import Trace
from stagewise.reports.result import Result
from stagewise.simulation.compiled import Compiled
from stagewise.simulation.judge import judge
from stagewise.simulation.python import Hand
from stagewise.simulation.recording import empty_trace, recorded
from stagewise.worlds.world import World

STRETCH = 200_000  # rounds between two looks at the keyboard


def one_run(
    policy: Any, world: World, rounds: int, points: int, seed: int, run: int, backend: str, audit: bool = False
) -> Trace:
    """Return the record of one run; it depends on nothing but these arguments."""
    arbiter = judge(policy, world)
    trace = empty_trace(recorded(rounds, points), world.costs, audit)
    player = (Compiled if backend == "cpu" else Hand)(policy, arbiter, trace, signed(seed), run)
    for first in range(0, rounds, STRETCH):
        player.play(first, min(first + STRETCH, rounds))
    return trace


def result_of(policy: Any, world: World, trace: Trace, run: int, plan: dict[str, Any]) -> Result:
    """Return one run as a result, in the user's own direction."""
    signs = judge(policy, world).signs[1:]
    return Result(
        rounds=trace.ends,
        regret=trace.regret[None],
        reward=trace.reward[None],
        cost=(trace.cost * signs)[None],
        max_cost=(trace.largest * signs)[None],
        violations=np.array([int(trace.running[2])], dtype=np.int64),
        optimum=trace.best[None],
        runs=np.array([run], dtype=np.int64),
        manifest=dict(plan),
        audit=audit_of(trace) if trace.audit.size else None,
    )


def audit_of(trace: Trace) -> dict[str, Any]:
    """Return one run's audit as columns."""
    return audit_columns(trace.audit[None])


def audit_columns(audits: Ints) -> dict[str, Any]:
    """Return the audits (runs, 4 + m) of several runs as columns."""
    return {
        "first_violation": audits[:, FIRST].copy(),
        "hopeless": audits[:, HOPELESS].copy(),
        "settled": audits[:, SETTLED].copy(),
        "missed": audits[:, MISSED:].copy(),
    }
