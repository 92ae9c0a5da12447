"""Tables as they lie in packages, read into columns by name: text with a head, Stata's files, pickled frames."""

import io
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewise_studies.source import NoData

Columns = dict[str, NDArray[Any]]


def of_text(content: bytes, separator: str = ",") -> Columns:
    r"""Return the columns of a table in text, each an array of text; fields must not hold the separator.

    >>> of_text(b"age,sex\n24,M\n53,F\n")["age"].tolist()
    ['24', '53']
    """
    lines = content.decode().splitlines()
    names, rows = lines[0].split(separator), [line.split(separator) for line in lines[1:] if line]
    odd = next((number for number, row in enumerate(rows, start=2) if len(row) != len(names)), None)
    if odd is not None:
        raise NoData(
            f"line {odd} of a table has {len(rows[odd - 2])} fields and its head {len(names)}; they must agree"
        )
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


class Shell:
    """What stands in for a class of pandas: it keeps what was pickled of it."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


def index_of(_: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Stand in for pandas' maker of indexes: the parts are all that is wanted."""
    return parts


ALLOWED: dict[tuple[str, str], Any] = {
    ("pandas.core.frame", "DataFrame"): Shell,
    ("pandas.core.internals.managers", "BlockManager"): Shell,
    ("pandas.core.indexes.base", "_new_Index"): index_of,
    ("pandas.core.indexes.base", "Index"): Shell,
    ("pandas.core.indexes.range", "RangeIndex"): Shell,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0] for core in ("core", "_core")},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("builtins", "slice"): slice,
}


class Reader(pickle.Unpickler):
    """Reads frames that pandas pickled before 1.0; whatever else a pickle asks for is refused: it can run nothing."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise NoData(f"a pickled table asks for {module}.{name}; only frames of numbers and text are read")
        return ALLOWED[module, name]


def of_pickle(content: bytes) -> Columns:
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


def of_stata(content: bytes) -> Columns:
    """Return the columns of a Stata file of release 118 that holds numbers only; what is missing is NaN.

    Above the last number of each kind Stata counts its ways of missing (the format is Stata's `help dta`).
    """
    if not content.startswith(b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>"):
        raise NoData("a table is no Stata file of release 118, little end first; only those are read")
    count, rows = (
        int.from_bytes(after(content, b"<K>", 2), "little"),
        int.from_bytes(after(content, b"<N>", 8), "little"),
    )
    kinds = np.frombuffer(after(content, b"<variable_types>", 2 * count), "<u2").tolist()
    if not set(kinds) <= set(KINDS):
        raise NoData("a Stata file holds text; only tables of numbers are read")
    names = after(content, b"<varnames>", 129 * count)
    titles = [names[129 * i : 129 * (i + 1)].split(b"\0")[0].decode() for i in range(count)]
    layout = np.dtype([(title, f"<{KINDS[kind][0]}") for title, kind in zip(titles, kinds, strict=True)])
    table = np.frombuffer(after(content, b"<data>", rows * layout.itemsize), layout)
    columns = {}
    for title, kind in zip(titles, kinds, strict=True):
        numbers = table[title].astype(np.float64)
        columns[title] = np.where(numbers > KINDS[kind][1], np.nan, numbers)
    return columns


def after(content: bytes, mark: bytes, size: int) -> bytes:
    """Return so many bytes behind a mark."""
    start = content.index(mark) + len(mark)
    return content[start : start + size]
