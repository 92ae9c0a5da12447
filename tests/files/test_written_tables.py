"""A table is written as it is read: the same columns come back from every kind of file."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.files.tables import format_table, read_table
from stagewise.problem.columns import get_column
from stagewise.problem.errors import ErrorCode


def objects(*values: Any) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def known(value: Any) -> Any:
    return None if value is None or value != value or value == "" else value


COLUMNS = {
    "action": objects("offer", "nothing, or so", None),
    "age": np.array([30.5, np.nan, 41.0]),
    "opened": np.array([True, False, True]),
    "row": np.array([3, 1, 2]),
    "seen": objects(True, None, False),
    "times": objects(1, None, 2.5),
    "plan": np.array(["a", "b", "ü"]),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".NDJSON"])
def test_what_was_written_is_read(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"log{suffix}"
    path.write_bytes(format_table(COLUMNS, suffix))
    table = read_table(path)
    assert list(table) == list(COLUMNS)
    for name, column in COLUMNS.items():
        read = [None if one is None or one != one or one == "" else one for one in get_column(table, name, "").tolist()]
        assert read == [None if one is None or one != one else one for one in column.tolist()], name


def test_times_are_read_as_they_were(tmp_path: Path) -> None:
    moments = objects(datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    columns = {"at": moments, "when": np.array(["2026-03-01T12:00", "2026-03-02"], dtype="datetime64[us]")}
    for suffix in (".csv", ".parquet", ".jsonl"):
        path = tmp_path / f"log{suffix}"
        path.write_bytes(format_table(columns, suffix))
        read = read_table(path)
        for name in columns:
            times = [
                np.datetime64(str(one).replace("+00:00", "").replace("Z", ""))
                for one in get_column(read, name, "").tolist()
            ]
            assert times == [np.datetime64("2026-03-01T12:00"), np.datetime64("2026-03-02T00:00")], (suffix, name)


def test_what_a_file_cannot_hold_is_said() -> None:
    with refused(sw.InvalidOutcome, ErrorCode.COLUMN_WRONG_TYPE):
        format_table({"plan": objects(1, True)}, ".parquet")
    with refused(sw.InvalidFile, ErrorCode.FILE_WRONG_KIND):
        format_table({}, ".xlsx")
