"""Files beside the page: each is found under a name that changes with its content, so that it can be kept for ever."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("desk.css", "desk.js", "uplot.css", "uplot.js", "icon.svg", "uplot.LICENSE.txt")


class Asset(NamedTuple):
    """A file."""

    kind: str
    content: bytes


@cache
def assets() -> Mapping[str, Asset]:
    """Return all files by their versioned names, such as desk.1a2b3c4d5e6f.css."""
    return {versioned(name): Asset(kind_of(name), content_of(name)) for name in NAMES}


def content_of(name: str) -> bytes:
    """Return what is in a file."""
    return (files(__package__) / "static" / name).read_bytes()


def kind_of(name: str) -> str:
    """Return the content type of a file."""
    return KINDS.get(name.rpartition(".")[2], "text/plain; charset=utf-8")


@cache
def versioned(name: str) -> str:
    """Return the name of a file with twelve digits of its content's digest."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(content_of(name)).hexdigest()[:12]}.{ending}"


def address(name: str) -> str:
    """Return where a file is found."""
    return f"/static/{versioned(name)}"
