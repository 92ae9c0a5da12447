"""Time the best safe mixture: HiGHS started from its last basis, our kernels, and one bare pass over the data.

    python benchmarks/mixture.py

The rounds are those of a bandit: one arm was played since the last round, so one reward and its costs have moved, and
HiGHS is told of those alone. The rounds are recorded first; then each solver replays them in a loop of its own, one
solve a round, so that each finds its own caches warm and nobody solves the same program twice. Ours is timed as it is
called from Python, as HiGHS is, and as it is called in a simulation, from compiled code. The arms on an arc are all
corners of their hull, which takes the most passes. A bare pass is the fastest loop we know that reads every reward and
every cost once. Times are processor times, because on a shared machine the clock on the wall counts other people's
work, and the best of three replays (HiGHS above 100 arms: of one). The values of HiGHS are checked against ours.
"""

import time
from typing import NamedTuple

import highspy
import numpy as np

from stagewise.engine.compile import Floats, Ints, kernel
from stagewise.engine.pair import any_exceeds, find_best_pair
from stagewise.engine.simplex import find_best_mixture, scratch_shape

SAFE_REWARD, SAFE_COST, LIMIT = 0.1, 0.05, 0.5


class Arms(NamedTuple):
    """Optimistic rewards, pessimistic costs, and how often each arm was played."""

    reward: Floats
    cost: Floats
    plays: Floats


class Moves(NamedTuple):
    """What moved before each round: which arm, to which reward, to which costs."""

    arm: Ints
    reward: Floats
    cost: Floats


class Room(NamedTuple):
    """What the simplex needs besides the arms."""

    safe_cost: Floats
    limits: Floats
    support: Ints
    shares: Floats
    basis: Floats
    gains: Floats


def bandit_arms(random: np.random.Generator, arms: int, constraints: int) -> Arms:
    """Draw arms in the middle of a run: the less an arm was played, the wider its bounds."""
    count = np.floor(3.0 * random.pareto(0.7, arms))
    width = np.sqrt(2.0 * np.log(1e6) / np.maximum(count, 1.0))
    reward = np.where(count == 0, 0.0, random.random(arms)) + 5.0 * width
    cost = np.where(count == 0, 0.0, random.random((constraints, arms))) + width
    return Arms(reward, np.minimum(cost, 1.0), count)


def arc_arms(random: np.random.Generator, arms: int, constraints: int) -> Arms:
    """Draw arms that are all corners of their hull."""
    angle = random.uniform(0.0, np.pi / 2, arms)
    return Arms(1.0 + np.sin(angle), np.tile(1.0 - np.cos(angle), (constraints, 1)), np.ones(arms))


def copied(arms: Arms) -> Arms:
    """Return arms that may be moved without moving these."""
    return Arms(*(column.copy() for column in arms))


def room_for(arms: Arms) -> Room:
    """Set the room of the simplex aside."""
    rows, columns = arms.cost.shape
    support, shares = np.zeros(rows + 1, dtype=np.int64), np.zeros(rows + 1)
    basis, gains = np.zeros(scratch_shape(rows)), np.zeros(columns)
    return Room(np.full(rows, SAFE_COST), np.full(rows, LIMIT), support, shares, basis, gains)


def recorded(arms: Arms, rounds: int) -> Moves:
    """Play the dearest arm of the best mixture in every round; its bounds come closer, each by its own chance."""
    random, arms, room = np.random.default_rng(0), copied(arms), room_for(arms)
    moves = Moves(np.zeros(rounds, dtype=np.int64), np.zeros(rounds), np.zeros((rounds, len(arms.cost))))
    for round_ in range(rounds):
        solve(arms.reward, arms.cost, room)
        arm = room.support[room.shares > 0.0].max()
        closer = 1.0 - np.sqrt((arms.plays[arm] + 1.0) / (arms.plays[arm] + 2.0))
        arms.reward[arm] *= 1.0 - closer * random.random()
        arms.cost[:, arm] *= 1.0 - closer * random.random(len(arms.cost))
        arms.plays[arm] += 1.0
        moves.arm[round_], moves.reward[round_], moves.cost[round_] = arm, arms.reward[arm], arms.cost[:, arm]
    return moves


@kernel
def solve(reward: Floats, cost: Floats, room: Room) -> float:
    """Return the value of the best mixture: the pair under one limit, the simplex under several."""
    if room.limits.size == 1:
        pair = find_best_pair(reward, cost[0], SAFE_REWARD, SAFE_COST, LIMIT)
        room.support[0], room.support[1] = pair.cheap, pair.costly
        room.shares[0], room.shares[1] = 1.0 - pair.share, pair.share
    else:
        find_best_mixture(
            reward,
            cost,
            SAFE_REWARD,
            room.safe_cost,
            room.limits,
            room.support,
            room.shares,
            room.basis,
            room.gains,
        )
    value = 0.0
    for index in range(room.support.size):
        action = room.support[index]
        value += room.shares[index] * (SAFE_REWARD if action < 0 else reward[action])
    return value


@kernel
def replay_compiled(reward: Floats, cost: Floats, room: Room, moves: Moves, values: Floats) -> None:
    """Solve every round in compiled code."""
    for round_ in range(values.size):
        reward[moves.arm[round_]] = moves.reward[round_]
        for row in range(room.limits.size):
            cost[row, moves.arm[round_]] = moves.cost[round_, row]
        values[round_] = solve(reward, cost, room)


