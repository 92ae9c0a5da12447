"""Dask: 1 and 7 partitions and a task that is tried again give the same decisions, to the bit."""

import sys
from pathlib import Path
from typing import Any

import distributed
import pytest
from tests.engines.tables import build_folder, check_night, read_rows

import stagewise as sw
from stagewise.files.tables import read_batches

sys.path.append(str(Path(__file__).parents[2] / "examples" / "engines"))
import on_dask

pytestmark = pytest.mark.long


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_change_nothing(tmp_path: Path, partitions: int) -> None:
    expected = build_folder(tmp_path)
    check_night(on_dask.main(tmp_path, partitions=partitions, scheduler="sync"), tmp_path / "dask.parquet", expected)


def test_a_task_that_is_tried_again_changes_nothing(tmp_path: Path) -> None:
    expected = build_folder(tmp_path)
    snapshot, failed = sw.Agent.load(tmp_path / "agent.json").replica_snapshot(), tmp_path / "failed"

    def decide(users: Any) -> Any:
        decided = sw.decide_frame(snapshot, users, run="night")
        if not failed.exists():
            failed.touch()
            raise RuntimeError("the worker dies after its work")
        return decided

    (batch,) = read_batches(tmp_path / "users.parquet").batches
    users = {name: batch.column(name).to_pylist() for name in batch.schema.names}
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        assert read_rows(client.submit(decide, users, retries=1).result()) == expected
    assert failed.exists()
