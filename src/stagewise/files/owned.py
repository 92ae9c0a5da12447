"""A file that one process owns: it is replaced only while it is the one that its owner left."""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: of two saves in the same instant both may go through
    fcntl = None  # type: ignore[assignment]

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def fingerprint(content: bytes) -> str:
    """Return what tells one content from another."""
    return hashlib.sha256(content).hexdigest()


def put_in_place(draft: Path, place: Path, known: str | None) -> bool:
    """Move the draft to its place if nothing stands there, or what is known; say whether that was so.

    Processes that do this at the same time take turns: the file itself is locked until another stands in its place, and
    those who waited for it look again. A name that is new is taken by one of them.
    """
    while True:
        with locked(place) as content:
            if content is not None:
                if fingerprint(content) != known:
                    return False
                os.replace(draft, place)
                return True
        if linked(draft, place):
            return True


@contextmanager
def locked(place: Path) -> Iterator[bytes | None]:
    """Yield what the file holds, and let nobody else have it meanwhile; None: there is no file."""
    while True:
        try:
            descriptor = os.open(place, os.O_RDONLY)
        except FileNotFoundError:
            yield None
            return
        with open(descriptor, "rb") as file:
            if fcntl is not None:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX)
            if stands(file.fileno(), place):
                content = file.read()
                if fcntl is None:  # nor is a file replaced there while it is open
                    file.close()
                yield content
                return


def stands(descriptor: int, place: Path) -> bool:
    """Say whether an open file is still the one at its place."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    except FileNotFoundError:
        return False


def linked(draft: Path, place: Path) -> bool:
    """Give the draft a name that nothing has yet; say whether it was free."""
    try:
        os.link(draft, place)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.replace(draft, place)
    return True
