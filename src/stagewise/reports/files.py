"""Folders that can be written to, and files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stagewise.problem.errors import InvalidFile


def usable(folder: str | Path) -> Path:
    """Return a folder that is there, or can be made, and can be written to; nothing is made yet."""
    place = Path(folder)
    ground = next(path for path in (place, *place.absolute().parents) if path.exists())
    if not ground.is_dir():
        raise InvalidFile(f"{place} cannot be a folder for results, since {ground} is a file; choose another place")
    if not os.access(ground, os.W_OK | os.X_OK):
        raise InvalidFile(f"{place} cannot be a folder for results, since {ground} must not be written to")
    return place


def made(folder: str | Path) -> Path:
    """Return a folder that can be written to, made if it is not there."""
    place = usable(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"{place} cannot be made: {error.strerror}; choose another place") from None
    return place


@contextmanager
def in_one_step(path: Path) -> Iterator[Path]:
    """Yield a place beside the path to write to, and move what was written to the path at the end."""
    draft = path.with_name(path.name + ".part")
    yield draft
    os.replace(draft, path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        with in_one_step(path) as draft:
            draft.write_bytes(content)
    except OSError as error:
        raise InvalidFile(f"{path} cannot be written: {error.strerror}; make room or choose another place") from None


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    write_bytes(path, text.encode())
