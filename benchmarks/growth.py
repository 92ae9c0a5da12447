"""How a round grows: nanoseconds against the dimension, the number of rays and the number of arms, with the slopes.

Run `python benchmarks/growth.py`; it prints a table and draws growth.png beside this file. The slope is that of the
last two points on logarithmic scales; "theory" is the exponent of the operation count for large sizes.
"""

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

import stagewise as sw
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import RunSettings, play_run

mpl.use("Agg")
import matplotlib.pyplot as plt

BUDGET = 0.4  # seconds a point


class Curve(NamedTuple):
    """One line of the picture."""

    name: str
    letter: str  # what grows
    sizes: list[int]
    theory: float
    nanoseconds: list[float]


def rows(count: int, d: int, seed: int = 1) -> np.ndarray:
    """Return unit vectors."""
    drawn = np.random.default_rng(seed).normal(size=(count, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def linear(kind: Any, actions: Any, d: int) -> tuple[Any, Any]:
    """Return a linear policy and its world."""
    theta, mu = np.abs(rows(2, d, 7))
    policy = kind(safe_action=sw.SafeAction(features=np.zeros(d)), threshold=0.5, noise=0.1)
    return policy, sw.LinearWorld(reward=theta, cost=mu, actions=actions, noise=0.1)


def arms(count: int) -> tuple[Any, Any]:
    """Return OPB and its Bernoulli arms."""
    rng = np.random.default_rng(count)
    reward, cost = np.append(0.1, rng.uniform(size=count - 1)), np.append(0.0, rng.uniform(size=count - 1))
    policy = sw.OPB(
        arms=count, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.3, interval="hoeffding"
    )
    return policy, sw.ArmsWorld(reward=reward, cost=cost, outcomes="bernoulli")


def per_round(policy: Any, world: Any) -> float:
    """Return nanoseconds a round: the difference of a long and a short play, so that the start does not count."""

    def seconds(rounds: int) -> float:
        started = time.perf_counter()
        arbiter = build_oracle(policy, world)
        play_run(policy, arbiter, RunSettings(rounds, 10, 0, "cpu", False, arbiter.limits.size), 0)
        return time.perf_counter() - started

    seconds(10)
    start, rounds = min(seconds(10) for _ in range(3)), 20
    while seconds(rounds) < start + 0.05 and rounds < 10**6:
        rounds *= 4
    rounds = max(20, min(int(rounds * BUDGET / max(seconds(rounds) - start, 1e-3)), 10**6))
    return min(seconds(rounds) - start for _ in range(2)) / (rounds - 10) * 1e9


def measured(name: str, letter: str, sizes: list[int], theory: float, make: Any) -> Curve:
    """Return one curve."""
    curve = Curve(name, letter, sizes, theory, [per_round(*make(size)) for size in sizes])
    steepness = math.log(curve.nanoseconds[-1] / curve.nanoseconds[-2]) / math.log(sizes[-1] / sizes[-2])
    cells = ", ".join(
        f"{letter} = {size:,}: {value:,.0f}" for size, value in zip(sizes, curve.nanoseconds, strict=True)
    )
    print(f"{name}\n  {cells} ns; slope {steepness:.2f}, theory {theory:g}", flush=True)
    return curve


def main() -> None:
    """Print the table and draw the picture."""
    many = [10, 100, 1000, 10_000]
    curves = [
        measured(
            "LC-LUCB, 10 fixed rays",
            "d",
            [5, 10, 20, 50, 100],
            1,
            lambda d: linear(sw.LCLUCB, sw.RaySet(rows(10, d)), d),
        ),
        measured(
            "LC-LUCB, 10 fresh rays",
            "d",
            [5, 10, 20, 50, 100],
            2,
            lambda d: linear(sw.LCLUCB, sw.RandomRaySet(count=10, dimension=d), d),
        ),
        measured("LC-LUCB, fixed rays, d = 10", "M", many, 1, lambda m: linear(sw.LCLUCB, sw.RaySet(rows(m, 10)), 10)),
        measured(
            "LC-LUCB, fresh rays, d = 10",
            "M",
            many,
            1,
            lambda m: linear(sw.LCLUCB, sw.RandomRaySet(count=m, dimension=10), 10),
        ),
        measured("OPLB, fixed set, d = 10", "K", many, 1, lambda k: linear(sw.OPLB, sw.FiniteSet(rows(k, 10)), 10)),
        measured("OPB", "K", [*many, 100_000, 1_000_000], 1, arms),
    ]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for curve, marker in zip(curves, "osD^vP", strict=True):
        axis = axes[0] if curve.letter == "d" else axes[1]
        axis.loglog(curve.sizes, curve.nanoseconds, marker=marker, label=curve.name)
    axes[0].set_xlabel("dimension d")
    axes[1].set_xlabel("rays M, actions K, arms K")
    for axis in axes:
        axis.set_ylabel("nanoseconds a round")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    target = Path(__file__).with_name("growth.png")
    figure.savefig(target, dpi=150)
    print(f"drawn: {target.name}")


if __name__ == "__main__":
    main()
