"""Cache of compiled kernels on disk: folder name, reading, writing, and trust.

Loading machine code unpickles it, which can run arbitrary code. So a file is loaded only where no one but this user
and root can have written it.
"""

import hashlib
import os
import stat
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
NOT_TRUSTED = "others than you and root own it or can change it"


def list_sources() -> list[Path]:
    """Return every source file of the kernels (`tests/test_border.py` checks that there are no others)."""
    return sorted((PACKAGE / "kernels").rglob("*.py"))


def build_folder_path(files: Iterable[Path], makers: Iterable[str]) -> Path | None:
    """Return the cache folder for these source files and compiler versions; None for a user without a home folder.

    Its name contains a digest of all sources, because Numba only checks the file that defines a function, not the files
    of the functions that it calls.
    """
    base = os.environ.get("STAGEWISE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(base or Path.home() / ".cache").resolve()
    except (OSError, RuntimeError):  # unknown users of containers have no home folder
        return None
    text = hashlib.sha256(repr([sys.version, *makers]).encode())
    for path in files:
        text.update(f"{path.relative_to(PACKAGE).as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return root / "stagewise" / f"kernels-{text.hexdigest()[:16]}"


def is_trusted(path: Path) -> bool:
    """Return whether only this user and root can have written or can replace this file or folder.

    The path and its folder must belong to one of the two, and neither the path nor any folder above it may be writable
    by others. In a sticky folder such as /tmp, others cannot replace files that are not theirs. A group whose number
    equals the user's counts as the user's own, and root's group counts as root.
    """
    if os.name == "nt":
        return True  # a profile belongs to its user, and `stat` does not say who else may write
    user = os.geteuid()
    for level, ancestor in enumerate((path, *path.parents)):
        status = ancestor.stat()
        others = stat.S_IWOTH if status.st_gid in (0, user) else stat.S_IWOTH | stat.S_IWGRP
        fixed = level > 1 and status.st_mode & stat.S_ISVTX
        if status.st_mode & others and not fixed:
            return False
        if level < 2 and status.st_uid not in (0, user):
            return False
    return True


def read(path: Path) -> bytes:
    """Return the content of a cached file; raise OSError if it does not exist or is not trusted."""
    if not is_trusted(path):
        raise PermissionError(0, NOT_TRUSTED)
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Write a file atomically; raise OSError if it cannot be written or would not be trusted."""
    for ancestor in reversed(path.parents):
        if not ancestor.is_dir():
            ancestor.mkdir(mode=0o755, exist_ok=True)
    if not is_trusted(path.parent):
        raise PermissionError(0, NOT_TRUSTED)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def can_write(folder: Path | None) -> bool:
    """Return whether machine code can be written to a folder, by writing and removing a file."""
    if folder is None:
        return False
    trial = folder / f"trial-{uuid.uuid4().hex}"
    try:
        write(trial, b"")
        trial.unlink()
    except OSError:
        return False
    return True
