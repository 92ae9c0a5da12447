"""Categories in a context: a decision and its learning step by name, and a million rows encoded.

The same problem with eight numbers, and with two categories as well: microseconds of processor time a round, and
seconds for the rows. Run `python benchmarks/contexts.py [--rows N]`. Compare numbers of one run.
"""

import argparse
import os
import time

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


def problem(categories: bool) -> sw.Problem:
    """Return a problem with eight numbers, and perhaps two categories."""
    return sw.Problem(
        actions=["nothing", "digest", "offer"], safe="nothing", reward=sw.Reward("click"),
        context={**NUMBERS, **CATEGORIES} if categories else NUMBERS,
        limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")},
    )  # fmt: skip


def columns(rows: int) -> dict[str, np.ndarray]:
    """Return the context of some users, by column."""
    random = np.random.default_rng(1)
    texts = {name: random.choice(np.array(values, dtype=object), rows) for name, values in VALUES.items()}
    return {name: random.random(rows) for name in NUMBERS} | texts


def measure_round(asked: sw.Problem, rounds: int = 5_000) -> float:
    """Return the microseconds of a decision and its outcome."""
    names, table = list(asked.context), columns(1024)
    users = [{name: table[name].tolist()[i] for name in names} for i in range(1024)]
    agent, best = sw.Agent(asked), float("inf")
    for _ in range(4):
        begin = time.process_time()
        for t in range(rounds):
            agent.learn(agent.decide(users[t & 1023]).id, click=0.0, opt_out=0.0)
        best = min(best, (time.process_time() - begin) / rounds * 1e6)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    plain, full = measure_round(problem(categories=False)), measure_round(problem(categories=True))
    print(f"decide and learn: {plain:.1f} us with eight numbers, {full:.1f} us with two categories as well")
    table, begin = columns(rows), time.process_time()
    encoded = problem(categories=True).encode_columns(table, rows)
    print(f"encode {rows:,} rows to {encoded.features.shape[1]} features: {time.process_time() - begin:.2f} s")


if __name__ == "__main__":
    main()
