"""Simulate the runs of a forecast by day, each in its own world."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.moving_means import LAG
from stagewise.engine.random import to_signed_seed
from stagewise.engine.world_draws import fill_row_indices
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.policy import PolicyState
from stagewise.simulation.compiled_run import CompiledRun
from stagewise.simulation.executors import RestartingPool, Workers, open_executor, progress_bar, run_tasks
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import compute_recorded_rounds, empty_trace
from stagewise.worlds.moving_world import MovingWorld
from stagewise.worlds.user_table_world import UserTableWorld

TASKS_PER_PROCESS = 4  # so that no process waits long
DECIMALS = 9  # sums from running means have rounding errors
PROGRESS_ROUNDS = 5_000_000  # rounds from which a progress bar is shown


class TrainedPolicy(NamedTuple):
    """A policy and its trained state."""

    policy: SafeContextPosteriorSampling
    warm_start: PolicyState


class Horizon(NamedTuple):
    """Days, users per day and seed."""

    days: int
    users: int  # a day
    seed: int

    @property
    def rounds(self) -> int:
        return self.days * self.users


class DailyRuns(NamedTuple):
    """Runs of one policy by day; all values are scaled to [0, 1], in their declared direction."""

    reward: Floats  # (runs, days) true expected reward per user
    cost: Floats  # (runs, days, m)
    safe: Floats  # (runs, days, 1 + m) true means of the safe action, with the same users
    observed: Floats  # (runs, days, 1 + m) mean outcomes per user
    action_shares: Floats  # (runs, days, K) shares of users by action
    runs_over_limit: Floats  # (runs, m) 1: the true expected cost of some round is over the limit
    safe_action_over_limit: Floats  # (runs, m) 1: the safe action is over the limit for some users
    safe_cost_underdeclared: Floats  # (runs, m) 1: it costs more than declared for some users


def concatenate_runs(parts: Sequence[DailyRuns]) -> DailyRuns:
    return DailyRuns(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def simulate_runs(
    worlds: Any,
    players: Sequence[TrainedPolicy],
    runs: int,
    horizon: Horizon,
    executor: Workers = None,
    progress: bool = True,
) -> list[DailyRuns]:
    """Simulate all runs of every policy; run i has the same world and users for all of them."""
    rounds = runs * horizon.rounds * len(players)
    with (
        open_executor(executor, runs, rounds) as workers,
        progress_bar(progress and rounds >= PROGRESS_ROUNDS, runs, rounds // runs) as advance,
    ):
        pieces = np.array_split(np.arange(runs), min(runs, 1 if workers is None else TASKS_PER_PROCESS * 2))
        pieces = [np.array([run]) for run in range(runs)] if workers is None else pieces
        tasks = {index: (worlds, players, piece.tolist(), horizon) for index, piece in enumerate(pieces)}
        results = {}
        if isinstance(workers, RestartingPool):  # compile once, not in every process
            simulate_some(worlds, players, [0], Horizon(1, 1, horizon.seed))
        for index, part in run_tasks(simulate_some, tasks, workers):
            results[index] = part
            advance(len(pieces[index]))
    return [
        concatenate_runs([results[index][player] for index in range(len(pieces))]) for player in range(len(players))
    ]


def simulate_some(
    worlds: Any, players: Sequence[TrainedPolicy], runs: Sequence[int], horizon: Horizon
) -> list[DailyRuns]:
    by_player: list[list[DailyRuns]] = [[] for _ in players]
    for run in runs:
        world = worlds(run)
        safe = compute_safe_days(world, run, horizon)
        for index, player in enumerate(players):
            by_player[index].append(simulate_run(player, world, safe, run, horizon))
    return [concatenate_runs(each) for each in by_player]


def compute_safe_days(world: UserTableWorld | MovingWorld, run: int, horizon: Horizon) -> Floats:
    """Return the safe action's means with the users of every day (days, 1 + m); means that move, as at noon."""
    still: Any = world.world if isinstance(world, MovingWorld) else world
    users, rows = still.actions, np.empty(horizon.rounds, dtype=np.int64)
    fill_row_indices(rows, len(users.table), to_signed_seed(horizon.seed), run, 0)
    means = still.table[:, :, users.safe][:, rows]
    by_day = np.asarray(means.reshape(len(means), horizon.days, horizon.users).mean(axis=2).T)
    if isinstance(world, MovingWorld):
        middle = still.table.mean(axis=1)[:, users.safe]
        by_day = by_day + [world.means_on(day + 0.5)[:, users.safe] - middle for day in range(horizon.days)]
    return by_day


def simulate_run(
    player: TrainedPolicy, world: UserTableWorld | MovingWorld, safe: Floats, run: int, horizon: Horizon
) -> DailyRuns:
    """Simulate one run; where outcomes are learned late, it goes on until those of the last day are learned."""
    policy, oracle = player.policy, build_oracle(player.policy, world)
    lag = int(world.clock[LAG]) if isinstance(world, MovingWorld) else 0
    ends = compute_recorded_rounds(horizon.rounds, horizon.days)
    trace = empty_trace(ends if lag == 0 else np.append(ends, horizon.rounds + lag), world.costs)
    simulation = CompiledRun(policy, oracle, trace, to_signed_seed(horizon.seed), run, player.warm_start)
    before, observed, shares, played = policy.compute_totals(simulation.state), [], [], 0
    largest = trace.largest
    for stop in sorted({horizon.rounds, *((day + 1) * horizon.users + lag for day in range(horizon.days))}):
        simulation.play(played, stop)
        played = stop
        if stop == horizon.rounds:
            largest = trace.largest.copy()
        if stop >= lag + horizon.users and (stop - lag) % horizon.users == 0:  # the outcomes of a day are learned
            after = policy.compute_totals(simulation.state)
            today = after.since(before)
            observed.append(np.round(today.sums.sum(axis=1) / horizon.users, DECIMALS) + 0.0)  # no negative zero
            shares.append(today.pulls[0] / horizon.users)
            before = after
    signs, m = oracle.signs[1:], oracle.limits.size
    is_over = (largest[:m] > oracle.limits).astype(np.float64)
    safe_costs = oracle.safe_means[1 : 1 + m]
    safe_is_over, underdeclared = (
        (safe_costs > oracle.limits).astype(np.float64),
        (safe_costs > policy.declared_costs).astype(np.float64),
    )
    daily = (
        trace.reward[: horizon.days],
        trace.cost[: horizon.days] * signs,
        safe,
        np.array(observed),
        np.array(shares),
    )
    return DailyRuns(*(each[np.newaxis] for each in (*daily, is_over, safe_is_over, underdeclared)))
