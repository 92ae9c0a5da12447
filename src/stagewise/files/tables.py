"""Tables in CSV, Parquet and JSON-lines files, whole or as streams of Arrow record batches."""

import csv
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.files.paths import format_error, parse_path, read_file, write_atomically
from stagewise.problem.columns import (
    FORMS,
    get_column,
    get_labels,
    is_missing,
    is_unicode,
    list_column_names,
    read_columns,
)
from stagewise.problem.context import LONGEST_SEGMENT
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


BATCH_ROWS = 65_536
TABLE_FILES = (".parquet", ".csv")


class Batches(NamedTuple):
    """Record batches of one table; they can be iterated once."""

    names: tuple[str, ...]
    batches: Iterator[Any]
    """Record batches of at most `BATCH_ROWS` rows; at least one, which may be empty."""


def read_batches(source: Any, id_column: Any = None) -> Batches:
    """Return the record batches of a frame, or of a .parquet or .csv file, which is not read at once.

    The ids of a .csv file are texts: 007 is not 7.
    """
    from arro3.core import RecordBatch

    reader: Any = open_file(source, id_column) if isinstance(source, str | Path) else None
    if reader is None:
        try:
            reader = import_arrow(source)
        except Exception as error:  # an object's own code can raise anything
            hint = f"; reading it failed: {safe_repr(str(error))}"
            raise InvalidOutcome.must_be(ErrorCode.WRONG_TYPE, "the frame", source, FORMS + hint) from None
    if reader is None:
        columns = read_columns(source)
        listed = list_column_names(columns, InvalidOutcome)
        if not listed:
            raise InvalidOutcome.must_be(ErrorCode.MISSING_VALUE, "the number of columns of the table", 0, "at least 1")
        arrays = {str(name): build_array(get_column(columns, name, "the table"), str(name)) for name in listed}
        reader = RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    names = tuple(reader.schema.names)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        template = "two columns have the name {name}; rename one of them"
        raise InvalidOutcome(ErrorCode.DUPLICATE_NAME, template, name=safe_repr(twice[0]))
    return Batches(names, iter_slices([reader] if isinstance(reader, RecordBatch) else reader, reader.schema))


def build_array(column: Any, name: str) -> Any:
    """Return a column as an Arrow array, which holds no text with half a surrogate pair; `escape` stands for it."""
    try:
        return to_arrow(column, name)
    except UnicodeEncodeError:
        return to_arrow(column, name, escape)


def escape(entry: Any) -> Any:
    r"""Return a value, or for a text with half a surrogate pair one that is too long for a name: its row is refused.

    >>> escape("NZ"), escape("a\ud800").rstrip(), len(escape("a\ud800"))
    ('NZ', 'a\\ud800', 201)
    """
    if not isinstance(entry, str) or is_unicode(entry):
        return entry
    return entry.encode(errors="backslashreplace").decode().ljust(LONGEST_SEGMENT + 1)


def import_arrow(source: Any) -> Any:
    """Return the record batches of an object with Arrow's C interface; None where it has none."""
    from arro3.core import RecordBatch, RecordBatchReader

    try:
        if hasattr(source, "__arrow_c_stream__"):
            return RecordBatchReader.from_arrow(source)
        return RecordBatch.from_arrow(source) if hasattr(source, "__arrow_c_array__") else None
    except ImportError:  # a frame of pandas without pyarrow
        return None


