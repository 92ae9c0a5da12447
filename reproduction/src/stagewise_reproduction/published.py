"""The settings of the authors' public code (`stored.REPOSITORY`); they are not offered as policies."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.loop import VIOLATIONS, Trace
from stagewise.policies.lclucb import LCLUCB
from stagewise.problem.safe_action import SafeAction
from stagewise.reports.result import Result
from stagewise.simulation.run import compute_recorded_rounds, empty_trace
from stagewise.worlds.finite_worlds import ArmsWorld
from stagewise_reproduction.cell import RECORD, SEED, Play
from stagewise_reproduction.instances import compute_optimum
from stagewise_reproduction.published_loops import RIDGE, play_arms, play_linear


def build_published_play(kind: str, build: Callable[[int], tuple[Any, Any]], rounds: int) -> Play:
    """Return a function that plays a run of "LC-LUCB", "Safe-LTS" or "OPB" with the settings of the public code.

    `build` returns a run's world, and a policy, of which only the threshold is used.
    """

    def play(run: int) -> Result:
        policy, world = build(run)
        threshold, best = np.array(policy.thresholds.values), compute_optimum(policy, world)
        started = time.perf_counter()
        trace = empty_trace(compute_recorded_rounds(rounds, RECORD), 1)
        if isinstance(world, ArmsWorld):
            play_arms_run(trace, world, threshold, best, run, rounds)
        else:
            play_linear_run(trace, world, threshold, best, kind == "Safe-LTS", run, rounds)
        limit = float(threshold[0])
        return Result(
            rounds=trace.ends,
            regret=trace.regret[None],
            reward=trace.reward[None],
            cost=trace.cost[None],
            max_cost=trace.largest[None],
            violations=np.array([int(trace.running[VIOLATIONS])], dtype=np.int64),
            optimum=trace.best[None],
            runs=np.array([run], dtype=np.int64),
            manifest={
                "policy": {"kind": f"{kind}, settings of the public code", "settings": {"threshold": limit}},
                "world": world.description(),
                "thresholds": {"cost": limit},
                "rounds": rounds,
                "seed": SEED,
                "seconds": time.perf_counter() - started,
            },
        )

    return play


def play_arms_run(trace: Trace, world: Any, threshold: Floats, best: float, run: int, rounds: int) -> None:
    """Play one run on arms."""
    means, scratch = world.table.copy(), np.zeros(5 * world.table.shape[1] + 6)
    play_arms(means, world.noise.copy(), world.kind, threshold, best, trace, scratch, SEED, run, rounds)


def play_linear_run(
    trace: Trace, world: Any, threshold: Floats, best: float, sampled: bool, run: int, rounds: int
) -> None:
    """Play one run on rays."""
    features = np.array(world.actions.features)
    count, d = features.shape
    means, scratch = np.ascontiguousarray(world.parameters @ features.T), np.zeros(4 * count + 4 * d + 20)
    safe, noise = SafeAction(features=np.zeros(d)), world.noise.copy()
    policy = LCLUCB(safe_action=safe, threshold=float(threshold[0]), noise=1.0, ridge=RIDGE, mean_cost_bound=None)
    memory = policy.rounds.cache(policy.start().memory, features)
    play_linear(
        policy.layout,
        policy.settings,
        memory,
        means,
        noise,
        threshold,
        sampled,
        best,
        trace,
        scratch,
        SEED,
        run,
        rounds,
    )
