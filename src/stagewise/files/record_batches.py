"""Tables as streams of Arrow record batches: from files and frames, and back to the kind that came."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.files.atomic_write import write_atomically
from stagewise.files.paths import format_error, parse_path
from stagewise.files.tables import MAGIC, to_arrow
from stagewise.problem.columns import FORMS, get_column, is_unicode, list_column_names, read_columns
from stagewise.problem.context import LONGEST_SEGMENT
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidOutcome
from stagewise.problem.formatting import format_path, safe_repr

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
