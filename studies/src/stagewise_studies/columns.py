"""Parse tables into columns by name: text with a header, Stata files, pickled frames."""

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewise.problem.errors import ErrorCode
from stagewise_studies.source import DataUnavailable

Columns = dict[str, NDArray[Any]]


def parse_text(content: bytes, separator: str = ",") -> Columns:
    r"""Return the columns of a table in text, each an array of text; fields must not hold the separator.

    >>> parse_text(b"age,sex\n24,M\n53,F\n")["age"].tolist()
    ['24', '53']
    """
    lines = content.decode().splitlines()
    names, rows = lines[0].split(separator), [line.split(separator) for line in lines[1:] if line]
    line_number = next((number for number, row in enumerate(rows, start=2) if len(row) != len(names)), None)
    if line_number is not None:
        raise DataUnavailable(
            ErrorCode.FILE_INVALID,
            "line {line_number} of a table has {rows_count} fields and its header has {names_count}; they must agree",
            line_number=line_number,
            rows_count=len(rows[line_number - 2]),
            names_count=len(names),
        )
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


class Shell:
    """Stands in for a class of pandas and keeps its pickled state."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


def build_index(_: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Stand in for pandas' index constructor."""
    return parts


ALLOWED: dict[tuple[str, str], Any] = {
    ("pandas.core.frame", "DataFrame"): Shell,
    ("pandas.core.internals.managers", "BlockManager"): Shell,
    ("pandas.core.indexes.base", "_new_Index"): build_index,
    ("pandas.core.indexes.base", "Index"): Shell,
    ("pandas.core.indexes.range", "RangeIndex"): Shell,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0] for core in ("core", "_core")},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("builtins", "slice"): slice,
}


class Reader(pickle.Unpickler):
    """Reads frames that pandas pickled before 1.0; rejects everything else, so a pickle can run nothing."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise DataUnavailable(
                ErrorCode.FILE_INVALID,
                "a pickled table refers to {module}.{name}; only frames of numbers and text can be read",
                module=module,
                name=name,
            )
        return ALLOWED[module, name]


def parse_pickle(content: bytes) -> Columns:
    """Return the columns of a pickled frame."""
    _, blocks, names, _ = Reader(io.BytesIO(content)).load().state["_data"].state
    pairs = zip(names, blocks, strict=True)
    return {str(name): row for block, rows in pairs for name, row in zip(block["data"], rows, strict=True)}


KINDS = {
    65526: ("f8", 8.98e307),
    65527: ("f4", 1.7e38),
    65528: ("i4", 2147483620),
    65529: ("i2", 32740),
    65530: ("i1", 100),
}


def parse_stata(content: bytes) -> Columns:
    """Return the columns of a Stata file of release 118 that holds numbers only; missing values are NaN.

    Values above the largest number of each type are Stata's missing values (`help dta`).
    """
    if not content.startswith(b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>"):
        raise DataUnavailable(
            ErrorCode.FILE_INVALID,
            "the table is not a little-endian Stata file of release 118, the only kind that can be read",
        )
    count, rows = (
        int.from_bytes(read_after(content, b"<K>", 2), "little"),
        int.from_bytes(read_after(content, b"<N>", 8), "little"),
    )
    kinds = np.frombuffer(read_after(content, b"<variable_types>", 2 * count), "<u2").tolist()
    if not set(kinds) <= set(KINDS):
        raise DataUnavailable(ErrorCode.FILE_INVALID, "the Stata file holds text; only tables of numbers can be read")
    names = read_after(content, b"<varnames>", 129 * count)
    titles = [names[129 * i : 129 * (i + 1)].split(b"\0")[0].decode() for i in range(count)]
    layout = np.dtype([(title, f"<{KINDS[kind][0]}") for title, kind in zip(titles, kinds, strict=True)])
    table = np.frombuffer(read_after(content, b"<data>", rows * layout.itemsize), layout)
    columns = {}
    for title, kind in zip(titles, kinds, strict=True):
        numbers = table[title].astype(np.float64)
        columns[title] = np.where(numbers > KINDS[kind][1], np.nan, numbers)
    return columns


def read_after(content: bytes, mark: bytes, size: int) -> bytes:
    """Return `size` bytes after a mark."""
    start = content.index(mark) + len(mark)
    return content[start : start + size]
