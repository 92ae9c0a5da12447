"""Decide for a table of users with Dask: `map_partitions`.

    python examples/engines/on_dask.py night

The folder is that of examples/engines/night.py: agent.json and users.parquet. Writes dask.parquet.
"""

import sys
from pathlib import Path
from typing import Any

import dask.bag
from arro3.core import Table

import stagewise as sw
from stagewise.files.tables import convert_like, read_batches, write_batches


def decide_partition(tables: list[Any], snapshot: sw.Snapshot, run: str) -> list[Any]:
    """Decide for the tables of one partition; it can be tried again in any process."""
    return [sw.decide_frame(snapshot, users, run=run) for users in tables]


def main(folder: Path, run: str = "night", partitions: int = 7, scheduler: str = "threads") -> Any:
    """Decide, write the decisions, register them; return their statuses."""
    agent = sw.Agent.load(folder / "agent.json")
    users = convert_like({}, Table.from_batches(list(read_batches(folder / "users.parquet").batches)))
    count = len(users["user_id"])
    size = -(-count // partitions)
    parts = [{name: column[at : at + size] for name, column in users.items()} for at in range(0, count, size)]
    bag = dask.bag.from_sequence(parts, npartitions=partitions)
    decided = bag.map_partitions(decide_partition, agent.replica_snapshot(), run).compute(scheduler=scheduler)
    write_batches(folder / "dask.parquet", (batch for part in decided for batch in read_batches(part).batches))
    statuses = agent.register_frame(folder / "dask.parquet")
    agent.save(folder / "agent.json")  # the decisions count from now on: send them
    return statuses["status"].to_pylist()


if __name__ == "__main__":
    print(f"{main(Path(sys.argv[1])).count('accepted'):,} decisions registered")
