"""Time the best safe mixture: our kernels, HiGHS started from its last basis, and one bare pass over the data.

    python benchmarks/mixture.py

The rounds are those of a bandit: one arm was played since the last round, so one reward and its costs have moved, and
HiGHS is told of those alone. The arms on an arc are all corners of their hull, which takes the most passes. A bare pass
is the fastest loop we know that reads every reward and every cost once. All calls are made from Python; every value of
HiGHS is checked against ours.
"""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import highspy
import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.mixture import anybody_reaches, best_pair
from stagewise.kernels.simplex import OPTIMAL, best_mixture, scratch_shape

SAFE_REWARD, SAFE_COST, LIMIT = 0.1, 0.05, 0.5


class Arms(NamedTuple):
    """Optimistic rewards, pessimistic costs, and how often each arm was played."""

    reward: Floats
    cost: Floats
    count: Floats


class Timing(NamedTuple):
    """Microseconds."""

    highs: float
    ours: float
    bare: float


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


def play(arms: Arms, arm: int, random: np.random.Generator) -> None:
    """Play an arm once more: its bounds come closer, each by its own chance."""
    closer = 1.0 - np.sqrt((arms.count[arm] + 1.0) / (arms.count[arm] + 2.0))
    arms.reward[arm] *= 1.0 - closer * random.random()
    arms.cost[:, arm] *= 1.0 - closer * random.random(len(arms.cost))
    arms.count[arm] += 1.0


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


def solve_again(solver: highspy.Highs, arms: Arms, arm: int) -> None:
    """Tell HiGHS about one arm, and let it go on from its last basis."""
    solver.changeColCost(arm, arms.reward[arm])
    for row in range(len(arms.cost)):
        solver.changeCoeff(row, arm, arms.cost[row, arm])
    solver.run()


def our_solver(arms: Arms) -> Callable[[], tuple[list[int], list[float]]]:
    """Return what solves these arms: the pair under one limit, the simplex under several, with room set aside."""
    rows, columns = arms.cost.shape
    safe_cost, limits = np.full(rows, SAFE_COST), np.full(rows, LIMIT)
    support, shares = np.zeros(rows + 1, dtype=np.int64), np.zeros(rows + 1)
    basis, gains = np.zeros(scratch_shape(rows)), np.zeros(columns)
    only_cost = arms.cost[0]

    def pair() -> tuple[list[int], list[float]]:
        found = best_pair(arms.reward, only_cost, SAFE_REWARD, SAFE_COST, LIMIT)
        return [found.cheap, found.dear], [1.0 - found.share, found.share]

    def mixture() -> tuple[list[int], list[float]]:
        status = best_mixture(arms.reward, arms.cost, SAFE_REWARD, safe_cost, limits, support, shares, basis, gains)
        assert status == OPTIMAL
        return support.tolist(), shares.tolist()

    return pair if rows == 1 else mixture


def microseconds(call: Callable[[], object], times: int) -> float:
    """Return how long one call takes, from the mean of several."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return 1e6 * (time.perf_counter() - start) / times


def timing(arms: Arms, rounds: int) -> Timing:
    """Play some rounds and return the median times of a round."""
    random = np.random.default_rng(0)
    highs, ours = solved_model(arms), our_solver(arms)
    repeats = max(1, 20_000 // arms.reward.size)
    everything = np.ascontiguousarray(arms.cost[0])
    times = []
    ours()
    for _ in range(rounds):
        support, shares = ours()
        arm = max(support)
        play(arms, arm, random)
        slow = microseconds(lambda arm=arm: solve_again(highs, arms, arm), 1)
        fast = microseconds(ours, repeats)
        bare = microseconds(lambda: anybody_reaches(1e9, arms.reward, everything, 0.3, LIMIT), repeats)
        support, shares = ours()
        value = sum(s * (arms.reward[a] if a >= 0 else SAFE_REWARD) for a, s in zip(support, shares, strict=True))
        assert np.isclose(value, highs.getInfo().objective_function_value, rtol=1e-6)
        times.append(Timing(slow, fast, bare))
    return Timing(*(statistics.median(column) for column in zip(*times, strict=True)))


def main() -> None:
    """Print the table."""
    print(
        f"{'arms':>9} {'limits':>6} {'':7} {'HiGHS':>11} {'ours':>9} {'bare pass':>9} {'HiGHS/ours':>10} {'ours/bare':>9}"
    )
    for size, constraints, rounds, draw in [
        (10, 1, 300, bandit_arms),
        (100, 1, 300, bandit_arms),
        (10_000, 1, 30, bandit_arms),
        (1_000_000, 1, 5, bandit_arms),
        (100, 1, 300, arc_arms),
        (10_000, 1, 30, arc_arms),
        (1_000_000, 1, 5, arc_arms),
        (100, 3, 300, bandit_arms),
    ]:
        highs, ours, bare = timing(draw(np.random.default_rng(size), size, constraints), rounds)
        kind = draw.__name__.removesuffix("_arms")
        print(
            f"{size:>9,} {constraints:>6} {kind:7} {highs:>8,.1f} μs {ours:>6,.1f} μs {bare:>6,.1f} μs "
            f"{highs / ours:>10,.0f} {ours / bare:>9,.1f}"
        )


if __name__ == "__main__":
    main()
