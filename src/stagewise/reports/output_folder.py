"""Output folders: check that they can be written, and create them."""

import os
from pathlib import Path

from stagewise.files.atomic_write import write_bytes, write_text
from stagewise.files.paths import get_os_reason, parse_path
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path

__all__ = ["make_folder", "check_folder", "write_bytes", "write_text"]


def check_folder(folder: str | Path) -> Path:
    """Return a folder that can be written or created; nothing is created yet."""
    path = parse_path(folder, "the folder")
    try:
        existing = next(one for one in (path, *path.absolute().parents) if one.exists())
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_NOT_WRITABLE,
            "{folder} cannot be used as a results folder: {error}",
            folder=format_path(path),
            error=get_os_reason(error),
        ) from None
    if not existing.is_dir():
        raise InvalidFile(
            ErrorCode.FILE_NOT_WRITABLE,
            "{folder} cannot be used as a results folder, because {parent} is a file; choose another path",
            folder=format_path(path),
            parent=format_path(existing),
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InvalidFile(
            ErrorCode.FILE_NOT_WRITABLE,
            "{folder} cannot be used as a results folder, because {parent} is not writable",
            folder=format_path(path),
            parent=format_path(existing),
        )
    return path


def make_folder(folder: str | Path) -> Path:
    """Return a folder that can be written, created if needed."""
    path = check_folder(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_NOT_WRITABLE,
            "{folder} cannot be created: {error}; choose another path",
            folder=format_path(path),
            error=get_os_reason(error),
        ) from None
    return path
