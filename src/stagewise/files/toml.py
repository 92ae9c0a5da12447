"""TOML files as people write them: read whole, and refused in a sentence that says what to write instead."""

import re
import tomllib
from pathlib import Path
from typing import Any

from stagewise.files.paths import content_of, irregular, named
from stagewise.problem.errors import InvalidFile

LARGEST = 64 * 2**20  # bytes; every setting that people write fits into a thousandth of it
MIB = 2**20


def toml_of(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds, or refuse it."""
    try:
        size = 0 if irregular(path) is not None else path.stat().st_size
    except OSError:  # said in its own words below
        size = 0
    if size > LARGEST:
        raise InvalidFile(
            f"{named(path)} has {size / MIB:,.0f} MiB, and a TOML file of settings at most {LARGEST // MIB}; was a log "
            "or a result meant?"
        )
    raw = content_of(path)
    try:
        return tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFile(f"{named(path)} is no TOML: {error}{hint(path, raw)}") from None
    except RecursionError:
        raise InvalidFile(f"{named(path)} holds lists or tables in each other, deeper than any setting is") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise InvalidFile(f"{named(path)} is no TOML: {error}") from None


def hint(path: Path, raw: bytes) -> str:
    """Return what was probably meant, where the text shows it.

    >>> hint(Path("spec.toml"), b"threshold = .02"), hint(Path("spec.toml"), b"threshold = 2%")
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
