"""Tables in CSV, Parquet and JSON-lines files."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.paths import format_error, parse_path, read_file
from stagewise.problem.columns import get_labels, is_missing, read_columns
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome
from stagewise.problem.formatting import format_path, safe_repr

MAGIC = b"PAR1"  # the first and last bytes of a Parquet file
SUPPORTED_FILES = "a .csv, .parquet or .jsonl file"
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # of tables that are not CSV
NESTED = {"probabilities": "probability.", "context": "", "outcome": ""}  # nested objects in a line, and their prefix


def read_table(source: Any) -> Mapping[Any, Any]:
    """Return the columns of a file or a frame by name."""
    if not isinstance(source, str | Path):
        return flatten_decisions(read_columns(check_unique_columns(source, "the frame")))
    path = parse_path(source, "the log")
    readers = {".csv": parse_csv, ".parquet": parse_parquet, ".jsonl": parse_json_lines, ".ndjson": parse_json_lines}
    read = readers.get(path.suffix.lower())
    if read is None:
        rule = f"a log, which is {SUPPORTED_FILES}"
        raise InvalidFile.must_be(ErrorCode.FILE_WRONG_KIND, "the file", format_path(path), rule)
    content = read_file(path)
    if not content:
        template = "{path} is empty; a log must be {rule}"
        raise InvalidFile(ErrorCode.LOG_EMPTY, template, path=format_path(path), rule=SUPPORTED_FILES)
    try:
        return read(content)
    except (InvalidFile, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the reader is not an Exception
        verb = f"read as {path.suffix[1:]}"
        raise InvalidFile.cannot_be(ErrorCode.FILE_INVALID, path, verb, format_error(error)) from None


def parse_csv(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of a CSV file whose first line names them."""
    from arro3.io import infer_csv_schema, read_csv

    schema = infer_csv_schema(io.BytesIO(content), has_header=True)
    names = list(schema.names)
    other = next((sign for sign in SEPARATORS if len(names) == 1 and sign in names[0]), None)
    if other is not None:
        template = "the log's first line is one column, {name}; columns need commas between them, not {separator}"
        data = {"name": safe_repr(names[0]), "separator": SEPARATORS[other]}
        raise InvalidFile(ErrorCode.FILE_INVALID, template, **data)
    table = read_csv(io.BytesIO(content), schema, has_header=True).read_all()
    return read_columns(check_unique_columns(table, "the log"))


def check_unique_columns(table: Any, what: str) -> Any:
    """Return a table, or reject one with duplicate column names."""
    try:
        names = None if isinstance(table, Mapping) else get_labels(table)
        duplicates = [name for name, count in Counter(names or []).items() if count > 1]
    except Exception:  # its own code may raise anything; reading its columns reports it
        return table
    if duplicates:
        template, name = "two columns of {what} have the name {name}; rename one of them", safe_repr(duplicates[0])
        raise InvalidFile(ErrorCode.DUPLICATE_NAME, template, what=what, name=name)
    return table


