"""A night's table: decide for a million users, and learn their outcomes, Parquet in and out.

    python benchmarks/tables.py [--users 1000000] [--folder FOLDER]

Prints processor seconds of the process and its largest memory. Machine code is compiled before the clock starts.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from arro3.core import Array, DataType, RecordBatch, RecordBatchReader

import stagewise as sw
from stagewise.engine.batch import build_batch_decider, build_log_learner
from stagewise.engine.compile import ALL_ROWS, get_batch_rows
from stagewise.files.tables import read_batches, write_batches

ACTIONS = ["plain", "photo", "offer", "video", "poll", "story"]
COUNTRIES, DEVICES = ["NZ", "AU", "US", "GB", "DE"], ["phone", "tablet", "desktop"]
NUMBERS = [f"number_{index}" for index in range(8)]


def build_problem() -> sw.Problem:
    """Return the problem: 8 numbers, 2 categories, 6 actions, 2 limits."""
    return sw.Problem(
        action_names=ACTIONS, safe_name="plain", context=dict.fromkeys(NUMBERS, (0.0, 1.0)), reward=sw.Reward("click"),
        limits={
            "opt_out": sw.Limit(0.02, safe_bound=0.01, by="country"),
            "complaint": sw.Limit(0.01, safe_bound=0.005, by="device"),
        },
    )  # fmt: skip


def draw_users(random: np.random.Generator, count: int) -> dict[str, Any]:
    """Return columns of users."""
    columns: dict[str, Any] = {name: Array.from_numpy(random.random(count)) for name in NUMBERS}
    for name, labels in (("country", COUNTRIES), ("device", DEVICES)):
        chosen = Array.from_numpy(random.integers(0, len(labels), count))
        columns[name] = Array(labels, DataType.string()).take(chosen)
    return columns


def build_agent(random: np.random.Generator, rows: int = 20_000) -> sw.Agent:
    """Return an agent that has learned a log."""
    agent, log = sw.Agent(build_problem(), seed=7), draw_users(random, rows)
    actions = random.integers(0, len(ACTIONS), rows)
    frame = {name: column.to_pylist() for name, column in log.items()} | {"action": [ACTIONS[i] for i in actions]}
    frame |= {
        "click": random.random(rows) < 0.05 + 0.03 * actions * np.array(frame["number_0"]),
        "opt_out": random.random(rows) < 0.006 + 0.002 * actions,
        "complaint": random.random(rows) < 0.003 + 0.0005 * actions,
    }
    agent.learn_log_frame(frame)
    return agent


def write_outcomes(path: Path, decisions: Path, random: np.random.Generator) -> int:
    """Write as many outcomes as decisions, 3 % of them repeated and 1 % unknown, in any order."""
    ids = [id_ for batch in read_batches(decisions).batches for id_ in batch.column("decision_id").to_pylist()]
    rows = np.concatenate([np.arange(len(ids)), random.integers(0, len(ids), len(ids) * 3 // 100)])
    random.shuffle(rows)
    rows = rows[: len(ids)]
    listed = [ids[row] for row in rows.tolist()]
    listed[:: len(ids) // (len(ids) // 100)] = [f"unknown:night:{row}" for row in range(len(listed[::100]))]
    arrays = [Array(listed, DataType.string())]
    arrays += [Array.from_numpy(random.random(rows.size) < rate) for rate in (0.1, 0.008, 0.004)]
    batch = RecordBatch.from_arrays(arrays, names=["decision_id", "click", "opt_out", "complaint"])
    write_batches(path, RecordBatchReader.from_batches(batch.schema, [batch]))
    return rows.size


@contextmanager
def clock(what: str) -> Iterator[None]:
    """Print the processor seconds of a block."""
    start = time.process_time()
    yield
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<44} {time.process_time() - start:6.2f} s   largest memory so far {memory:6.0f} MB", flush=True)


def wait_for_machine_code(agent: sw.Agent, users: Any) -> None:
    """Play both kernels until their machine code is there."""
    policy: Any = agent.policy
    kernels = build_batch_decider(policy.rounds.spec), build_log_learner(policy.rounds.spec)
    other = sw.Agent(policy.problem, seed=1)
    while any(get_batch_rows(kernel) != ALL_ROWS for kernel in kernels):
        ids = other.decide_frame(users)["decision_id"].to_pylist()
        other.learn_outcomes({"decision_id": ids, "click": [0] * len(ids), "opt_out": [0] * len(ids)})
        time.sleep(0.5)


def main(users: int, folder: Path) -> None:
    """Measure."""
    from stagewise.agent.table_file import decide_file, learn_file

    random, names = np.random.default_rng(1), ("users", "decisions", "outcomes")
    paths = {name: folder / f"{name}.parquet" for name in names}
    agent, columns = build_agent(random), draw_users(random, users)
    columns = {"user_id": Array.from_numpy(np.arange(users)), **columns}
    batch = RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    wait_for_machine_code(agent, batch.slice(0, 64))
    write_batches(paths["users"], RecordBatchReader.from_batches(batch.schema, [batch]))
    agent.save(folder / "agent.json")
    del agent, columns, batch
    with clock(f"load the agent, of {users:,} users later"):
        agent = sw.Agent.load(folder / "agent.json")
    with clock(f"decide for {users:,} users, Parquet to Parquet"):
        print(decide_file(agent, paths["users"], paths["decisions"], run="night"))
    with clock("save the agent"):
        agent.save(folder / "agent.json")
    rows = write_outcomes(paths["outcomes"], paths["decisions"], random)
    with clock("load the agent"):
        agent = sw.Agent.load(folder / "agent.json")
    with clock(f"learn {rows:,} outcomes by id"):
        print(learn_file(agent, paths["outcomes"]))
    with clock("save the agent"):
        agent.save(folder / "agent.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(arguments.users, arguments.folder or Path(temporary))
