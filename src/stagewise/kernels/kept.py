"""Where machine code is kept between processes, under which name, and whether what lies there can be trusted.

Machine code is loaded by unpickling, which runs whatever is in the file. So a file is loaded only where nobody but this
user and root can have put it.
"""

import hashlib
import os
import stat
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
NOT_OURS = "others than you and root own it or can change it"


def sources() -> list[Path]:
    """Return every file that kernels are made of: they stand in one room (`tests/test_border.py`)."""
    return sorted((PACKAGE / "kernels").rglob("*.py"))


def folder(files: Iterable[Path], makers: Iterable[str]) -> Path | None:
    """Return the folder for what these files, compiled by these makers, become, or none for a user without a home.

    Its name is a digest of their texts: Numba compares the file that a function stands in, not those it calls into.
    """
    named = os.environ.get("STAGEWISE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(named or Path.home() / ".cache").resolve()
    except (OSError, RuntimeError):  # the unknown users of many containers have none
        return None
    text = hashlib.sha256(repr([sys.version, *makers]).encode())
    for path in files:
        text.update(f"{path.relative_to(PACKAGE).as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return root / "stagewise" / f"kernels-{text.hexdigest()[:16]}"


def is_ours(path: Path) -> bool:
    """Return whether nobody but this user and root can have put this file or folder here, or can exchange it.

    It and its folder belong to one of the two, and neither it nor any folder above it is writable for others. In a
    folder that is sticky, as /tmp is, others cannot exchange what is not theirs. A group that has the number of its
    user is that user's own, and root's group is root.
    """
    if os.name == "nt":
        return True  # a profile is its user's own, and `stat` does not tell who else may write
    user = os.geteuid()
    for height, place in enumerate((path, *path.parents)):
        status = place.stat()
        others = stat.S_IWOTH if status.st_gid in (0, user) else stat.S_IWOTH | stat.S_IWGRP
        fixed = height > 1 and status.st_mode & stat.S_ISVTX
        if status.st_mode & others and not fixed:
            return False
        if height < 2 and status.st_uid not in (0, user):
            return False
    return True


def read(path: Path) -> bytes:
    """Return what was kept; an OSError where there is nothing, or nothing to trust."""
    if not is_ours(path):
        raise PermissionError(0, NOT_OURS)
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Keep a file, whole or not at all; an OSError where that cannot be, or where it could not be trusted."""
    for place in reversed(path.parents):
        if not place.is_dir():
            place.mkdir(mode=0o755, exist_ok=True)
    if not is_ours(path.parent):
        raise PermissionError(0, NOT_OURS)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def can_write(folder: Path | None) -> bool:
    """Say whether machine code can be kept in a folder: a file is written there, and taken away."""
    if folder is None:
        return False
    trial = folder / f"trial-{uuid.uuid4().hex}"
    try:
        write(trial, b"")
        trial.unlink()
    except OSError:
        return False
    return True
