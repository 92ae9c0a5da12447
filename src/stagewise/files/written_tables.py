"""Tables as files hold them, written: CSV, Parquet, or a JSON object a line, as `tables` reads them."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from stagewise.problem.errors import InvalidFile
from stagewise.problem.words import shown

Columns = Mapping[str, Any]  # arrays (n,) by name


def csv_of(columns: Columns) -> bytes:
    r"""Return columns as CSV, with nothing where a value is missing.

    >>> csv_of({"action": np.array(["offer", None], dtype=object), "age": np.array([30.0, math.nan])}).decode()
    'action,age\noffer,30.0\n,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    told = [["" if is_missing(entry) else entry for entry in column.tolist()] for column in columns.values()]
    writer.writerows(zip(*told, strict=True))
    return text.getvalue().encode()


def lines_of(columns: Columns) -> bytes:
    r"""Return columns as an object of JSON a line, with null where a value is missing.

    >>> lines_of({"action": np.array(["offer"]), "age": np.array([30])}).decode()
    '{"action": "offer", "age": 30}\n'
    """
    names = list(columns)
    rows = zip(*(map(plain, column.tolist()) for column in columns.values()), strict=True)
    return "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in rows).encode()


def parquet_of(columns: Columns) -> bytes:
    """Return columns as the content of a Parquet file."""
    from arro3.core import Table
    from arro3.io import write_parquet

    arrays = [arrow_of(name, np.ascontiguousarray(column)) for name, column in columns.items()]
    buffer = io.BytesIO()
    write_parquet(Table.from_arrays(arrays, names=list(map(str, columns))), buffer, compression="zstd(3)")
    return buffer.getvalue()


def arrow_of(name: str, column: Any) -> Any:
    """Return a column as Arrow has it, of one kind of values."""
    from arro3.core import Array, DataType

    if column.dtype.kind != "O":
        return Array.from_numpy(column) if column.dtype.kind != "U" else Array(column.tolist(), DataType.string())
    entries = [None if is_missing(entry) else plain(entry) for entry in column.tolist()]
    kinds = {type(entry) for entry in entries if entry is not None}
    types = {str: DataType.string(), bool: DataType.bool(), int: DataType.int64(), float: DataType.float64()}
    kind = float if kinds == {int, float} else next(iter(kinds), str)
    if len(kinds) > 1 and kinds != {int, float}:
        held = " and ".join(sorted(one.__name__ for one in kinds))
        raise InvalidFile(
            f"the column {shown(name)} holds values of several kinds, {held}, and a column of Parquet holds one; write "
            "a .csv or .jsonl file"
        )
    return Array([entry if entry is None else kind(entry) for entry in entries], types[kind])


def is_missing(entry: Any) -> bool:
    """Say whether a value is none: None, NaN, or what pandas has for them."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry


def plain(entry: Any) -> Any:
    """Return a value as JSON holds it; times as text."""
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
    ".csv": csv_of,
    ".parquet": parquet_of,
    ".jsonl": lines_of,
    ".ndjson": lines_of,
}


def written_table(columns: Columns, suffix: str) -> bytes:
    """Return the content of a file that ends so."""
    write = WRITERS.get(suffix.lower())
    if write is None:
        raise InvalidFile(f"a log cannot be written as {suffix!r}; it is a .csv, .parquet or .jsonl file")
    return write(columns)
