"""Decide for a table of users with Spark: `mapInArrow`, Parquet in and out.

    python examples/engines/on_spark.py night

The folder is that of examples/engines/night.py: agent.json and users.parquet. Writes the folder spark.parquet.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

import stagewise as sw


def build_task(content: bytes, run: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what each task runs, with the bytes of the snapshot."""

    def decide(batches: Iterator[Any]) -> Iterator[Any]:
        snapshot = sw.Snapshot.from_bytes(content)
        for batch in batches:
            yield sw.decide_frame(snapshot, batch, run=run)

    return decide


def main(folder: Path, run: str = "night", partitions: int = 7, cores: int = 2) -> Any:
    """Decide, write the decisions, register them; return their statuses."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").getOrCreate()
    agent = sw.Agent.load(folder / "agent.json")
    snapshot = agent.replica_snapshot()
    users = spark.read.parquet(str(folder / "users.parquet")).repartition(partitions)
    empty = pa.RecordBatch.from_pylist([], schema=to_arrow_schema(users.schema))
    schema = from_arrow_schema(sw.decide_frame(snapshot, empty, run=run).schema)
    decided = users.mapInArrow(build_task(bytes(snapshot), run), schema)
    decided.write.mode("overwrite").parquet(str(folder / "spark.parquet"))
    statuses = agent.register_frame(pyarrow.parquet.read_table(folder / "spark.parquet"))
    agent.save(folder / "agent.json")  # the decisions count from now on: send them
    spark.stop()
    return statuses["status"].to_pylist()


if __name__ == "__main__":
    print(f"{main(Path(sys.argv[1])).count('accepted'):,} decisions registered")
