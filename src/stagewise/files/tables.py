"""Tables as files hold them: CSV, Parquet, or a JSON object a line."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagewise.files.paths import brief, content_of, named, path_of
from stagewise.problem.columns import columns_of
from stagewise.problem.errors import InvalidFile

MAGIC = b"PAR1"
KINDS = "a .csv, .parquet or .jsonl file"
NESTED = {"probabilities": "probability.", "context": "", "outcome": ""}  # tables within a line, and their prefix


def table_at(source: Any) -> Mapping[Any, Any]:
    """Return the columns of a file by name, or of a frame that was given in its place.

    >>> sorted(table_at({"action": ["offer"], "click": [1]}))
    ['action', 'click']
    """
    if not isinstance(source, str | Path):
        return columns_of(source)
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
    return columns_of(read_csv(io.BytesIO(content), schema, has_header=True).read_all())


def of_parquet(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of a Parquet file."""
    from arro3.io import read_parquet

    if content[:4] != MAGIC or content[-4:] != MAGIC:  # the reader would panic
        raise ValueError("it neither begins nor ends as Parquet does")
    return columns_of(read_parquet(io.BytesIO(content)).read_all())


def of_lines(content: bytes) -> Mapping[Any, Any]:
    """Return the columns of lines of JSON, such as `decision.plain()` with its context and what came of it."""
    rows = [flat(json.loads(line)) for line in content.splitlines() if line.strip()]
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
        elif not isinstance(value, dict | list):
            told[name] = value
    if isinstance(line.get("action"), list) and "name" in told:
        told["action"] = told.pop("name")
    return {"action": told.pop("action"), **told} if "action" in told else told
