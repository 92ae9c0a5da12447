"""Tables as files hold them: CSV, Parquet, or a JSON object a line."""

import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagewise.files.paths import brief, content_of, named, path_of
from stagewise.problem.columns import columns_of
from stagewise.problem.errors import InvalidFile
from stagewise.problem.tables import labels
from stagewise.problem.words import shown

MAGIC = b"PAR1"
KINDS = "a .csv, .parquet or .jsonl file"
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # of tables that are no CSV
NESTED = {"probabilities": "probability.", "context": "", "outcome": ""}  # tables within a line, and their prefix


def table_at(source: Any) -> Mapping[Any, Any]:
    """Return the columns of a file by name, or of a frame that was given in its place.

    >>> sorted(table_at({"action": ["offer"], "click": [1]}))
    ['action', 'click']
    """
    if not isinstance(source, str | Path):
        return of_decisions(columns_of(apart(source, "the frame")))
    path = path_of(source, "the log")
    readers = {".csv": of_csv, ".parquet": of_parquet, ".jsonl": of_lines, ".ndjson": of_lines}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise InvalidFile(f"{named(path)} ends in {path.suffix!r}; a log is {KINDS}")
    content = content_of(path)
    if not content:
        raise InvalidFile(f"{named(path)} is empty; a log is {KINDS}")
    try:
        return read(content)
    except (InvalidFile, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the reader is no Exception
        raise InvalidFile(f"{named(path)} cannot be read as {path.suffix[1:]}: {brief(error)}") from None


def of_csv(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of a CSV file whose first line names them."""
    from arro3.io import infer_csv_schema, read_csv

    schema = infer_csv_schema(io.BytesIO(content), has_header=True)
    told = list(schema.names)
    other = next((sign for sign in SEPARATORS if len(told) == 1 and sign in told[0]), None)
    if other is not None:
        raise InvalidFile(
            f"the first line of the log names one column, {shown(told[0])}; {SEPARATORS[other]} seem to stand between "
            "columns, where a .csv has commas: write it with commas, and numbers with points"
        )
    return columns_of(apart(read_csv(io.BytesIO(content), schema, has_header=True).read_all(), "the log"))


def apart(table: Any, what: str) -> Any:
    """Return a table whose columns all have names of their own."""
    try:
        names = None if isinstance(table, Mapping) else labels(table)
        twice = [name for name, count in Counter(names or []).items() if count > 1]
    except Exception:  # whatever its own code came to: who reads its columns says so
        return table
    if twice:
        raise InvalidFile(
            f"two columns of {what} are called {shown(twice[0])}; only one of them could be read, so give the other "
            "another name"
        )
    return table


def of_decisions(columns: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return columns in which what a decision holds stands as in a file of lines: its action is its name."""
    try:
        first = next(iter(columns["action"])) if "action" in columns and "name" in columns else None
        if not isinstance(first, list | tuple) and getattr(first, "ndim", 0) != 1:
            return columns
        rows = zip(*(list(columns[name]) for name in columns), strict=True)
        return of_rows([flat(dict(zip(columns, row, strict=True))) for row in rows])
    except InvalidFile:
        raise
    except Exception:  # no column that can be gone through: who reads it says so
        return columns


def of_parquet(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of a Parquet file."""
    from arro3.io import read_parquet

    if content[:4] != MAGIC or content[-4:] != MAGIC:  # the reader would panic
        raise ValueError("it neither begins nor ends as Parquet does")
    return columns_of(apart(read_parquet(io.BytesIO(content)).read_all(), "the log"))


def of_lines(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of lines of JSON, such as `decision.plain()` with its context and what came of it."""
    return of_rows([flat(json.loads(line, object_pairs_hook=once)) for line in content.splitlines() if line.strip()])


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what one object of JSON holds, each name once."""
    twice = next((name for name, count in Counter(name for name, _ in pairs).items() if count > 1), None)
    if twice is not None:
        raise InvalidFile(f"a line names {twice!r:.60} twice; only one of them could be read")
    return dict(pairs)


def of_rows(rows: list[dict[str, Any]]) -> Mapping[Any, Any]:
    """Return rows as columns, with None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def flat(line: Any) -> dict[str, Any]:
    """Return one line as values by column: a decision's action is its name, what is nested stands beside it.

    >>> flat({"action": [0.0, 1.0], "name": "offer", "probabilities": {"offer": 1.0}, "context": {"age": 30}})
    {'action': 'offer', 'probability.offer': 1.0, 'age': 30}
    """
    if not isinstance(line, dict):
        raise InvalidFile(f"a line holds {line!r:.40}; every line must be an object of JSON")
    told: dict[str, Any] = {}
    for name, value in line.items():
        if isinstance(value, dict) and name in NESTED:
            told |= {f"{NESTED[name]}{inner}": one for inner, one in value.items()}
        elif not isinstance(value, dict | list | tuple) and not getattr(value, "ndim", 0):
            told[name] = value
    if "action" in line and "action" not in told and "name" in told:
        told["action"] = told.pop("name")
    return {"action": told.pop("action"), **told} if "action" in told else told
