"""Parse paths, read files, and write them atomically: a file is complete or unchanged."""

import errno
import hashlib
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidFile, StagewiseError
from stagewise.problem.formatting import format_path

try:
    import fcntl
except ImportError:  # Windows: two simultaneous writers may both succeed
    fcntl = None  # type: ignore[assignment]

MAX_ERROR_LETTERS = 160  # of an error in a message
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095  # limits of common file systems
GIB = 2**30
FILE_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def parse_path(value: Any, name: str = "path") -> Path:
    """Return a path that is given as text or as a Path."""
    try:
        text = os.fspath(value)
        encoded = os.fsencode(text)
        encoded.decode()
    except Exception:  # not a path, or one that cannot be encoded
        text, encoded = None, b""
    if not isinstance(text, str) or not text:
        rule = "a path, as a string or a pathlib.Path"
        raise InvalidFile.must_be(ErrorCode.WRONG_TYPE, name, value, rule)
    is_long = len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(os.sep.encode()))) > MAX_NAME_BYTES
    if "\0" in text or is_long:
        rule = f"without null characters, of at most {MAX_NAME_BYTES} bytes a name and {MAX_PATH_BYTES} in all"
        raise InvalidFile.must_be(ErrorCode.INVALID_NAME, name, value, rule)
    return Path(text)


def format_error(error: BaseException) -> str:
    """Return the text of an error for a message."""
    text = str(error) if isinstance(error, StagewiseError) else repr(error)
    return text if len(text) <= MAX_ERROR_LETTERS else f"{text[:MAX_ERROR_LETTERS]}…"


def get_os_reason(error: OSError) -> str:
    """Return the operating system's reason of an error."""
    return error.strerror or str(error)


def get_irregular_kind(path: Path) -> str | None:
    """Return the kind of a path that is not a regular file; None: a regular file, or nothing."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    return None if stat.S_ISREG(mode) else next((word for test, word in FILE_KINDS if test(mode)), "not a regular file")


def read_file(path: Path) -> bytes:
    """Return the content of a regular file; pipes and devices are rejected, since they may never end."""
    try:
        kind = get_irregular_kind(path)
        if kind is not None:
            reason = f"it is {kind}, and must be a regular file"
            raise InvalidFile.cannot_be(ErrorCode.FILE_WRONG_KIND, path, "read", reason)
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidFile(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=format_path(path)) from None
    except OSError as error:
        raise InvalidFile.cannot_be(ErrorCode.FILE_UNREADABLE, path, "read", error) from None


def get_total_memory() -> float:
    """Return this machine's memory in bytes, or infinity if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, or reject it."""
    raw = read_file(path)
    try:
        return tomllib.loads(raw.decode())
    except RecursionError:
        reason = "it nests lists or tables too deeply"
    except ValueError as error:  # also a number with too many digits
        reason = f"{error}{suggest_fix(path, raw)}"
    raise InvalidFile.cannot_be(ErrorCode.FILE_INVALID, path, "read as TOML", reason)


def suggest_fix(path: Path, raw: bytes) -> str:
    """Return a hint on a common mistake; empty if there is none."""
    if path.suffix.lower() == ".json":
        return "; a saved agent is read by sw.Agent.load, and a certificate by sw.SimulationCertificate.load"
    if re.search(rb"[=\[,]\s*[-+]?\.\d", raw):
        return "; TOML writes .02 as 0.02"
    if re.search(rb"=\s*[-+]?\d[\d_]*(\.\d+)?\s*%", raw):
        return "; TOML knows no %: two percent are 0.02"
    if re.search(rb"=\s*(True|False|None|nil|null)\b", raw):
        return "; TOML writes true and false, and leaves out what is not set"
    bare = re.search(rb"=\s*([A-Za-z][\w-]*)\s*(?:#.*)?$", raw, re.MULTILINE)
    if bare and bare[1] not in (b"true", b"false", b"inf", b"nan"):
        return f'; TOML writes words in quotes: "{bare[1].decode()}"'
    return ""


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
