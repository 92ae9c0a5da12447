"""Runs of a forecast: day after day, from one start, in the world that each run has of its own."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.context import fill_rows
from stagewise.kernels.draw import signed
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import State
from stagewise.policies.totals import totals_of
from stagewise.simulation.compiled import Compiled
from stagewise.simulation.executors import Processes, Workers, opened, performed
from stagewise.simulation.judge import judge
from stagewise.simulation.progress import bar
from stagewise.simulation.recording import empty_trace, recorded
from stagewise.worlds.logged import LoggedWorld

PARTS = 4  # tasks for each process, so that none waits long for another
EXACT = 9  # digits of what is counted: sums out of running means are off by rounding
SHOWS = 5_000_000  # rounds from which a bar is worth showing


class Player(NamedTuple):
    """A policy, and what it has learned."""

    policy: ContextCAPS
    learned: State


class Length(NamedTuple):
    """How much is played, and from which seed."""

    days: int
    users: int  # a day
    seed: int

    @property
    def rounds(self) -> int:
        """All of a run."""
        return self.days * self.users


class Days(NamedTuple):
    """Runs of one policy, day by day; all values are scaled to [0, 1], in the user's own direction."""

    reward: Floats  # (runs, days) true expected reward of a user
    cost: Floats  # (runs, days, m)
    safe: Floats  # (runs, days, 1 + m) what the safe action would have come to with the same users
    counted: Floats  # (runs, days, 1 + m) what was seen of a user, on average
    given: Floats  # (runs, days, K) shares of the users who got each action
    over: Floats  # (runs, m) 1: in some round the true expected cost was over the limit
    unsafe: Floats  # (runs, m) 1: the safe action itself is, for some users
    untold: Floats  # (runs, m) 1: it costs more than was declared, for some users


def joined(parts: Sequence[Days]) -> Days:
    """Return runs one after the other."""
    return Days(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def played(
    worlds: Any, players: Sequence[Player], runs: int, length: Length, executor: Workers = None, progress: bool = True
) -> list[Days]:
    """Return all runs of every player; run i has the same world and the same users for all of them."""
    rounds = runs * length.rounds * len(players)
    with opened(executor, runs, rounds) as workers, bar(progress and rounds >= SHOWS, runs, rounds // runs) as tell:
        pieces = np.array_split(np.arange(runs), min(runs, 1 if workers is None else PARTS * 2))
        pieces = [np.array([run]) for run in range(runs)] if workers is None else pieces
        tasks = {place: (worlds, players, piece.tolist(), length) for place, piece in enumerate(pieces)}
        done = {}
        if isinstance(workers, Processes):  # compiled here once, and not by every process at the same time
            some(worlds, players, [0], Length(1, 1, length.seed))
        for place, found in performed(some, tasks, workers):
            done[place] = found
            tell(len(pieces[place]))
    return [joined([done[place][which] for place in range(len(pieces))]) for which in range(len(players))]


def some(worlds: Any, players: Sequence[Player], runs: Sequence[int], length: Length) -> list[Days]:
    """Play some runs of every player, one after the other."""
    found: list[list[Days]] = [[] for _ in players]
    for run in runs:
        world = worlds(run)
        safe = safe_days(world, run, length)
        for place, player in enumerate(players):
            found[place].append(one(player, world, safe, run, length))
    return [joined(each) for each in found]


def safe_days(world: LoggedWorld, run: int, length: Length) -> Floats:
    """Return what the safe action comes to with the users of every day (days, 1 + m)."""
    users, rows = world.actions, np.empty(length.rounds, dtype=np.int64)
    fill_rows(rows, len(users.table), signed(length.seed), run, 0)
    means = world.table[:, :, users.safe][:, rows]
    return np.asarray(means.reshape(len(means), length.days, length.users).mean(axis=2).T)


def one(player: Player, world: LoggedWorld, safe: Floats, run: int, length: Length) -> Days:
    """Play one run."""
    policy, arbiter = player.policy, judge(player.policy, world)
    trace = empty_trace(recorded(length.rounds, length.days), world.costs)
    game = Compiled(policy, arbiter, trace, signed(length.seed), run, player.learned)
    before, counted, given = totals_of(policy, game.state), [], []
    for day in range(length.days):
        game.play(day * length.users, (day + 1) * length.users)
        after = totals_of(policy, game.state)
        today = after.since(before)
        counted.append(np.round(today.sums.sum(axis=1) / length.users, EXACT) + 0.0)  # there is one zero
        given.append(today.pulls[0] / length.users)
        before = after
    signs, m = arbiter.signs[1:], arbiter.limits.size
    over = (trace.largest[:m] > arbiter.limits).astype(np.float64)
    most = arbiter.safe_means[1 : 1 + m]
    unsafe, untold = (most > arbiter.limits).astype(np.float64), (most > policy.declared_costs).astype(np.float64)
    seen = (trace.reward, trace.cost * signs, safe, np.array(counted), np.array(given))
    return Days(*(each[np.newaxis] for each in (*seen, over, unsafe, untold)))
