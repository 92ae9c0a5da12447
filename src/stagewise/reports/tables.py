"""Columns of numbers as Parquet, in memory: the library behind it panics on a full disk and on damaged files."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.problem.errors import InvalidFile

MAGIC = b"PAR1"  # how a Parquet file begins and ends


def packed(columns: dict[str, Any]) -> bytes:
    """Return columns of numbers as the content of a Parquet file."""
    from arro3.core import Array, Table
    from arro3.io import write_parquet

    arrays = [Array.from_numpy(np.ascontiguousarray(column)) for column in columns.values()]
    buffer = io.BytesIO()
    write_parquet(Table.from_arrays(arrays, names=list(columns)), buffer, compression="zstd(3)")
    return buffer.getvalue()


def unpacked(content: bytes, path: Path) -> dict[str, Any]:
    """Return the columns that a file holds; `path` is where it came from, for messages."""
    from arro3.io import read_parquet

    if not (len(content) > 2 * len(MAGIC) and content.startswith(MAGIC) and content.endswith(MAGIC)):
        raise InvalidFile(f"{path} is not a whole Parquet file; it must begin and end with {MAGIC.decode()}")
    try:
        table = read_parquet(io.BytesIO(content)).read_all()
        return {name: table.column(name).to_numpy() for name in table.column_names}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic is no Exception
        raise InvalidFile(f"{path} is not a whole Parquet file: {error}") from None
