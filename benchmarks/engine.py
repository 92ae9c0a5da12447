"""Whole simulations beside C++ and vectorised NumPy: nanoseconds a round, one thread, and the regrets they end with.

Run `make bench`, or `python benchmarks/engine.py`. The C++ is compiled on the spot (witness/loops.cpp) and shares our
random numbers, so that its regret is a check of ours. Ratios are from one run on one machine.
"""

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numba
import numpy as np

import stagewise as sw
from stagewise.engine.random import ACTIONS, fill_normal
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import RunSettings, play_run
from witness.witness import compiler, library

D, NOISE, DELTA = 10, 0.1, 0.05
Play = Callable[[int], float]  # rounds → final regret


class Work(NamedTuple):
    """One line of the table."""

    name: str
    rounds: int
    ours: Play
    cpp: Play
    numpy: Play | None
    bar: float  # at most so many times C++


def directions(count: int, seed: int) -> np.ndarray:
    """Return unit vectors."""
    rows = np.random.default_rng(seed).normal(size=(count, D))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


THETA, MU = np.abs(directions(2, 7))
SAFE = sw.SafeAction(features=np.zeros(D))


def played(policy: Any, world: Any) -> Play:
    """Return our compiled loop."""
    arbiter = build_oracle(policy, world)
    m = arbiter.limits.size
    return lambda rounds: float(play_run(policy, arbiter, RunSettings(rounds, 1000, 0, "cpu", False, m), 0).regret[-1])


def linear(kind: Any, actions: Any, threshold: float, **settings: Any) -> Play:
    """Return our loop for a linear policy, with the ridge that the others have."""
    policy = kind(safe_action=SAFE, threshold=threshold, noise=NOISE, delta=DELTA, ridge=1.0, **settings)
    return played(policy, sw.LinearWorld(reward=THETA, cost=MU, actions=actions, noise=NOISE))


def linear_cpp(name: str, table: np.ndarray, threshold: float) -> Play:
    """Return the C++ loop for it."""
    function = getattr(library(), name)
    return lambda rounds: function(table, len(table), D, THETA, MU, NOISE, threshold, DELTA, rounds, 0)


def arms(count: int) -> tuple[Play, Play]:
    """Return our loop for OPB with so many Bernoulli arms, and C++'s."""
    rng = np.random.default_rng(count)
    reward = np.concatenate([[0.1], rng.uniform(size=count - 1)])
    cost = np.concatenate([[0.0], rng.uniform(size=count - 1)])
    policy = sw.OPB(
        arms=count, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.3, interval="hoeffding"
    )
    world = sw.ArmsWorld(reward=reward, cost=cost, outcomes="bernoulli")
    confidence, blind = policy.model.confidence, policy.model.blind / 0.5
    return played(policy, world), lambda rounds: library().opb(reward, cost, count, 0.3, confidence, blind, rounds, 0)


def numpy_lc_lucb(targets: np.ndarray | None, threshold: float) -> Play:
    """Return LC-LUCB vectorised over the rays in NumPy; no targets: fresh ones every round."""

    def play(rounds: int) -> float:
        rng = np.random.default_rng(0)
        inverse, fits, log_det, regret = np.eye(D), np.zeros((2, D)), 0.0, 0.0
        truth, lift = np.stack([THETA, MU]), 1.0 + 2.0 / threshold
        rays = targets
        for _ in range(rounds):
            if targets is None:
                rays = rng.normal(size=(10, D))
                rays /= np.linalg.norm(rays, axis=1, keepdims=True)
            means = rays @ truth.T
            safe = np.where(means[:, 1] <= threshold, 1.0, threshold / np.maximum(means[:, 1], threshold))
            best = max(0.0, (safe * means[:, 0]).max())
            radius = np.sqrt(NOISE**2 * (log_det + 2.0 * np.log(2.0 / DELTA)) + 1.0)
            widths = np.sqrt(np.einsum("ij,ij->i", rays @ inverse, rays))
            estimates = rays @ fits.T
            costly = np.minimum(estimates[:, 1] + radius * widths, 1.0)
            steps = np.where(costly <= threshold, 1.0, threshold / np.maximum(costly, threshold))
            chosen = int(np.argmax(steps * (estimates[:, 0] + lift * radius * widths)))
            action = steps[chosen] * rays[chosen]
            mean = truth @ action
            outcome = mean + NOISE * rng.normal(size=2)
            regret += best - mean[0]
            gain = inverse @ action
            form = 1.0 + action @ gain
            fits += np.outer((outcome - fits @ action) / form, gain)
            inverse -= np.outer(gain, gain) / form
            log_det += np.log(form)
        return regret

    return play


