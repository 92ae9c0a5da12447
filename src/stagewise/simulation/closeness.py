"""How close to its limits a policy plays: a few of a certificate's runs, in which every single round is looked at."""

from typing import Any

import numpy as np

from stagewise.simulation.judge import judge
from stagewise.simulation.pairs import Pairs
from stagewise.simulation.run import Settings, one_run

PART = 50  # of so many runs one
MOST = {"cpu": 2_000_000, "python": 2_000}  # rounds in all: a second or a few
MET = 1e-9  # what is left counts as nothing, relative to a limit above 1


def closeness(pairs: Pairs, plan: dict[str, Any], played: int) -> dict[str, Any]:
    """Return, of the first of these runs, in how many rounds each limit was met exactly, and what a round left of it.

    Runs of a GPU are played here on the processor: whoever verifies need not have one. They are audited for the sake of
    the loop alone: the certificate's own runs have had it compiled.
    """
    backend = "python" if plan["backend"] == "python" else "cpu"
    rounds = min(plan["rounds"], MOST[backend])
    runs = max(1, min(played // PART, MOST[backend] // rounds))
    found = [left_in(pairs, Settings(rounds, rounds, plan["seed"], backend, True, 0), run) for run in range(runs)]
    met, left = (np.sum(column, axis=0) for column in zip(*found, strict=True))
    limits = [
        {"met": int(count), "left": float(total / (runs * rounds))} for count, total in zip(met, left, strict=True)
    ]
    return {"runs": runs, "rounds": runs * rounds, "limits": limits}


def left_in(pairs: Pairs, settings: Settings, run: int) -> tuple[Any, Any]:
    """Return of one run, for each limit: the rounds that met it exactly, and what all rounds left of it."""
    policy, world = pairs(run)
    arbiter = judge(policy, world)
    limits = arbiter.limits
    left = limits - one_run(policy, arbiter, settings, run).cost[:, : limits.size]
    return (np.abs(left) <= MET * np.maximum(1.0, np.abs(limits))).sum(axis=0), left.sum(axis=0)
