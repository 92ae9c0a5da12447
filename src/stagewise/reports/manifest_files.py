"""Parquet files with a manifest, which is written last and has a digest of each file and of itself.

Parquet is encoded and decoded in memory, since the library behind it panics on a full disk and on damaged files.
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.files.atomic_write import compute_sha256
from stagewise.files.paths import check_fits_memory
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.reports.output_folder import write_bytes, write_text

MANIFEST = "manifest.json"
MAGIC = b"PAR1"  # the first and last bytes of a Parquet file
RESTORE_HINT = "restore a copy of it, or delete the folder and simulate again"


def write_with_manifest(folder: Path, manifest: dict[str, Any], files: dict[str, bytes]) -> None:
    """Write files and their manifest; if interrupted, there is no manifest, so the files are not trusted."""
    entries = {**manifest, "files": {name: compute_sha256(content) for name, content in files.items()}}
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_NOT_WRITABLE,
            "{folder} cannot be replaced: {strerror}",
            folder=folder / MANIFEST,
            strerror=error.strerror,
        ) from None
    for name, content in files.items():
        write_bytes(folder / name, content)
    write_text(folder / MANIFEST, json.dumps({**entries, "digest": compute_manifest_digest(entries)}, indent=1))


def compute_manifest_digest(entries: dict[str, Any]) -> str:
    """Return the digest of a manifest's content, whatever its formatting."""
    return compute_sha256(json.dumps(json.loads(json.dumps(entries)), sort_keys=True).encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's manifest; reject a changed one. It may be missing."""
    try:
        entries = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_NOT_FOUND,
            "{folder} is not a results folder: {strerror}",
            folder=folder,
            strerror=error.strerror,
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT,
            "{folder} is not a complete result, because its {manifest} cannot be read: {error}",
            folder=folder,
            manifest=MANIFEST,
            error=error,
        ) from None
    if not isinstance(entries, dict):
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "{folder} is not a result, because its {manifest} holds a {name}",
            folder=folder,
            manifest=MANIFEST,
            name=type(entries).__name__,
        )
    if {"digest", "files"} & set(entries) and entries.pop("digest", None) != compute_manifest_digest(entries):
        raise InvalidFile(
            ErrorCode.DIGEST_MISMATCH,
            "{folder} is not a complete result, because its {manifest} was changed; {restore_hint}",
            folder=folder,
            manifest=MANIFEST,
            restore_hint=RESTORE_HINT,
        )
    return entries


def read_verified(path: Path, digest: str | None) -> bytes:
    """Return the content of a file; reject content with another digest than in the manifest."""
    check_fits_memory(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_UNREADABLE,
            "{path} cannot be read: {strerror}; {restore_hint}",
            path=path,
            strerror=error.strerror,
            restore_hint=RESTORE_HINT,
        ) from None
    if compute_sha256(content) != digest:
        raise InvalidFile(
            ErrorCode.DIGEST_MISMATCH,
            "{path} was changed, because its SHA-256 is not the one in {manifest}; {restore_hint}",
            path=path,
            manifest=MANIFEST,
            restore_hint=RESTORE_HINT,
        )
    return content


def to_parquet(columns: dict[str, Any]) -> bytes:
    """Return columns of numbers as the content of a Parquet file."""
    from arro3.core import Array, Table
    from arro3.io import write_parquet

    arrays = [Array.from_numpy(np.ascontiguousarray(column)) for column in columns.values()]
    buffer = io.BytesIO()
    write_parquet(Table.from_arrays(arrays, names=list(columns)), buffer, compression="zstd(3)")
    return buffer.getvalue()


def from_parquet(content: bytes, path: Path) -> dict[str, Any]:
    """Return the columns of a file; `path` is for messages."""
    from arro3.io import read_parquet

    if not (len(content) > 2 * len(MAGIC) and content.startswith(MAGIC) and content.endswith(MAGIC)):
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT,
            "{path} is not a complete Parquet file; it must begin and end with {magic}",
            path=path,
            magic=MAGIC.decode(),
        )
    try:
        table = read_parquet(io.BytesIO(content)).read_all()
        return {name: table.column(name).to_numpy() for name in table.column_names}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic is no Exception
        raise InvalidFile(
            ErrorCode.FILE_CORRUPT, "{path} is not a complete Parquet file: {error}", path=path, error=error
        ) from None
