"""Spark and Ray: 1 and 7 partitions and tasks that are tried again give the same decisions (make test-engines)."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engines.tables import build_folder, check_night, read_rows

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]
pa = pytest.importorskip("pyarrow", reason="run by make test-engines")
EXAMPLES = str(Path(__file__).parents[2] / "examples" / "engines")
sys.path.append(EXAMPLES)
os.environ["PYTHONPATH"], os.environ["PYSPARK_PYTHON"] = EXAMPLES, sys.executable  # of the workers


@pytest.mark.parametrize("partitions", [1, 7])
@pytest.mark.parametrize("engine", ["spark", "ray"])
def test_partitions_change_nothing(tmp_path: Path, engine: str, partitions: int) -> None:
    pytest.importorskip("pyspark" if engine == "spark" else "ray")
    import pyarrow.parquet

    example: Any = __import__(f"on_{engine}")
    expected = build_folder(tmp_path)
    statuses = example.main(tmp_path, partitions=partitions)
    check_night(statuses, pyarrow.parquet.read_table(tmp_path / f"{engine}.parquet"), expected)


def test_a_task_of_spark_that_is_tried_again_changes_nothing(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyspark.sql")
    import on_spark

    import stagewise as sw

    expected, failed = build_folder(tmp_path), tmp_path / "failed"
    snapshot = sw.Agent.load(tmp_path / "agent.json").replica_snapshot()
    task = on_spark.build_task(bytes(snapshot), "night")

    def decide(batches: Any) -> Any:
        yield from task(batches)
        if not failed.exists():
            failed.touch()
            raise RuntimeError("the task dies after its work")

    spark = sql.SparkSession.builder.master("local[1,3]").config("spark.ui.enabled", "false").getOrCreate()
    users = spark.read.parquet(str(tmp_path / "users.parquet"))
    empty = pa.RecordBatch.from_pylist([], schema=on_spark.to_arrow_schema(users.schema))
    schema = on_spark.from_arrow_schema(sw.decide_frame(snapshot, empty, run="night").schema)
    decided = users.mapInArrow(decide, schema).toArrow()
    spark.stop()
    assert failed.exists()
    assert read_rows(decided) == expected


def test_a_task_of_ray_that_is_tried_again_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    import ray
    import ray.data

    import stagewise as sw

    expected, failed = build_folder(tmp_path), tmp_path / "failed"
    content = bytes(sw.Agent.load(tmp_path / "agent.json").replica_snapshot())

    def decide(users: Any) -> Any:
        decided = sw.decide_frame(sw.Snapshot.from_bytes(content), users, run="night")
        if not failed.exists():
            failed.touch()
            os._exit(1)  # the worker dies after its work
        return decided

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    decided = ray.data.read_parquet(str(tmp_path / "users.parquet")).map_batches(decide, batch_format="pyarrow")
    rows = sorted(decided.take_all(), key=lambda row: row["user_id"])
    ray.shutdown()
    assert failed.exists()
    assert rows == expected


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_the_kind_of_frame_that_came_is_returned(tmp_path: Path, package: str) -> None:
    module = pytest.importorskip(package)
    import pyarrow.parquet

    import stagewise as sw

    expected, agent = build_folder(tmp_path), sw.Agent.load(tmp_path / "agent.json")
    table = pyarrow.parquet.read_table(tmp_path / "users.parquet")
    users: Any = {"pandas": table.to_pandas, "polars": lambda: module.from_arrow(table), "pyarrow": lambda: table}[
        package
    ]()
    decided = agent.decide_frame(users, run="night")
    assert type(decided) is type(users)
    assert list(decided["action"]) == [row["action"] for row in expected] or [
        one.as_py() for one in decided["action"]
    ] == [row["action"] for row in expected]
    outcomes = {"decision_id": list(decided["decision_id"]), "click": [True] * len(expected)}
    frame = (
        module.DataFrame(outcomes)
        if package != "pyarrow"
        else {**outcomes, "decision_id": decided["decision_id"].to_pylist()}
    )
    assert set(map(str, agent.learn_outcomes(frame)["status"])) == {"accepted"}