def by_compiled(arms: Arms, moves: Moves) -> tuple[float, Floats]:
    """Return the microseconds a round takes us in compiled code, and the values."""
    arms, room, values = copied(arms), room_for(arms), np.zeros(moves.arm.size)
    start = time.process_time()
    replay_compiled(arms.reward, arms.cost, room, moves, values)
    return 1e6 * (time.process_time() - start) / values.size, values


def by_python(arms: Arms, moves: Moves) -> tuple[float, Floats]:
    """Return the microseconds a round takes us when called from Python; the values are those of compiled code."""
    arms, room = copied(arms), room_for(arms)
    reward, cost, only_cost, single = arms.reward, arms.cost, arms.cost[0], len(arms.cost) == 1
    changes = list(zip(moves.arm.tolist(), moves.reward.tolist(), moves.cost.tolist(), strict=True))
    start = time.process_time()
    for arm, new_reward, new_costs in changes:
        reward[arm] = new_reward
        for row, new_cost in enumerate(new_costs):
            cost[row, arm] = new_cost
        if single:
            find_best_pair(reward, only_cost, SAFE_REWARD, SAFE_COST, LIMIT)
        else:
            find_best_mixture(reward, cost, SAFE_REWARD, *room)
    return 1e6 * (time.process_time() - start) / len(changes), np.zeros(0)


def by_highs(arms: Arms, moves: Moves) -> tuple[float, Floats]:
    """Return the microseconds a round takes HiGHS from its last basis, and the values."""
    solver, values = solved_model(arms), np.zeros(moves.arm.size)
    changes = list(zip(moves.arm.tolist(), moves.reward.tolist(), moves.cost.tolist(), strict=True))
    start = time.process_time()
    for round_, (arm, new_reward, new_costs) in enumerate(changes):
        solver.changeColCost(arm, new_reward)
        for row, new_cost in enumerate(new_costs):
            solver.changeCoeff(row, arm, new_cost)
        solver.run()
        values[round_] = solver.getObjectiveValue()
    return 1e6 * (time.process_time() - start) / len(changes), values


def by_bare_pass(arms: Arms, moves: Moves) -> tuple[float, Floats]:
    """Return the microseconds of one pass over the rewards and the first costs, called from Python."""
    only_cost = arms.cost[0]
    start = time.process_time()
    for _ in range(moves.arm.size):
        any_exceeds(1e9, arms.reward, only_cost, 0.3, LIMIT)
    return 1e6 * (time.process_time() - start) / moves.arm.size, np.zeros(0)


def solved_model(arms: Arms) -> highspy.Highs:
    """Return a solver that has solved these arms once; its last column is the safe action."""
    rows, columns = arms.cost.shape
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns + 1, rows + 1
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.append(arms.reward, SAFE_REWARD)
    model.col_lower_, model.col_upper_ = np.zeros(columns + 1), np.full(columns + 1, highspy.kHighsInf)
    model.row_lower_ = np.append(np.full(rows, -highspy.kHighsInf), 1.0)
    model.row_upper_ = np.append(np.full(rows, LIMIT), 1.0)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(columns + 2) * (rows + 1)
    model.a_matrix_.index_ = np.tile(np.arange(rows + 1), columns + 1)
    costs = np.hstack([arms.cost, np.full((rows, 1), SAFE_COST)])
    model.a_matrix_.value_ = np.vstack([costs, np.ones(columns + 1)]).T.ravel()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.silent()
    solver.setOptionValue("threads", 1)
    solver.passModel(model)
    solver.run()
    return solver


def main() -> None:
    """Print the table."""
    print("                              microseconds a round                       HiGHS/ours        ours/bare")
    print("     arms limits               HiGHS   ours, Python  compiled   bare   Python  compiled    Python")
    for size, constraints, rounds, draw in [
        (10, 1, 1000, bandit_arms),
        (100, 1, 1000, bandit_arms),
        (10_000, 1, 30, bandit_arms),
        (1_000_000, 1, 3, bandit_arms),
        (100, 1, 1000, arc_arms),
        (10_000, 1, 5, arc_arms),
        (100, 3, 1000, bandit_arms),
    ]:
        arms = draw(np.random.default_rng(size), size, constraints)
        moves = recorded(arms, rounds)
        by_python(arms, moves), by_bare_pass(arms, moves)
        highs, values = by_highs(arms, moves)
        assert np.allclose(by_compiled(arms, moves)[1], values, rtol=1e-6, atol=0.0)
        if size <= 100:  # a first solve of the larger programs takes HiGHS longer than all that is timed here
            highs = min(highs, by_highs(arms, moves)[0], by_highs(arms, moves)[0])
        python, compiled, bare = (
            min(timed(arms, moves)[0] for _ in range(3)) for timed in (by_python, by_compiled, by_bare_pass)
        )
        print(
            f"{size:>9,} {constraints:>6} {draw.__name__.removesuffix('_arms'):7} {highs:>11,.1f} {python:>14,.2f} "
            f"{compiled:>9,.2f} {bare:>6,.2f} {highs / python:>8,.0f} {highs / compiled:>9,.0f} {python / bare:>9,.1f}"
        )


if __name__ == "__main__":
    main()
