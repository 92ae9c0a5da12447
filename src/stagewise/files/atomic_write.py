"""Atomic file writes: a file is complete or unchanged, with concurrent writers and after power failures."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from stagewise.files.paths import get_irregular_kind, get_os_reason
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path

try:
    import fcntl
except ImportError:  # Windows: two simultaneous writers may both succeed
    fcntl = None  # type: ignore[assignment]

# Errors of systems that cannot open or flush a folder; a crash of the machine may then restore the old file.
UNSUPPORTED_ERRNOS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.EBADF)


def compute_sha256(*parts: bytes) -> str:
    """Return the SHA-256 digest of some content."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes, check: Callable[[bytes], None] | None = None) -> None:
    """Write a file atomically: if anything fails, the old file is unchanged.

    `check` gets the content that would be replaced and may raise; processes that check are serialized.
    """
    write_parts(path, [content], check)


def write_parts(path: Path, parts: Sequence[bytes], check: Callable[[bytes], None] | None = None) -> None:
    write_atomically(path, lambda temporary: write_new(temporary, parts), check)


def write_atomically(path: Path, write: Callable[[Path], None], check: Callable[[bytes], None] | None = None) -> None:
    """Write a file atomically, by a function that writes a new file at a temporary path."""
    target = resolve_target(path)
    temporary = target.with_name(f".stagewise-{secrets.token_hex(8)}.part")
    try:
        write(temporary)
        flush_temporary(temporary, target)
        with lock_folder(target.parent):
            if check is not None and target.exists():
                check(target.read_bytes())
            os.replace(temporary, target)
    except OSError as error:
        reason = f"{get_os_reason(error)}; free some space or choose another path"
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_WRITABLE, path, "written", reason) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def resolve_target(path: Path) -> Path:
    """Return the path to write: links are followed, and only regular files are replaced."""
    try:
        target = Path(os.path.realpath(path))
        kind = get_irregular_kind(target)
        reason: object = f"it is {kind}; choose another path" if kind is not None else None
        if kind is None and not target.parent.is_dir():
            reason = f"the folder {format_path(path.parent)} does not exist"
    except OSError as error:
        reason = error
    if reason is not None:
        raise InvalidFile.cannot_be(ErrorCode.FILE_NOT_WRITABLE, path, "written", reason)
    return target


def write_new(temporary: Path, parts: Sequence[bytes]) -> None:
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
        file.writelines(parts)


def flush_temporary(temporary: Path, target: Path) -> None:
    """Give a new file the permissions of the one it will replace, and flush it to disk."""
    with suppress(FileNotFoundError):
        os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, and flush it to disk afterwards, if the system supports it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno not in UNSUPPORTED_ERRNOS:
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
            if error.errno not in UNSUPPORTED_ERRNOS:
                raise
    finally:
        os.close(descriptor)
