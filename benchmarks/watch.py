"""What the watch over declared values prevents: rounds over the limit where noise or radius are ten times too small.

.venv/bin/python benchmarks/watch.py
"""

import argparse
import dataclasses

import stagewise as sw
from stagewise_reproduction.showcase import CASES

NAMES = ("LC-LUCB, world ten times as noisy", "LC-LUCB, radius ten times too small")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2000)
    asked = parser.parse_args()
    print("| what is wrong | watch | runs over the limit | rounds over it, a run |")
    print("|---|---|---|---|")
    for case in CASES:
        if case.name not in NAMES:
            continue
        for watch in (False, True):
            policy = dataclasses.replace(case.policy, check_assumptions=watch)
            result = sw.simulate(
                policy, case.world, rounds=asked.rounds, runs=asked.runs, record_points=1, progress=False
            )
            over = result.violations
            print(f"| {case.name} | {watch} | {(over > 0).mean():.1%} | {over.mean():.2f} |")


if __name__ == "__main__":
    main()
