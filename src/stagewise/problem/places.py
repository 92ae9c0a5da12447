"""Places in the file system as they come from outside: a text or a path, checked before any file is touched."""

import os
from pathlib import Path
from typing import Any

from stagewise.problem.errors import InvalidFile
from stagewise.problem.words import shown

LONGEST_NAME, LONGEST_PATH = 255, 4095  # bytes; no common file system takes more


def place_of(value: Any, what: str = "path") -> Path:
    """Return a path, from a text or an object that stands for one.

    >>> place_of("results/one").name
    'one'
    """
    try:
        text = os.fspath(value)
        inside = os.fsencode(text)
    except Exception:  # no path, or one that the file system has no letters for
        text, inside = None, b""
    if not isinstance(text, str) or not text:
        raise InvalidFile(f"{what} is {shown(value)}; it must be a path, as text or a pathlib.Path")
    if "\0" in text:
        raise InvalidFile(f"{what} is {shown(value)}; no path holds a character of value 0")
    if len(inside) > LONGEST_PATH or max(map(len, inside.split(os.sep.encode()))) > LONGEST_NAME:
        raise InvalidFile(
            f"{what} is {shown(value)}; a name in it is longer than {LONGEST_NAME} bytes, or all of it than "
            f"{LONGEST_PATH}, which no file system takes"
        )
    return Path(text)
