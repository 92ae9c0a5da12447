"""Categories and scores in a context: a decision and its learning step by name, and a million rows encoded.

The same problem with eight numbers, with two categories as well, and with a limit for every bucket of a risk score:
microseconds of processor time a round (the least of stretches of 500 that take turns), and seconds for the rows. Run
`python benchmarks/contexts.py [--rows N] [--chunks 40]`. Compare numbers of one run.
"""

import argparse
import math
import os
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("STAGEWISE_COMPILE", "always")

import numpy as np

import stagewise as sw

NUMBERS = {f"x{i}": (0, 1) for i in range(8)}
CATEGORIES = {
    "plan": sw.Category(["free", "basic", "pro"]),
    "country": sw.Category(["AU", "DE", "NZ", "UK", "US"], other=True, missing="other"),
}
VALUES = {"plan": ["free", "basic", "pro"], "country": ["AU", "DE", "NZ", "UK", "US", "FR", None]}


CUTS = [0.1 * i for i in range(1, 10)]
WEIGHTS = {"x0": 0.4, "x1": 0.3, "x2": 0.2, "plan=pro": 0.1, "country=US": -0.1, "country=other": 0.1}
KINDS = {
    "eight numbers": None,
    "two categories as well": None,
    "and a risk score": "risk",
    "and a fitted risk score": sw.RiskScore("fitted", cuts=CUTS, weights=WEIGHTS),
}


def problem(kind: str) -> sw.Problem:
    """Return a problem with eight numbers, and perhaps two categories and a limit for every bucket of a score."""
    limit: dict[str, Any] = {"model": "rates"} if KINDS[kind] is None else {"score": KINDS[kind]}
    return sw.Problem(
        action_names=["nothing", "digest", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        context=NUMBERS if kind == "eight numbers" else {**NUMBERS, **CATEGORIES},
        limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, **limit)},
    )  # fmt: skip


def columns(rows: int) -> dict[str, np.ndarray]:
    """Return the context of some users, by column."""
    random = np.random.default_rng(1)
    texts = {name: random.choice(np.array(values, dtype=object), rows) for name, values in VALUES.items()}
    return {name: random.random(rows) for name in [*NUMBERS, "risk"]} | texts


def measure_rounds(chunks: int, rounds: int = 500) -> dict[str, float]:
    """Return the microseconds of a decision and its outcome, the least of many short stretches, by kind of problem."""
    table, best = columns(1024), dict.fromkeys(KINDS, math.inf)
    agents, users = {}, {}
    for kind in KINDS:
        asked = problem(kind)
        agents[kind] = sw.Agent(asked)
        users[kind] = [{name: table[name].tolist()[i] for name in asked.context_names} for i in range(1024)]
    for chunk in range(chunks):
        for kind, agent in agents.items():
            begin = time.process_time()
            for t in range(chunk * rounds, (chunk + 1) * rounds):
                agent.learn(agent.decide(users[kind][t & 1023]).id, click=0.0, opt_out=0.0)
            best[kind] = min(best[kind], (time.process_time() - begin) / rounds * 1e6)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--chunks", type=int, default=40, help="of 500 rounds")
    asked = parser.parse_args()
    for kind, taken in measure_rounds(asked.chunks).items():
        print(f"decide and learn: {taken:.1f} us with {kind}")
    table = columns(asked.rows)
    for kind in list(KINDS)[1:] if asked.rows else []:
        begin = time.process_time()
        encoded = problem(kind).encode_columns(table, asked.rows)
        width = encoded.features.shape[1]
        print(f"encode {asked.rows:,} rows with {kind} to {width} features: {time.process_time() - begin:.2f} s")


if __name__ == "__main__":
    main()
