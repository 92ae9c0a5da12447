"""Columns of numbers as Parquet, vouched for by a manifest: written last, with a digest of each file and of itself.

Parquet is made and read in memory, since the library behind it panics on a full disk and on damaged files.
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.paths import check_fits
from stagewise.files.whole import fingerprint
from stagewise.problem.errors import InvalidFile
from stagewise.reports.files import write_bytes, write_text

MANIFEST = "manifest.json"
MAGIC = b"PAR1"  # how a Parquet file begins and ends
AGAIN = "bring back a copy of it, or delete the folder and play its runs again"


def write_sealed(folder: Path, manifest: dict[str, Any], files: dict[str, bytes]) -> None:
    """Write files and the manifest that vouches for them; cut short, it leaves no manifest and so nothing to trust."""
    told = {**manifest, "files": {name: fingerprint(content) for name, content in files.items()}}
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise InvalidFile(f"{folder / MANIFEST} cannot be replaced: {error.strerror}") from None
    for name, content in files.items():
        write_bytes(folder / name, content)
    write_text(folder / MANIFEST, json.dumps({**told, "digest": own_digest(told)}, indent=1))


def own_digest(told: dict[str, Any]) -> str:
    """Return the digest of what a manifest tells, however its text is laid out."""
    return fingerprint(json.dumps(json.loads(json.dumps(told)), sort_keys=True).encode())


def manifest_in(folder: Path) -> dict[str, Any]:
    """Return what a folder's manifest tells; refuse one that is not as it was written. It may be missing."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidFile(f"{folder} is not a folder with a result: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{folder} is not a whole result: its {MANIFEST} cannot be read, {error}") from None
    if not isinstance(told, dict):
        raise InvalidFile(f"{folder} is not a result: its {MANIFEST} holds a {type(told).__name__}")
    if {"digest", "files"} & set(told) and told.pop("digest", None) != own_digest(told):
        raise InvalidFile(f"{folder} is not a whole result: its {MANIFEST} is not as it was written; {AGAIN}")
    return told


def content_of(path: Path, digest: str | None) -> bytes:
    """Return what a file holds; refuse other content than its manifest vouches for."""
    check_fits(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}; {AGAIN}") from None
    if fingerprint(content) != digest:
        raise InvalidFile(f"{path} is not whole: its SHA-256 is not the one in {MANIFEST}; {AGAIN}")
    return content


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
