"""Places in the file system as they come from outside: a text or a path, checked before any file is touched."""

import os
from pathlib import Path
from typing import Any

from stagewise.problem.errors import InvalidFile
from stagewise.problem.words import shown

LONGEST_NAME = 255  # bytes of one name in a path; no common file system holds more


def place_of(value: Any, what: str = "path") -> Path:
    """Return a path, from a text or an object that stands for one.

    >>> place_of("results/one").name
    'one'
    """
    try:
        text = os.fspath(value)
        names = os.fsencode(text).split(os.sep.encode())
    except Exception:
        text, names = None, []
    if not isinstance(text, str) or not text:
        raise InvalidFile(f"{what} is {shown(value)}; it must be a path, as text or a pathlib.Path")
    if "\0" in text:
        raise InvalidFile(f"{what} is {shown(value)}; no path holds a character of value 0")
    if max(map(len, names)) > LONGEST_NAME:
        raise InvalidFile(
            f"{what} is {shown(value)}; a name in it is longer than {LONGEST_NAME} bytes, which no file can have"
        )
    return Path(text)