def works() -> list[Work]:
    """Return the lines of the table."""
    rays, listed = directions(10, 1), directions(20, 2)
    few, many = arms(4), arms(1000)
    return [
        Work(
            "LC-LUCB, 10 fixed rays",
            1_000_000,
            linear(sw.LCLUCB, sw.RaySet(rays), 0.5),
            linear_cpp("lc_lucb_fixed", rays, 0.5),
            numpy_lc_lucb(rays, 0.5),
            1.5,
        ),
        Work(
            "the same beside roots in C++",
            1_000_000,
            linear(sw.LCLUCB, sw.RaySet(rays), 0.5),
            linear_cpp("lc_lucb_fixed_root", rays, 0.5),
            None,
            1.5,
        ),
        Work(
            "LC-LUCB, 10 fresh rays",
            200_000,
            linear(sw.LCLUCB, sw.RandomRaySet(count=10, dimension=D), 0.5),
            linear_cpp("lc_lucb_fresh", rays, 0.5),
            numpy_lc_lucb(None, 0.5),
            1.5,
        ),
        Work(
            "Safe-LTS, 10 fixed rays",
            1_000_000,
            linear(sw.SafeLTS, sw.RaySet(rays), 0.5),
            linear_cpp("safe_lts_fixed", rays, 0.5),
            None,
            2.0,
        ),
        Work(
            "OPLB, 20 fixed actions",
            1_000_000,
            linear(sw.OPLB, sw.FiniteSet(listed), 0.3),
            linear_cpp("oplb_fixed", listed, 0.3),
            None,
            2.0,
        ),
        Work("OPB, 4 arms", 1_000_000, *few, None, 2.0),
        Work("OPB, 1,000 arms", 100_000, *many, None, 2.0),
    ]


@numba.njit
def draw_hundreds(out: np.ndarray, times: int) -> float:
    """Draw a hundred normal numbers again and again, as fresh rays do."""
    total = 0.0
    for t in range(times):
        fill_normal(out, 0, 0, t, ACTIONS)
        total += out[0]
    return total


def timed(play: Play, rounds: int, times: int) -> tuple[float, float]:
    """Return nanoseconds of processor time a round, the best of several plays, and the regret."""
    play(min(rounds, 1000))
    seconds, regret = np.inf, 0.0
    for _ in range(times):
        started = time.thread_time()
        regret = play(rounds)
        seconds = min(seconds, time.thread_time() - started)
    return seconds / rounds * 1e9, regret


def main() -> None:
    """Print the table."""
    print(f"nanoseconds of processor time a round, one thread, d = {D}; the C++ is by {compiler()}")
    print(f"{'':28} {'ours':>8} {'C++':>8} {'NumPy':>8} {'ours/C++':>9} {'bar':>5} {'NumPy/ours':>11} {'regrets':>22}")
    for work in works():
        ours, regret = timed(work.ours, work.rounds, 7)
        cpp, witness = timed(work.cpp, work.rounds, 7)
        base = timed(work.numpy, 20_000, 1)[0] if work.numpy else np.nan
        print(
            f"{work.name:28} {ours:8.0f} {cpp:8.0f} {base:8.0f} {ours / cpp:9.2f} {work.bar:5.1f} {base / ours:11.0f}"
            f"{regret:12.3f}{witness:11.3f}"
        )
    normals = timed(lambda times: float(draw_hundreds(np.empty(100), times)), 20_000, 3)[0]
    print(f"a hundred normal numbers, as fresh rays draw them: {normals:.0f} ns")


if __name__ == "__main__":
    main()
