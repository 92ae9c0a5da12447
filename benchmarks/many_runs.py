"""Many runs: two workers beside one, and the memory of 10⁷ rounds × 100 runs.

Run `python benchmarks/many_runs.py [--full]`. The memory test is a 50th of that size unless `--full` is given, which
takes some minutes: what is kept of a run depends on `record`, not on its rounds, so both peaks should be the same.
"""

import argparse
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import stagewise as sw

D = 10


def problem() -> tuple[sw.LCLUCB, sw.LinearWorld]:
    """Return LC-LUCB and ten fixed rays."""
    rows = np.random.default_rng(1).normal(size=(12, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    world = sw.LinearWorld(reward=np.abs(rows[0]), cost=np.abs(rows[1]), actions=sw.RaySet(rows[2:]), noise=0.1)
    return sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(D)), threshold=0.5, noise=0.1), world


def workers() -> None:
    """Print the seconds that one worker and two take for the same runs, after both are warm."""
    policy, world = problem()
    seconds = {}
    for count in (1, 2):
        with ProcessPoolExecutor(count) as pool:
            sw.simulate(policy, world, rounds=1000, runs=2 * count, executor=pool, progress=False)
            started = time.perf_counter()
            sw.simulate(policy, world, rounds=5_000_000, runs=8, executor=pool, progress=False)
            seconds[count] = time.perf_counter() - started
    ratio = seconds[1] / seconds[2]
    print(f"8 runs of 5·10⁶ rounds: one worker {seconds[1]:.1f} s, two {seconds[2]:.1f} s, ratio {ratio:.2f} (bar 1.7)")


def memory(rounds: int, runs: int) -> None:
    """Print the largest memory of the process and of its workers."""
    policy, world = problem()
    started = time.perf_counter()
    result = sw.simulate(policy, world, rounds=rounds, runs=runs, record_points=1000)
    own, workers = (
        resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(
        f"{runs} runs of {rounds:,} rounds, record_points=1000: {time.perf_counter() - started:.0f} s; "
        f"this process {own:.0f} MB, the largest worker {workers:.0f} MB (bar 500 MB); "
        f"violations {int(result.violations.sum())}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--memory", action="store_true", help="only the memory, in this process")
    options = parser.parse_args()
    if options.memory:
        memory(10_000_000 if options.full else 200_000, 100)
    else:
        workers()
        command = [sys.executable, __file__, "--memory", *(["--full"] if options.full else [])]
        subprocess.run(command, check=True)  # a fresh process, whose peak is its own
