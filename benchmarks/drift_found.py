"""How soon a drift is found: opt-outs of an offer go from 1 % to 3 % in every group, where 2 % are allowed.

.venv/bin/python benchmarks/drift_found.py [--jumps] [--jobs 1]

With --jumps the limit has drift="jumps": the offer alone is held back, and the table says in how many runs.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import stagewise as sw


def found(groups: int, before: int, most: int, drift: str | None, seed: int) -> tuple[int, int] | None:
    """Return after how many more users a drift is found, and how many offers they got; None: not within so many."""
    by = "group" if groups else None
    limits = {"opt_out": sw.Limit(0.02, safe_bound=0.005, by=by, drift=drift)}
    problem = sw.Problem(action_names=["plain", "offer"], safe_name="plain", reward=sw.Reward("click"), limits=limits)
    agent, chance, offers = sw.Agent(problem, seed=seed), np.random.default_rng(seed), 0
    for user in range(before + most):
        decision: Any = agent.decide({"group": f"g{chance.integers(groups)}"} if groups else {}, now=float(user))
        changes = [] if drift is None else agent._learned.statistics.warnings.values()
        is_pooled = any(one.details["segment"] is None for one in changes)
        if is_pooled or "drift of opt_out" in agent._learned.statistics.alerts:
            return (user - before, offers) if user >= before else (-1, 0)
        offer, late = decision.action == "offer", user >= before
        offers += offer and late
        rate = (0.03 if late else 0.01) if offer else 0.004
        clicks = chance.random() < (0.09 if offer else 0.04)
        agent.learn(decision.id, click=float(clicks), opt_out=float(chance.random() < rate), now=float(user))
    return None


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--before", type=int, default=60_000)
    parser.add_argument("--most", type=int, default=60_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--jumps", action="store_true")
    parser.add_argument("--groups", type=int, nargs="+", default=[0, 4, 20])
    asked = parser.parse_args()
    print("| groups | found in | users until then: least, median, most | offers to them, median |")
    print("|---|---|---|---|")
    for groups in asked.groups:
        drift = "jumps" if asked.jumps else None
        with ProcessPoolExecutor(asked.jobs) as pool:
            results = list(pool.map(partial(found, groups, asked.before, asked.most, drift), range(asked.runs)))
        observed = np.array([one for one in results if one is not None])
        users = (
            f"{observed[:, 0].min():,}, {np.median(observed[:, 0]):,.0f}, {observed[:, 0].max():,}"
            if len(observed)
            else ""
        )
        offers = f"{np.median(observed[:, 1]):,.0f}" if len(observed) else ""
        print(f"| {groups or 'none'} | {len(observed)} of {asked.runs} | {users} | {offers} |", flush=True)


if __name__ == "__main__":
    main()
