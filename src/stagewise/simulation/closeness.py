"""How close to its limits a policy plays, from every round of a few runs."""

from typing import Any

import numpy as np

from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.policy_worlds import PolicyWorlds
from stagewise.simulation.run import RunSettings, play_run

RUNS_PER_SAMPLE = 50  # of so many runs one
MAX_ROUNDS = {"cpu": 2_000_000, "python": 2_000}  # rounds in all: a second or a few
TOLERANCE = 1e-9  # what is left counts as nothing, relative to a limit above 1


def measure_closeness(pairs: PolicyWorlds, plan: dict[str, Any], played: int) -> dict[str, Any]:
    """Return, for the first runs, in how many rounds each limit was met exactly, and the mean slack.

    Runs of a GPU are replayed on the CPU, so that verification needs no GPU. They are audited only because the audited
    loop is compiled already.
    """
    backend = "python" if plan["backend"] == "python" else "cpu"
    rounds = min(plan["rounds"], MAX_ROUNDS[backend])
    runs = max(1, min(played // RUNS_PER_SAMPLE, MAX_ROUNDS[backend] // rounds))
    found = [
        measure_run(pairs, RunSettings(rounds, rounds, plan["seed"], backend, True, 0), run) for run in range(runs)
    ]
    met, left = (np.sum(column, axis=0) for column in zip(*found, strict=True))
    limits = [
        {"met": int(count), "left": float(total / (runs * rounds))} for count, total in zip(met, left, strict=True)
    ]
    return {"runs": runs, "rounds": runs * rounds, "limits": limits}


def measure_run(pairs: PolicyWorlds, settings: RunSettings, run: int) -> tuple[Any, Any]:
    """Return, for each limit, the rounds of a run that met it exactly, and the total slack."""
    policy, world = pairs(run)
    oracle = build_oracle(policy, world)
    limits = oracle.limits
    left = limits - play_run(policy, oracle, settings, run).cost[:, : limits.size]
    return (np.abs(left) <= TOLERANCE * np.maximum(1.0, np.abs(limits))).sum(axis=0), left.sum(axis=0)
