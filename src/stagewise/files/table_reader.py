"""Read tables from CSV, Parquet and JSON-lines files, or from frames."""

import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagewise.files.paths import format_error, parse_path, read_file
from stagewise.problem.columns import read_columns
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path, safe_repr
from stagewise.problem.named_values import get_labels

MAGIC = b"PAR1"
SUPPORTED_FILES = "a .csv, .parquet or .jsonl file"
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # of tables that are not CSV
NESTED = {"probabilities": "probability.", "context": "", "outcome": ""}  # nested objects in a line, and their prefix


def read_table(source: Any) -> Mapping[Any, Any]:
    """Return the columns of a file or a frame by name.

    >>> sorted(read_table({"action": ["offer"], "click": [1]}))
    ['action', 'click']
    """
    if not isinstance(source, str | Path):
        return flatten_decisions(read_columns(check_unique_columns(source, "the frame")))
    path = parse_path(source, "the log")
    readers = {".csv": parse_csv, ".parquet": parse_parquet, ".jsonl": parse_json_lines, ".ndjson": parse_json_lines}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "{path} ends in {suffix!r}; a log must be {supported_files}",
            path=format_path(path),
            suffix=path.suffix,
            supported_files=SUPPORTED_FILES,
        )
    content = read_file(path)
    if not content:
        raise InvalidFile(
            ErrorCode.LOG_EMPTY,
            "{path} is empty; a log must be {supported_files}",
            path=format_path(path),
            supported_files=SUPPORTED_FILES,
        )
    try:
        return read(content)
    except (InvalidFile, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the reader is not an Exception
        raise InvalidFile(
            ErrorCode.FILE_INVALID,
            "{path} cannot be read as {suffix}: {error}",
            path=format_path(path),
            suffix=path.suffix[1:],
            error=format_error(error),
        ) from None


def parse_csv(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of a CSV file whose first line names them."""
    from arro3.io import infer_csv_schema, read_csv

    schema = infer_csv_schema(io.BytesIO(content), has_header=True)
    names = list(schema.names)
    other = next((sign for sign in SEPARATORS if len(names) == 1 and sign in names[0]), None)
    if other is not None:
        raise InvalidFile(
            ErrorCode.FILE_INVALID,
            "the first line of the log has one column, {name}, and seems to be separated by "
            "{separator}; a .csv file must use commas between columns and points in numbers",
            name=safe_repr(names[0]),
            separator=SEPARATORS[other],
        )
    return read_columns(
        check_unique_columns(read_csv(io.BytesIO(content), schema, has_header=True).read_all(), "the log")
    )


def check_unique_columns(table: Any, what: str) -> Any:
    """Return a table, or reject one with duplicate column names."""
    try:
        names = None if isinstance(table, Mapping) else get_labels(table)
        duplicates = [name for name, count in Counter(names or []).items() if count > 1]
    except Exception:  # its own code may raise anything; reading its columns reports it
        return table
    if duplicates:
        raise InvalidFile(
            ErrorCode.DUPLICATE_NAME,
            "two columns of {what} have the name {name}; rename one of them",
            what=what,
            name=safe_repr(duplicates[0]),
        )
    return table


def flatten_decisions(columns: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return columns of decisions flattened as in a JSON-lines file: the action is its name."""
    try:
        first = next(iter(columns["action"])) if "action" in columns and "name" in columns else None
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
    from arro3.io import read_parquet

    if content[:4] != MAGIC or content[-4:] != MAGIC:  # the reader would panic
        raise ValueError("it does not begin and end like a Parquet file")
    return read_columns(check_unique_columns(read_parquet(io.BytesIO(content)).read_all(), "the log"))


def parse_json_lines(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of JSON lines, such as `decision.to_dict()` with context and outcome."""
    return rows_to_columns(
        [
            flatten_line(json.loads(line, object_pairs_hook=check_unique_keys))
            for line in content.splitlines()
            if line.strip()
        ]
    )


def check_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, or reject one with duplicate keys."""
    duplicate = next((name for name, count in Counter(name for name, _ in pairs).items() if count > 1), None)
    if duplicate is not None:
        raise InvalidFile(
            ErrorCode.DUPLICATE_NAME,
            "a line has the key {name!r:.60} twice; every key must occur once",
            name=duplicate,
        )
    return dict(pairs)


def rows_to_columns(rows: list[dict[str, Any]]) -> Mapping[Any, Any]:
    """Return rows as columns, with None for missing values."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flatten_line(line: Any) -> dict[str, Any]:
    """Return one line as values by column: the action is its name, and nested objects are flattened.

    >>> flatten_line({"action": [0.0, 1.0], "name": "offer", "probabilities": {"offer": 1.0}, "context": {"age": 30}})
    {'action': 'offer', 'probability.offer': 1.0, 'age': 30}
    """
    if not isinstance(line, dict):
        raise InvalidFile(
            ErrorCode.FILE_INVALID, "a line holds {line!r:.40}; every line must be a JSON object", line=line
        )
    values: dict[str, Any] = {}
    for name, value in line.items():
        if isinstance(value, dict) and name in NESTED:
            values |= {f"{NESTED[name]}{inner}": one for inner, one in value.items()}
        elif not isinstance(value, dict | list | tuple) and not getattr(value, "ndim", 0):
            values[name] = value
    if "action" in line and "action" not in values and "name" in values:
        values["action"] = values.pop("name")
    return {"action": values.pop("action"), **values} if "action" in values else values
