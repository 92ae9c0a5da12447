"""Output folders, and Parquet files with a manifest, which is written last and has a digest of each file and of itself.

Parquet is encoded and decoded in memory, since the library behind it panics on a full disk and on damaged files.
"""

import json
import os
from pathlib import Path
from typing import Any

from stagewise.files.paths import compute_sha256, get_os_reason, parse_path, write_bytes, write_text
from stagewise.files.tables import decode_parquet, encode_parquet, read_column, to_arrow
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path

MANIFEST = "manifest.json"
RESTORE_HINT = "restore a copy of it, or delete the folder and simulate again"


def check_folder(folder: str | Path) -> Path:
    """Return a folder that can be written or created; nothing is created yet."""
    path = parse_path(folder, "the folder")
    try:
        existing = next(one for one in (path, *path.absolute().parents) if one.exists())
        parent = format_path(existing)
        reason = "" if existing.is_dir() else f"{parent} is a file; choose another path"
        if not reason and not os.access(existing, os.W_OK | os.X_OK):
            reason = f"{parent} is not writable"
    except OSError as error:
        reason = get_os_reason(error)
    if reason:
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_WRITABLE, path, "used as a results folder", reason)
    return path


def make_folder(folder: str | Path) -> Path:
    """Return a folder that can be written, created if needed."""
    path = check_folder(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_WRITABLE, path, "created", error) from None
    return path


def write_with_manifest(folder: Path, manifest: dict[str, Any], files: dict[str, bytes]) -> None:
    """Write files and their manifest; if interrupted, there is no manifest, so the files are not trusted."""
    entries = {**manifest, "files": {name: compute_sha256(content) for name, content in files.items()}}
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_WRITABLE, folder / MANIFEST, "replaced", error) from None
    for name, content in files.items():
        write_bytes(folder / name, content)
    write_text(folder / MANIFEST, json.dumps({**entries, "digest": compute_manifest_digest(entries)}, indent=1))


def compute_manifest_digest(entries: dict[str, Any]) -> str:
    """Return the digest of a manifest's content, whatever its formatting."""
    return compute_sha256(json.dumps(json.loads(json.dumps(entries)), sort_keys=True).encode())


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the content of a folder's manifest, or reject a changed one; None: there is none."""
    try:
        entries = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_FOUND, folder, "read as a results folder", error) from None
    except (ValueError, RecursionError) as error:
        raise reject_result(
            ErrorCode.FILE_CORRUPT, folder, "its {manifest} cannot be read: {error}", manifest=MANIFEST, error=error
        ) from None
    if not isinstance(entries, dict):
        template = "its {manifest} holds a {kind}"
        raise reject_result(ErrorCode.FILE_WRONG_KIND, folder, template, manifest=MANIFEST, kind=type(entries).__name__)
    if {"digest", "files"} & set(entries) and entries.pop("digest", None) != compute_manifest_digest(entries):
        template = "its {manifest} was changed; {restore_hint}"
        raise reject_result(ErrorCode.DIGEST_MISMATCH, folder, template, manifest=MANIFEST, restore_hint=RESTORE_HINT)
    return entries


def read_verified(path: Path, digest: str | None) -> bytes:
    """Return the content of a file; reject content with another digest than in the manifest."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = f"{get_os_reason(error)}; {RESTORE_HINT}"
        raise InvalidFile.cannot_be(ErrorCode.FILE_UNREADABLE, path, "read", reason) from None
    if compute_sha256(content) != digest:
        reason = "it was changed, as its SHA-256 is not the one in {manifest}; {restore_hint}"
        raise reject_result(ErrorCode.DIGEST_MISMATCH, path, reason, manifest=MANIFEST, restore_hint=RESTORE_HINT)
    return content


def reject_result(code: ErrorCode, path: Path, reason: str, /, **details: Any) -> InvalidFile:
    return InvalidFile(code, "{path} is not a complete result: " + reason, path=format_path(path), **details)


def to_parquet(columns: dict[str, Any]) -> bytes:
    """Return columns of numbers as the content of a Parquet file."""
    return encode_parquet({name: to_arrow(column, name) for name, column in columns.items()})


def from_parquet(content: bytes, path: Path) -> dict[str, Any]:
    """Return the columns of a file; `path` is for messages."""
    try:
        table = decode_parquet(content)
    except ValueError as error:
        raise reject_result(ErrorCode.FILE_CORRUPT, path, "it is no Parquet file: {error}", error=error) from None
    return {name: read_column(table, name) for name in table.column_names}
