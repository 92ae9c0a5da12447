"""A snapshot as a model of MLflow, logged, loaded and asked by Spark, decides as `decide_frame` does."""

import sys
from pathlib import Path

import pytest
from tests.engines.tables import build_folder, read_rows

import stagewise as sw

mlflow = pytest.importorskip("mlflow", reason="run by make test-engines")
pd = pytest.importorskip("pandas", reason="run by make test-engines")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Log a model into a registry in a folder."""
    from stagewise.agent.mlflow_model import log_model

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no database
    build_folder(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.create_experiment("messages", artifact_location=(tmp_path / "models").as_uri())
    mlflow.set_experiment("messages")
    snapshot = sw.Agent.load(tmp_path / "agent.json").replica_snapshot()
    with mlflow.start_run():
        return str(log_model(snapshot, "policy").model_uri)


def test_a_model_that_is_loaded_decides_the_same_bytes(tmp_path: Path, uri: str) -> None:
    snapshot = sw.Agent.load(tmp_path / "agent.json").replica_snapshot()
    users = pd.read_parquet(tmp_path / "users.parquet")
    model = mlflow.pyfunc.load_model(uri)
    expected = sw.decide_frame(snapshot, users, run="night")
    decided = model.predict(users, params={"run": "night"})
    pd.testing.assert_frame_equal(decided, expected, check_exact=True)
    assert decided.to_parquet() == expected.to_parquet()
    renamed = model.predict(users.rename(columns={"user_id": "customer"}), params={"run": "night", "id": "customer"})
    assert renamed["decision_id"].tolist() == expected["decision_id"].tolist()
    with pytest.raises(sw.InvalidOutcome):  # a run must have a name
        model.predict(users)


def test_sparks_function_decides_the_same(tmp_path: Path, uri: str) -> None:
    sql = pytest.importorskip("pyspark.sql")
    from pyspark.sql.functions import struct

    snapshot = sw.Agent.load(tmp_path / "agent.json").replica_snapshot()
    expected = sw.decide_frame(snapshot, pd.read_parquet(tmp_path / "users.parquet"), run="night")
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        users = spark.read.parquet(str(tmp_path / "users.parquet")).repartition(3)
        kinds = "struct<decision_id: string, action: string, propensity: double>"
        decide = mlflow.pyfunc.spark_udf(spark, uri, result_type=kinds, env_manager="local", params={"run": "night"})
        names = ["decision_id", "action", "propensity"]
        decided = users.select("user_id", decide(struct(*users.columns)).alias("d")).select("user_id", "d.*").toArrow()
    finally:
        spark.stop()
    wanted = expected[["user_id", *names]].to_dict("records")
    assert read_rows(decided) == sorted(wanted, key=lambda row: row["user_id"])
