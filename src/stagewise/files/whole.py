"""Files that are there whole or not at all, whoever else writes or reads, and whenever the power fails."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stagewise.files.paths import irregular, named, reason
from stagewise.problem.errors import InvalidFile

try:
    import fcntl
except ImportError:  # Windows: of two that write in the same instant both may go through
    fcntl = None  # type: ignore[assignment]

# What systems answer that cannot open or flush a folder; there a crash of the machine may bring the old file back.
UNABLE = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.EBADF)


def fingerprint(content: bytes) -> str:
    """Return what tells one content from another."""
    return hashlib.sha256(content).hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes, check: Callable[[bytes], None] | None = None) -> None:
    """Write a file, whole or not at all: where anything fails, what stood at the path still stands there.

    `check` is shown what the file would replace, and may refuse; processes that check take turns.
    """
    place = place_for(path)
    draft = place.with_name(f".stagewise-{secrets.token_hex(8)}.part")
    try:
        write_draft(draft, content, place)
        with held(place.parent):
            if check is not None and place.exists():
                check(place.read_bytes())
            os.replace(draft, place)
    except OSError as error:
        raise InvalidFile(
            f"{named(path)} cannot be written: {reason(error)}; make room or choose another place"
        ) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


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


def write_draft(draft: Path, content: bytes, place: Path) -> None:
    """Write a file that nobody else has, open to those who may open what it will replace; return when it is on disk."""
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with open(descriptor, "wb") as file:
        with suppress(FileNotFoundError):
            os.chmod(draft, stat.S_IMODE(os.stat(place).st_mode))
        file.write(content)
        file.flush()
        os.fsync(descriptor)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Have a folder to oneself among those who ask so, and flush its names to the disk; as far as the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno not in UNABLE:
            raise
        yield
        return
    try:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in UNABLE:
                raise
    finally:
        os.close(descriptor)
