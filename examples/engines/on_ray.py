"""Decide for a table of users with Ray Data: `map_batches`, Parquet in and out.

    python examples/engines/on_ray.py night

The folder is that of examples/engines/night.py: agent.json and users.parquet. Writes the folder ray.parquet.
"""

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import ray.data

import stagewise as sw


class Decider:
    """Decides for batches with the bytes of a snapshot, which each actor reads once."""

    def __init__(self, content: bytes, run: str) -> None:
        self.snapshot, self.run = sw.Snapshot.from_bytes(content), run

    def __call__(self, users: Any) -> Any:
        """Return the decisions for a table of users."""
        return sw.decide_frame(self.snapshot, users, run=self.run)


def main(folder: Path, run: str = "night", partitions: int = 7, cores: int = 2) -> Any:
    """Decide, write the decisions, register them; return their statuses."""
    ray.init(num_cpus=cores, include_dashboard=False, ignore_reinit_error=True, log_to_driver=False)
    agent = sw.Agent.load(folder / "agent.json")
    users = ray.data.read_parquet(str(folder / "users.parquet")).repartition(partitions)
    settings: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": None, "concurrency": 1}
    arguments = (bytes(agent.replica_snapshot()), run)
    decided = users.map_batches(Decider, fn_constructor_args=arguments, **settings)
    decided.write_parquet(str(folder / "ray.parquet"), mode="overwrite")
    statuses = agent.register_frame(pyarrow.parquet.read_table(folder / "ray.parquet"))
    agent.save(folder / "agent.json")  # the decisions count from now on: send them
    ray.shutdown()
    return statuses["status"].to_pylist()


if __name__ == "__main__":
    print(f"{main(Path(sys.argv[1])).count('accepted'):,} decisions registered")
