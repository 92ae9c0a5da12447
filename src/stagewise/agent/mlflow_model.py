"""A snapshot as a model of MLflow: its registry, its serving and its Spark function decide as `sw.decide_frame` does.

It needs the package mlflow or mlflow-skinny, and pandas. Nothing else of stagewise imports this module.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlflow import pyfunc
from mlflow.models import ModelSignature
from mlflow.types.schema import DataType, ParamSchema, ParamSpec

from stagewise import __version__
from stagewise.agent.decision_table import decide_frame
from stagewise.agent.replica import Snapshot

ARTIFACT = "snapshot"
PARAMS = ParamSchema(
    [
        ParamSpec("run", DataType.string, ""),
        ParamSpec("id", DataType.string, "user_id"),
        ParamSpec("now", DataType.string, ""),
    ]
)


class SnapshotModel(pyfunc.PythonModel):
    """Decides for a pandas frame of users; `params` are the arguments of `sw.decide_frame`: run, id and now."""

    def load_context(self, context: Any) -> None:
        self.snapshot = Snapshot.from_bytes(Path(context.artifacts[ARTIFACT]).read_bytes())

    def predict(  # type: ignore[no-untyped-def]  # MLflow would take a hint of the input for its schema
        self, context: Any, model_input, params: dict[str, Any] | None = None
    ) -> Any:
        """Return the decisions of users."""
        given = params or {}
        return decide_frame(
            self.snapshot, model_input, run=given.get("run", ""), id=given.get("id", "user_id"),
            now=given.get("now") or None,
        )  # fmt: skip


def build_settings(snapshot: Snapshot, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Write the snapshot into a folder; return what MLflow's functions get."""
    path = folder / "snapshot.json"
    path.write_bytes(bytes(snapshot))
    defaults = {"signature": ModelSignature(params=PARAMS), "pip_requirements": [f"stagewise=={__version__}", "pandas"]}
    return {**defaults, **settings, "python_model": SnapshotModel(), "artifacts": {ARTIFACT: str(path)}}


def save_model(snapshot: Snapshot, path: Any, **settings: Any) -> None:
    """Save a snapshot as a model of MLflow.

    Args:
        snapshot: The result of `Agent.replica_snapshot`.
        path: A folder that does not exist.
        **settings: For `mlflow.pyfunc.save_model`, such as `pip_requirements`.

    Example:
        >>> from stagewise.agent.mlflow_model import save_model  # then mlflow.pyfunc.load_model(path)
    """
    with TemporaryDirectory() as folder:
        pyfunc.save_model(str(path), **build_settings(snapshot, Path(folder), settings))


def log_model(snapshot: Snapshot, name: str, **settings: Any) -> Any:
    """Log a snapshot as a model of MLflow's current run.

    Args:
        snapshot: The result of `Agent.replica_snapshot`.
        name: The name of the model.
        **settings: For `mlflow.pyfunc.log_model`, such as `registered_model_name`.

    Returns:
        MLflow's description of the model; `model_uri` loads it.

    Example:
        >>> from stagewise.agent.mlflow_model import log_model  # then mlflow.pyfunc.load_model(info.model_uri)
    """
    with TemporaryDirectory() as folder:
        return pyfunc.log_model(name=name, **build_settings(snapshot, Path(folder), settings))
