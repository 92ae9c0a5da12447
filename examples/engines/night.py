"""A night's table without an engine: decide for a file of users, send, and learn the outcomes of the next day.

    python examples/engines/night.py night

Writes users.parquet, decisions.parquet, outcomes.parquet and agent.json into a folder.
"""

import sys
from pathlib import Path

import numpy as np
from arro3.core import Array, DataType, RecordBatch

import stagewise as sw
from stagewise.files.tables import read_batches, write_batches

ACTIONS = ["nothing", "digest", "offer"]
PROBLEM = sw.Problem(
    action_names=ACTIONS,
    safe_name="nothing",
    context={"age": (18, 99), "opens_7d": (0, 7), "plan": sw.Category(["free", "pro"])},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.002, model="rates")},
)


def write_users(path: Path, count: int, seed: int = 1) -> None:
    """Write a table of users."""
    random = np.random.default_rng(seed)
    columns = {
        "user_id": Array.from_numpy(np.arange(count)),
        "age": Array.from_numpy(random.integers(18, 99, count).astype(float)),
        "opens_7d": Array.from_numpy(random.integers(0, 8, count).astype(float)),
        "plan": Array(["free", "pro"], DataType.string()).take(Array.from_numpy(random.integers(0, 2, count))),
    }
    write_batches(path, [RecordBatch.from_arrays(list(columns.values()), names=list(columns))])


def write_outcomes(path: Path, decisions: Path, seed: int = 2) -> None:
    """Write what users did: they click more often on offers, and opt out more often."""
    random, batches = np.random.default_rng(seed), []
    for batch in read_batches(decisions).batches:
        actions = np.array([ACTIONS.index(name) for name in batch.column("action").to_pylist()])
        clicks, opt_outs = (random.random(actions.size) < rate * actions for rate in (0.1, 0.004))
        columns = [batch.column("decision_id"), Array.from_numpy(clicks), Array.from_numpy(opt_outs)]
        batches.append(RecordBatch.from_arrays(columns, names=["decision_id", "click", "opt_out"]))
    write_batches(path, batches)


def main(folder: Path, count: int = 10_000, nights: int = 3) -> sw.Agent:
    """Play some nights: decide in the evening, learn in the morning, and save between."""
    agent = sw.Agent(PROBLEM, seed=7)
    for night in range(nights):
        users, outcomes, decisions = (folder / f"{name}.parquet" for name in ("users", "outcomes", "decisions"))
        write_users(users, count, seed=night)
        decided = agent.decide_frame(users, run=f"night {night}")
        write_batches(decisions, decided.to_batches())  # send from this file
        agent.save(folder / "agent.json")
        write_outcomes(outcomes, decisions, seed=night)
        statuses = agent.learn_outcomes(outcomes)["status"].to_pylist()
        agent.save(folder / "agent.json")
        chosen = decided["action"].to_pylist()
        shares = ", ".join(f"{name} {chosen.count(name) / count:.2f}" for name in ACTIONS)
        print(f"night {night}: {shares}; {statuses.count('accepted'):,} outcomes accepted")
    return agent


if __name__ == "__main__":
    where = Path(sys.argv[1] if len(sys.argv) > 1 else "night")
    where.mkdir(exist_ok=True)
    main(where)
