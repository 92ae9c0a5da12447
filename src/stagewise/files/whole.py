"""Files that are there whole or not at all, whoever else writes or reads, and whenever the power fails."""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stagewise.files.paths import irregular, named, reason
from stagewise.problem.errors import InvalidFile

# What file systems answer that cannot flush a folder; there a crash of the machine may bring the old file back.
NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.EBADF)


def place_for(path: Path) -> Path:
    """Return where a file will be written: a link is followed, and what is no plain file is never replaced."""
    try:
        place = Path(os.path.realpath(path))
        kind = irregular(place)
        if kind is not None:
            raise InvalidFile(f"{named(path)} cannot be written, since it is {kind}; choose another name")
        if not place.parent.is_dir():
            raise InvalidFile(f"{named(path)} cannot be written, since there is no folder {named(path.parent)}")
    except OSError as error:
        raise InvalidFile(f"{named(path)} cannot be written: {reason(error)}") from None
    return place


def replace(draft: Path, place: Path) -> None:
    """Put the draft into its place, whatever stands there."""
    os.replace(draft, place)


@contextmanager
def in_one_step(path: Path, move: Callable[[Path, Path], None] = replace) -> Iterator[Path]:
    """Yield an empty file beside the path to write to; at the end it is on the disk, and takes the path's place.

    Where anything fails the file is removed, and what stood at the path still stands there.
    """
    place = place_for(path)
    draft = place.with_name(f".stagewise-{secrets.token_hex(8)}.part")
    try:
        create(draft, place)
        yield draft
        flush(draft)
        move(draft, place)
        flush_folder(place.parent)
    except OSError as error:
        raise InvalidFile(
            f"{named(path)} cannot be written: {reason(error)}; make room or choose another place"
        ) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def create(draft: Path, place: Path) -> None:
    """Make an empty file that nobody else has, open to those who may open what it will replace."""
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    with suppress(FileNotFoundError):
        os.chmod(draft, stat.S_IMODE(os.stat(place).st_mode))


def flush(path: Path) -> None:
    """Return when a file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Return when a folder's names are on the disk, where the file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NO_FLUSH:
            raise


def write_bytes(path: Path, content: bytes, move: Callable[[Path, Path], None] = replace) -> None:
    """Write a file, whole or not at all."""
    with in_one_step(path, move) as draft:
        draft.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_bytes(path, text.encode())
