"""Paths as they come from outside, and how a sentence names them."""

import os
import stat
from pathlib import Path
from typing import Any

from stagewise.files.machine import GIB, memory
from stagewise.problem.errors import InvalidFile, StagewiseError
from stagewise.problem.words import shown

LONGEST = 160  # of a path in a sentence
LONGEST_NAME, LONGEST_PATH = 255, 4095  # bytes; no common file system takes more
TIMES = 4  # as much memory as a file is large is taken by what is made of it
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
        inside = os.fsencode(text)
        inside.decode()
    except Exception:  # no path, or one that the file system has no letters for
        text, inside = None, b""
    if not isinstance(text, str) or not text:
        raise InvalidFile(f"{name} is {shown(value)}; it must be a path, as text or a pathlib.Path")
    if "\0" in text:
        raise InvalidFile(f"{name} is {shown(value)}; no path holds a character of value 0")
    if len(inside) > LONGEST_PATH or max(map(len, inside.split(os.sep.encode()))) > LONGEST_NAME:
        raise InvalidFile(
            f"{name} is {shown(value)}; a name in it is longer than {LONGEST_NAME} bytes, or all of it than "
            f"{LONGEST_PATH}, which no file system takes"
        )
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


def check_fits(path: Path) -> None:
    """Refuse a file that memory could not hold beside what is made of it; one that is not there is let through."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return
    needed, there = TIMES * size, memory()
    if needed > there:
        raise InvalidFile(
            f"{named(path)} has {size / GIB:,.1f} GiB; to read it would need some {needed / GIB:,.0f} GiB of memory, "
            f"and this machine has {there / GIB:,.0f}"
        )


def content_of(path: Path) -> bytes:
    """Return all that a plain file holds; a pipe would keep us waiting, and a device might never end."""
    try:
        kind = irregular(path)
        if kind is not None:
            raise InvalidFile(f"{named(path)} cannot be read, since it is {kind}; it must be a plain file")
        check_fits(path)
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidFile(f"{named(path)} does not exist") from None
    except OSError as error:
        raise InvalidFile(f"{named(path)} cannot be read: {reason(error)}") from None
