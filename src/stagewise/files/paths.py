"""Paths as they come from outside, and how a sentence names them."""

import os
import stat
from pathlib import Path
from typing import Any

from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.problem.words import shown

LONGEST = 160  # of a path in a sentence
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def path_of(value: Any, name: str = "path") -> Path:
    """Return a path that was given as text or as a Path.

    >>> path_of("agent.json").name
    'agent.json'
    """
    try:
        text = os.fspath(value)
        os.fsencode(text).decode()
    except Exception:  # no path, or one that the file system has no letters for
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidFile(f"{name} is {shown(value)}; it must be a path, as text or a pathlib.Path")
    return Path(text)


def named(path: Path) -> str:
    """Return a path as a sentence shows it: in one line, and the end of it where it is long.

    >>> named(Path("agent.json"))
    'agent.json'
    """
    text = str(path)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= LONGEST else f"…{text[-LONGEST:]}"


def brief(error: BaseException) -> str:
    """Return what an error says, as part of a sentence.

    >>> brief(KeyError("seed"))
    "KeyError('seed')"
    """
    text = str(error) if isinstance(error, StagewiseError) else repr(error)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def reason(error: OSError) -> str:
    """Return why the system refused, in its own words."""
    return error.strerror or str(error)


def irregular(path: Path) -> str | None:
    """Say what stands at the path where that is no plain file; None: a plain file, or nothing yet."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    return None if stat.S_ISREG(mode) else next((word for test, word in KINDS if test(mode)), "no plain file")


def content_of(path: Path) -> bytes:
    """Return all that a plain file holds; a pipe would keep us waiting, and a device might never end."""
    try:
        kind = irregular(path)
        if kind is not None:
            raise InvalidFile(f"{named(path)} cannot be read, since it is {kind}; it must be a plain file")
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidFile(f"{named(path)} does not exist") from None
    except OSError as error:
        raise InvalidFile(f"{named(path)} cannot be read: {reason(error)}") from None