def iter_slices(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Yield record batches of at most `BATCH_ROWS` rows, at least one."""
    from arro3.core import RecordBatch

    is_empty = True
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            is_empty = False
            yield batch.slice(start, min(BATCH_ROWS, batch.num_rows - start))
    if is_empty:
        yield RecordBatch.from_arrow(schema.empty_table().combine_chunks().to_struct_array().combine_chunks())


def open_file(source: str | Path, id_column: Any) -> Any:
    """Return a reader of the record batches of a file."""
    from arro3.core import DataType
    from arro3.io import infer_csv_schema, read_csv, read_parquet

    path = parse_path(source, "the table")
    if path.suffix.lower() not in TABLE_FILES:
        raise InvalidFile.must_be_one_of(ErrorCode.FILE_WRONG_KIND, "the suffix of a table", path.suffix, TABLE_FILES)
    if not path.is_file():
        raise InvalidFile(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=format_path(path))
    check_last_line(path)
    try:
        if path.suffix.lower() == ".parquet":
            with path.open("rb") as file:
                head = file.read(4)
                file.seek(-4, 2)
                if not head == file.read(4) == MAGIC:  # the reader would panic
                    raise ValueError("it does not begin and end like a Parquet file")
            return read_parquet(str(path), batch_size=BATCH_ROWS)
        schema = infer_csv_schema(str(path), has_header=True)
        for index in [i for i, name in enumerate(schema.names) if name == id_column]:
            schema = schema.set(index, schema.field(index).with_type(DataType.string()))
        return read_csv(str(path), schema, has_header=True, batch_size=BATCH_ROWS)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the reader is not an Exception
        verb = f"read as {path.suffix[1:]}"
        raise InvalidFile.cannot_be(ErrorCode.FILE_INVALID, path, verb, format_error(error)) from None


def check_last_line(path: Path) -> None:
    """Reject a CSV file that was not written to its end: a number that is cut off is another number."""
    with path.open("rb") as file:
        if path.suffix.lower() == ".csv" and file.seek(0, 2):
            file.seek(-1, 2)
            if file.read(1) not in b"\r\n":
                template = "the last line of {path} has no end, so its last value may be cut off; end it with a newline"
                raise InvalidFile(ErrorCode.FILE_INVALID, template, path=format_path(path))


def write_batches(path: Path, batches: Iterable[Any]) -> None:
    """Write record batches to a .parquet or .csv file, atomically, while they are made."""
    from arro3.core import RecordBatchReader
    from arro3.io import write_csv, write_parquet

    suffix, batches, failed = path.suffix.lower(), iter(batches), list[BaseException]()
    if suffix not in TABLE_FILES:
        raise InvalidFile.must_be_one_of(ErrorCode.FILE_WRONG_KIND, "the suffix of a table", path.suffix, TABLE_FILES)
    first = next(batches)

    def make() -> Iterator[Any]:
        try:
            yield from chain([first], batches)
        except BaseException as error:  # the writer would show it as its own
            failed.append(error)
            raise

    def write(temporary: Path) -> None:
        reader = RecordBatchReader.from_batches(first.schema, make())
        try:
            if suffix == ".csv":
                write_csv(reader, str(temporary))
            else:
                plain = {field.name: False for field in first.schema if not is_text(field.type)}
                write_parquet(
                    reader, str(temporary), compression="lz4_raw", max_row_group_size=4 * BATCH_ROWS,
                    column_dictionary_enabled=plain,
                )  # fmt: skip
        except Exception as error:
            raise (failed or [OSError(str(error))])[0] from None

    write_atomically(path, write)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is one of texts."""
    return bool(kind.is_string(kind) or kind.is_large_string(kind) or kind.is_string_view(kind))


def to_list(array: Any) -> list[Any]:
    """Return the entries of an Arrow column, None for null."""
    kind = array.type
    entries: list[Any] = (array.cast(kind.value_type) if kind.is_dictionary(kind) else array).to_pylist()
    return entries


def to_numpy(array: Any) -> npt.NDArray[Any]:
    """Return an Arrow column as an array: numbers with NaN for null, anything else as objects.

    Equal texts are one object.
    """
    from arro3.core import DataType, dictionary_dictionary, dictionary_indices

    kind = array.type
    if is_text(kind):
        array = array.cast(DataType.dictionary(DataType.int32(), kind))
        labels = np.array([*dictionary_dictionary(array).to_pylist(), None], dtype=object)
        texts: npt.NDArray[Any] = labels[np.nan_to_num(to_numpy(dictionary_indices(array)), nan=-1).astype(np.int64)]
        return texts
    if kind.is_dictionary(kind):
        return to_numpy(array.cast(kind.value_type))
    if not array.null_count and (kind.is_numeric(kind) or kind.is_boolean(kind)):
        return np.asarray(array.to_numpy())
    if kind.is_numeric(kind):
        entries = array.cast(DataType.float64()).to_pylist()
        return np.array([np.nan if entry is None else entry for entry in entries], dtype=np.float64)
    column = np.empty(len(array), dtype=object)
    column[:] = array.to_pylist()
    return column


def read_column(table: Any, name: str) -> npt.NDArray[Any]:
    """Return a column of an Arrow table, which may have no chunks, as an array."""
    from arro3.core import Array

    column = table.column(name)
    return to_numpy(column.combine_chunks() if column.num_chunks else Array([], column.type))


def convert_like(source: Any, table: Any) -> Any:
    """Return an Arrow table as the kind of frame that came: pandas, polars, PyArrow, DuckDB, a mapping, or itself."""
    package = type(source).__module__.partition(".")[0].lstrip("_")
    if isinstance(source, Mapping) or package == "pandas":
        columns = {name: read_column(table, name) for name in table.column_names}
        return columns if isinstance(source, Mapping) else type(source)(columns)
    if package == "polars":
        return type(source)(table)
    if package in ("pyarrow", "duckdb"):
        module: Any = sys.modules[package]
        if package == "duckdb":
            return module.from_arrow(table)
        made = module.table(table)
        if not isinstance(source, module.RecordBatch):
            return made
        return next(iter(made.combine_chunks().to_batches()), module.RecordBatch.from_pylist([], schema=made.schema))
    return table
