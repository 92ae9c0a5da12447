"""The unit ball as a convex set beside the paper's sampled rays to its boundary: regret, time a round, violations, gap.

The instances are those of the sphere experiment (noise 0.1, threshold uniform on [0, 1]); regret is against the best
point of the whole ball, whatever the policy was offered. Rays are played by the compiled loops, the ball by hand, with
a solver in every round.

Run `python benchmarks/convex_sets.py [--rounds N] [--instances N] [--dimensions 5 10]`. Times are from one machine.
"""

import argparse
import os
import time
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import stagewise as sw
from stagewise.simulation.oracle import build_oracle
from stagewise_reproduction.instances import at_zero
from stagewise_reproduction.paper.figure_2.plan import draw_instance

POLICIES = {"LC-LUCB": sw.LCLUCB, "ROFUL": sw.ROFUL}
SEED, NOISE = 0, 0.1


class Played(NamedTuple):
    """What one run came to."""

    regret: float  # against the ball
    microseconds: float  # a round
    violations: int
    solver_gap: float  # mean over the rounds; not a number where there is none


def truth(d: int, run: int) -> tuple[np.ndarray, float]:
    """Return the parameters (2, d) and the threshold of an instance."""
    world, threshold = draw_instance(d, run, NOISE)
    return world.parameters, threshold


def world_with(actions: object, parameters: np.ndarray) -> sw.LinearWorld:
    return sw.LinearWorld(reward=parameters[0], cost=parameters[1], actions=actions, noise=NOISE)


def on_rays(kind: type, d: int, run: int, rounds: int, actions: object) -> Played:
    """Play rays, fixed or fresh, in the compiled loop."""
    parameters, threshold = truth(d, run)
    policy, ball = (
        kind(safe_action=at_zero(d), threshold=threshold, noise=NOISE, ridge=1.0),
        world_with(sw.BallSet(1.0), parameters),
    )
    best = build_oracle(policy, ball).best(ball.actions)
    result = sw.simulate(
        policy, world_with(actions, parameters), rounds=rounds, runs=[run], seed=SEED, record_points=1, progress=False
    )
    spent = result.manifest["seconds"] / rounds * 1e6
    return Played(rounds * (best - float(result.reward[0, 0])), spent, int(result.violations[0]), np.nan)


def in_ball(kind: type, d: int, run: int, rounds: int) -> Played:
    """Play the ball by hand."""
    parameters, threshold = truth(d, run)
    policy, world = (
        kind(safe_action=at_zero(d), threshold=threshold, noise=NOISE, ridge=1.0),
        world_with(sw.BallSet(1.0), parameters),
    )
    best, state = build_oracle(policy, world).best(world.actions), policy.start()
    regret, broken, gaps, spent = 0.0, 0, 0.0, 0.0
    for round_ in range(rounds):
        draw = sw.RandomKey(SEED, run, round_)
        started = time.perf_counter()
        decision = policy.decide(state, world.actions, draw)
        spent += time.perf_counter() - started
        reward, cost = world.means(decision.action)
        regret, broken, gaps = regret + best - reward, broken + (cost > threshold), gaps + decision.solver_gap
        outcome = world.outcome(decision.action, draw)
        started = time.perf_counter()
        state = policy.learn(state, decision, outcome)
        spent += time.perf_counter() - started
    return Played(regret, spent / rounds * 1e6, int(broken), gaps / rounds)


def fixed(count: int, d: int, run: int) -> sw.RaySet:
    """Return rays to points uniform on the sphere, the same in every round."""
    rows = np.random.default_rng([SEED, count, d, run]).normal(size=(count, d))
    return sw.RaySet(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[5, 10])
    settings = parser.parse_args()
    for kind in POLICIES.values():  # compiled before anything is timed
        on_rays(kind, 2, 0, 2, fixed(3, 2, 0))
        on_rays(kind, 2, 0, 2, sw.RandomRaySet(count=3, dimension=2))
    print(f"{settings.rounds:,} rounds, {settings.instances} instances; means over instances (± standard error)")
    print(f"{'':5}{'policy':<9}{'actions':<20}{'regret':>10}{'':>9}{'us/round':>10}{'violations':>12}{'mean gap':>10}")
    for d in settings.dimensions:
        for name, kind in POLICIES.items():
            rows = {}
            for count in (100, 1000):
                rows[f"{count} fixed rays"] = lambda run, c=count, k=kind, d=d: on_rays(
                    k, d, run, settings.rounds, fixed(c, d, run)
                )
                rows[f"{count} fresh rays"] = lambda run, c=count, k=kind, d=d: on_rays(
                    k, d, run, settings.rounds, sw.RandomRaySet(count=c, dimension=d)
                )
            rows["the ball"] = lambda run, k=kind, d=d: in_ball(k, d, run, settings.rounds)
            for label, play in rows.items():
                played = [play(run) for run in range(settings.instances)]
                regret = np.array([one.regret for one in played])
                deviation = regret.std(ddof=1) / len(regret) ** 0.5 if len(regret) > 1 else np.nan
                spent = np.mean([one.microseconds for one in played])
                broken, gap = sum(one.violations for one in played), np.mean([one.solver_gap for one in played])
                print(
                    f"d={d:<3}{name:<9}{label:<20}{regret.mean():>10,.1f} ± {deviation:>6,.1f}{spent:>10,.1f}"
                    f"{broken:>12}{gap:>10.2g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
