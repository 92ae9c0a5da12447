"""Time one cone program of OPLB: CVXPY's parametrised re-solve, our call, and a whole decision, from one run.

    python benchmarks/cone.py

The programs are those of a run with fresh actions in every round, recorded first; each solver then replays them in a
loop of its own, one solve a round, so that each finds its own caches warm. CVXPY states the problem once, with
parameters, in the form its rules for parameters allow (the norm bounds a variable that the costs share), and is given
the numbers of every round; it calls the same solver, Clarabel. Ours includes stating the problem, the certificate and
the way back to the limits. Times are processor times, best of three replays, a round; values are checked against each
other. Without CVXPY its column is empty.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.policies import oplb
from stagewise.rules.cone_program import Columns, Mixture, find_best_mixture_in_cone

ROUNDS = 100
SIZES = [(4, 12, 1), (4, 12, 3), (10, 100, 1), (10, 100, 3)]


class Program(NamedTuple):
    """One round's cone program."""

    columns: Columns
    gains: Floats


def units(random: np.random.Generator, count: int, d: int) -> Floats:
    """Draw directions."""
    rows = random.normal(size=(count, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def recorded(d: int, count: int, m: int) -> tuple[list[Program], float]:
    """Play a run with fresh actions in every round; return its programs, and the time of a whole decision."""
    random = np.random.default_rng([d, count, m])
    reward = units(random, 1, d)
    costs = reward + units(random, m, d)
    truth = np.vstack([reward, costs / np.linalg.norm(costs, axis=1, keepdims=True)])
    safe = sw.SafeAction(features=np.zeros(d))
    policy = sw.OPLB(safe_action=safe, threshold=[0.2] * m, noise=0.1, method="socp")
    state, programs, spent = policy.start(), [], 0.0

    def kept(columns: Columns, gains: Floats) -> Mixture:
        programs.append(Program(columns, gains))
        return find_best_mixture_in_cone(columns, gains)

    oplb.find_best_mixture_in_cone = kept
    for round_ in range(ROUNDS):
        actions = sw.FiniteSet(units(random, count, d))
        started = time.process_time()
        decision = policy.decide(state, actions, sw.RandomKey(0, 0, round_))
        spent += time.process_time() - started
        observed = truth @ decision.action + 0.1 * random.normal(size=1 + m)
        state = policy.learn(state, decision, sw.Outcome(float(observed[0]), observed[1:].tolist()))
    oplb.find_best_mixture_in_cone = find_best_mixture_in_cone
    return programs, spent / ROUNDS


def by_cvxpy(example: Columns) -> Callable[[Program], float] | None:
    """Return CVXPY's solve of a program of this size, or None without CVXPY."""
    try:
        import cvxpy
    except ImportError:
        return None
    (m, count), n = example.costs.shape, len(example.images)
    gains, costs, images = cvxpy.Parameter(count), cvxpy.Parameter((m, count)), cvxpy.Parameter((n, count))
    radii, limits = cvxpy.Parameter(m, nonneg=True), cvxpy.Parameter(m)
    shares, width = cvxpy.Variable(count, nonneg=True), cvxpy.Variable()
    rules = [cvxpy.sum(shares) == 1, cvxpy.norm(images @ shares) <= width, costs @ shares + radii * width <= limits]
    problem = cvxpy.Problem(cvxpy.Maximize(gains @ shares), rules)
    assert problem.is_dpp()

    def solve(program: Program) -> float:
        columns = program.columns
        gains.value, costs.value, images.value = program.gains, columns.costs, columns.images
        radii.value, limits.value = columns.radii, columns.limits
        problem.solve(solver=cvxpy.CLARABEL)
        return float(problem.value)

    return solve


def timed(solve: Callable[[Program], Any], programs: list[Program]) -> tuple[float, list[Any]]:
    """Return the time a program takes, at best of three replays, and the answers."""
    best, answers = np.inf, []
    for _ in range(3):
        started = time.process_time()
        answers = [solve(program) for program in programs]
        best = min(best, (time.process_time() - started) / len(programs))
    return best, answers


def main() -> None:
    """Print a row for every size."""
    print("| d | actions | limits | CVXPY, µs | ours, µs | ratio | whole decision, µs |\n|---|---|---|---|---|---|---|")
    for d, count, m in SIZES:
        programs, total = recorded(d, count, m)
        ours, found = timed(lambda program: find_best_mixture_in_cone(*program), programs)
        theirs, ratio, solve = "", "", by_cvxpy(programs[0].columns)
        if solve is not None:
            taken, values = timed(solve, programs)
            assert all(
                abs(one.value - other) <= 1e-5 * max(1.0, other) for one, other in zip(found, values, strict=True)
            )
            theirs, ratio = f"{1e6 * taken:.0f}", f"{ours / taken:.2f}"
        print(f"| {d} | {count} | {m} | {theirs} | {1e6 * ours:.0f} | {ratio} | {1e6 * total:.0f} |", flush=True)


if __name__ == "__main__":
    main()
