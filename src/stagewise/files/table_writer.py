"""Write tables as CSV, Parquet or JSON lines."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr

Columns = Mapping[str, Any]  # arrays (n,) by name


def format_csv(columns: Columns) -> bytes:
    r"""Return columns as CSV, with empty fields for missing values.

    >>> format_csv({"action": np.array(["offer", None], dtype=object), "age": np.array([30.0, math.nan])}).decode()
    'action,age\noffer,30.0\n,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    fields = [["" if is_missing(entry) else entry for entry in column.tolist()] for column in columns.values()]
    writer.writerows(zip(*fields, strict=True))
    return text.getvalue().encode()


def format_json_lines(columns: Columns) -> bytes:
    r"""Return columns as JSON lines, with null for missing values.

    >>> format_json_lines({"action": np.array(["offer"]), "age": np.array([30])}).decode()
    '{"action": "offer", "age": 30}\n'
    """
    names = list(columns)
    rows = zip(*(map(to_json_value, column.tolist()) for column in columns.values()), strict=True)
    return "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in rows).encode()


def format_parquet(columns: Columns) -> bytes:
    """Return columns as the content of a Parquet file."""
    from arro3.core import Table
    from arro3.io import write_parquet

    arrays = [to_arrow(name, np.ascontiguousarray(column)) for name, column in columns.items()]
    buffer = io.BytesIO()
    write_parquet(Table.from_arrays(arrays, names=list(map(str, columns))), buffer, compression="zstd(3)")
    return buffer.getvalue()


def to_arrow(name: str, column: Any) -> Any:
    """Return a column as an Arrow array of one type."""
    from arro3.core import Array, DataType

    if column.dtype.kind != "O":
        return Array.from_numpy(column) if column.dtype.kind != "U" else Array(column.tolist(), DataType.string())
    entries = [None if is_missing(entry) else to_json_value(entry) for entry in column.tolist()]
    kinds = {type(entry) for entry in entries if entry is not None}
    types = {str: DataType.string(), bool: DataType.bool(), int: DataType.int64(), float: DataType.float64()}
    kind = float if kinds == {int, float} else next(iter(kinds), str)
    if len(kinds) > 1 and kinds != {int, float}:
        type_names = " and ".join(sorted(one.__name__ for one in kinds))
        raise InvalidFile(
            ErrorCode.COLUMN_WRONG_TYPE,
            "the column {name} holds values of several types, {types}; a Parquet column has one type, "
            "so write a .csv or .jsonl file",
            name=safe_repr(name),
            types=type_names,
        )
    return Array([entry if entry is None else kind(entry) for entry in entries], types[kind])


def is_missing(entry: Any) -> bool:
    """Say whether a value is missing: None, NaN, or a missing value of pandas."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry


def to_json_value(entry: Any) -> Any:
    """Return a value for JSON; times as text."""
    if is_missing(entry):
        return None
    if isinstance(entry, np.generic):
        entry = entry.item()
    if isinstance(entry, datetime):
        return entry.isoformat()
    if isinstance(entry, float) and not math.isfinite(entry):
        return str(entry)
    return entry if isinstance(entry, str | bool | int | float) else str(entry)


WRITERS: dict[str, Callable[[Columns], bytes]] = {
    ".csv": format_csv,
    ".parquet": format_parquet,
    ".jsonl": format_json_lines,
    ".ndjson": format_json_lines,
}


def format_table(columns: Columns, suffix: str) -> bytes:
    """Return the content of a file with this suffix."""
    write = WRITERS.get(suffix.lower())
    if write is None:
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "a log cannot be written as {suffix!r}; it must be a .csv, .parquet or .jsonl file",
            suffix=suffix,
        )
    return write(columns)
