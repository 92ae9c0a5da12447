"""Parse paths, and read files and TOML files."""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from stagewise.problem.errors import ErrorCode, InvalidFile, StagewiseError
from stagewise.problem.formatting import format_path, safe_repr

MAX_PATH_LETTERS = 160  # of a path in a message
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4095  # limits of common file systems
MEMORY_FACTOR = 4  # memory needed to read a file, relative to its size
FILE_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def parse_path(value: Any, name: str = "path") -> Path:
    """Return a path that is given as text or as a Path.

    >>> parse_path("agent.json").name
    'agent.json'
    """
    try:
        text = os.fspath(value)
        encoded = os.fsencode(text)
        encoded.decode()
    except Exception:  # not a path, or one that cannot be encoded
        text, encoded = None, b""
    if not isinstance(text, str) or not text:
        raise InvalidFile(
            ErrorCode.WRONG_TYPE,
            "{name} is {value}; it must be a path, as a string or a pathlib.Path",
            name=name,
            value=safe_repr(value),
        )
    if "\0" in text:
        raise InvalidFile(
            ErrorCode.INVALID_NAME,
            "{name} is {value}; a path must not contain a null character",
            name=name,
            value=safe_repr(value),
        )
    if len(encoded) > MAX_PATH_BYTES or max(map(len, encoded.split(os.sep.encode()))) > MAX_NAME_BYTES:
        raise InvalidFile(
            ErrorCode.INVALID_NAME,
            "{name} is {value}; a file name has at most {max_name_bytes} bytes and a path at most {max_path_bytes}",
            name=name,
            value=safe_repr(value),
            max_name_bytes=MAX_NAME_BYTES,
            max_path_bytes=MAX_PATH_BYTES,
        )
    return Path(text)


def format_error(error: BaseException) -> str:
    """Return the text of an error for a message.

    >>> format_error(KeyError("seed"))
    "KeyError('seed')"
    """
    text = str(error) if isinstance(error, StagewiseError) else repr(error)
    return text if len(text) <= MAX_PATH_LETTERS else f"{text[:MAX_PATH_LETTERS]}…"


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


def check_fits_memory(path: Path) -> None:
    """Reject a file that does not fit in memory; a missing file passes."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return
    needed, available = MEMORY_FACTOR * size, get_total_memory()
    if needed > available:
        raise InvalidFile(
            ErrorCode.TOO_LARGE,
            "{path} has {size:,.1f} GiB; reading it needs about {needed:,.0f} GiB of memory, and "
            "this machine has {available:,.0f}",
            path=format_path(path),
            size=size / GIB,
            needed=needed / GIB,
            available=available / GIB,
        )


def read_file(path: Path) -> bytes:
    """Return the content of a regular file; pipes and devices are rejected, since they may never end."""
    try:
        kind = get_irregular_kind(path)
        if kind is not None:
            raise InvalidFile(
                ErrorCode.FILE_WRONG_KIND,
                "{path} is {type}, which cannot be read; it must be a regular file",
                path=format_path(path),
                type=kind,
            )
        check_fits_memory(path)
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidFile(ErrorCode.FILE_NOT_FOUND, "{path} does not exist", path=format_path(path)) from None
    except OSError as error:
        raise InvalidFile(
            ErrorCode.FILE_UNREADABLE,
            "{path} cannot be read: {error}",
            path=format_path(path),
            error=get_os_reason(error),
        ) from None


GIB = 2**30


def get_total_memory() -> float:
    """Return this machine's memory in bytes, or infinity if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


MAX_BYTES = 64 * 2**20  # settings fit into a thousandth of it
MIB = 2**20


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, or reject it."""
    try:
        size = 0 if get_irregular_kind(path) is not None else path.stat().st_size
    except OSError:  # reported below
        size = 0
    if size > MAX_BYTES:
        raise InvalidFile(
            ErrorCode.TOO_LARGE,
            "{path} has {size:,.0f} MiB; a TOML file of settings has at most {max_bytes}, so this "
            "may be a log or a result",
            path=format_path(path),
            size=size / MIB,
            max_bytes=MAX_BYTES // MIB,
        )
    raw = read_file(path)
    try:
        return tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFile(
            ErrorCode.FILE_INVALID,
            "{path} is not valid TOML: {error}{path_2}",
            path=format_path(path),
            error=error,
            path_2=suggest_fix(path, raw),
        ) from None
    except RecursionError:
        raise InvalidFile(
            ErrorCode.FILE_INVALID, "{path} nests lists or tables too deeply", path=format_path(path)
        ) from None
    except ValueError as error:  # a number with too many digits
        raise InvalidFile(
            ErrorCode.FILE_INVALID, "{path} is not valid TOML: {error}", path=format_path(path), error=error
        ) from None


def suggest_fix(path: Path, raw: bytes) -> str:
    """Return a hint on a common mistake; empty if there is none.

    >>> suggest_fix(Path("spec.toml"), b"threshold = .02"), suggest_fix(Path("spec.toml"), b"threshold = 2%")
    ('; TOML writes .02 as 0.02', '; TOML knows no %: two percent are 0.02')
    """
    if path.suffix.lower() == ".json":
        return "; `stagewise show` says what a JSON file is, and sw.Agent.load reads a saved agent"
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
