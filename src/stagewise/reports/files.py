"""Folders that can be written to, and files that are there whole or not at all."""

import os
from pathlib import Path

from stagewise.files.paths import named, path_of, reason
from stagewise.files.whole import write_bytes, write_text
from stagewise.problem.errors import InvalidFile

__all__ = ["made", "usable", "write_bytes", "write_text"]


def usable(folder: str | Path) -> Path:
    """Return a folder that is there, or can be made, and can be written to; nothing is made yet."""
    place = path_of(folder, "the folder")
    try:
        ground = next(path for path in (place, *place.absolute().parents) if path.exists())
    except OSError as error:
        raise InvalidFile(f"{named(place)} cannot be a folder for results: {reason(error)}") from None
    if not ground.is_dir():
        raise InvalidFile(
            f"{named(place)} cannot be a folder for results, since {named(ground)} is a file; choose another place"
        )
    if not os.access(ground, os.W_OK | os.X_OK):
        raise InvalidFile(
            f"{named(place)} cannot be a folder for results, since {named(ground)} must not be written to"
        )
    return place


def made(folder: str | Path) -> Path:
    """Return a folder that can be written to, made if it is not there."""
    place = usable(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{named(place)} cannot be made: {reason(error)}; choose another place") from None
    return place
