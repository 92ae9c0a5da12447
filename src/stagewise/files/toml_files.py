"""Read TOML files, with hints on common mistakes."""

import re
import tomllib
from pathlib import Path
from typing import Any

from stagewise.files.paths import get_irregular_kind, read_file
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path

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