def flatten_decisions(columns: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return columns of decisions flattened as in a JSON-lines file."""
    try:
        first = next(iter(columns["row"])) if "action" in columns and "row" in columns else None
        if not isinstance(first, list | tuple) and getattr(first, "ndim", 0) != 1:
            return columns
        rows = zip(*(list(columns[name]) for name in columns), strict=True)
        return rows_to_columns([flatten_line(dict(zip(columns, row, strict=True))) for row in rows])
    except InvalidFile:
        raise
    except Exception:  # reading the column reports it
        return columns


def parse_parquet(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of a Parquet file."""
    return read_columns(check_unique_columns(decode_parquet(content), "the log"))


def parse_json_lines(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of JSON lines, such as `decision.to_dict()` with context and outcome."""
    lines = [line for line in content.splitlines() if line.strip()]
    return rows_to_columns([flatten_line(json.loads(line, object_pairs_hook=check_unique_keys)) for line in lines])


def check_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or reject one with duplicate keys."""
    duplicate = next((name for name, count in Counter(name for name, _ in pairs).items() if count > 1), None)
    if duplicate is not None:
        template = "a line has the key {name!r:.60} twice; every key must occur once"
        raise InvalidFile(ErrorCode.DUPLICATE_NAME, template, name=duplicate)
    return dict(pairs)


def rows_to_columns(rows: list[dict[str, Any]]) -> Mapping[Any, Any]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flatten_line(line: Any) -> dict[str, Any]:
    """Return one line as values by column: nested objects are flattened, and arrays are left out."""
    if not isinstance(line, dict):
        raise InvalidFile.must_be(ErrorCode.FILE_INVALID, "a line", line, "a JSON object")
    values: dict[str, Any] = {}
    for name, value in line.items():
        if isinstance(value, dict) and name in NESTED:
            values |= {f"{NESTED[name]}{inner}": one for inner, one in value.items()}
        elif not isinstance(value, dict | list | tuple) and not getattr(value, "ndim", 0):
            values[name] = value
    return {"action": values.pop("action"), **values} if "action" in values else values


Columns = Mapping[str, Any]  # arrays (n,) by name


def format_csv(columns: Columns) -> bytes:
    r"""Return columns as CSV, with empty fields for missing values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    fields = [["" if is_missing(entry) else entry for entry in column.tolist()] for column in columns.values()]
    writer.writerows(zip(*fields, strict=True))
    return text.getvalue().encode()


def format_json_lines(columns: Columns) -> bytes:
    r"""Return columns as JSON lines, with null for missing values."""
    names = list(columns)
    rows = zip(*(map(to_json_value, column.tolist()) for column in columns.values()), strict=True)
    return "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in rows).encode()


def format_parquet(columns: Columns) -> bytes:
    """Return columns as the content of a Parquet file; times as text."""
    return encode_parquet({str(name): to_arrow(column, name, to_json_value) for name, column in columns.items()})


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
        raise InvalidFile.must_be_one_of(ErrorCode.FILE_WRONG_KIND, "the suffix of a log", suffix, WRITERS)
    return write(columns)


# Arrow arrays, and Parquet files in memory.


def to_arrow(column: Any, name: Any, convert: Callable[[Any], Any] = lambda entry: entry) -> Any:
    """Return a column of one type as an Arrow array, null where a value is missing."""
    from arro3.core import Array, DataType

    if column is None or column.ndim != 1:
        raise InvalidOutcome(ErrorCode.WRONG_SHAPE, "the column {name} is not one value a row", name=safe_repr(name))
    if column.dtype.kind in "biufM":
        return Array.from_numpy(np.ascontiguousarray(column))
    entries = [None if is_missing(entry) else convert(entry) for entry in column.tolist()]
    kinds: set[Any] = {type(entry) for entry in entries if entry is not None}
    types = {str: DataType.string(), bool: DataType.bool(), int: DataType.int64(), float: DataType.float64()}
    kind = float if kinds == {int, float} else next(iter(kinds), str)
    if kind not in types or (len(kinds) > 1 and kind is not float):
        found, rule = " and ".join(sorted(one.__name__ for one in kinds)), "of one type: text, numbers or booleans"
        raise InvalidOutcome.must_be(ErrorCode.COLUMN_WRONG_TYPE, f"the column {safe_repr(name)}", found, rule)
    return Array([entry if entry is None else kind(entry) for entry in entries], types[kind])


def encode_parquet(arrays: Mapping[str, Any]) -> bytes:
    """Return Arrow arrays as the content of a Parquet file."""
    from arro3.core import Table
    from arro3.io import write_parquet

    buffer = io.BytesIO()
    write_parquet(Table.from_arrays(list(arrays.values()), names=list(arrays)), buffer, compression="zstd(3)")
    return buffer.getvalue()


def decode_parquet(content: bytes) -> Any:
    """Return the content of a Parquet file as an Arrow table, or raise ValueError."""
    from arro3.io import read_parquet

    if not (len(content) > 2 * len(MAGIC) and content.startswith(MAGIC) and content.endswith(MAGIC)):
        raise ValueError("it does not begin and end like a Parquet file")  # the reader would panic
    try:
        return read_parquet(io.BytesIO(content)).read_all()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the reader is not an Exception
        raise ValueError(str(error)) from None
