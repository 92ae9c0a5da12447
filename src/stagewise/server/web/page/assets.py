"""Static files; their URLs contain a digest of the content, so that browsers can cache them for ever."""

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

CONTENT_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("page.css", "page.js", "uplot.css", "uplot.js", "icon.svg", "uplot.LICENSE.txt")


class Asset(NamedTuple):
    """Content type and content of a static file."""

    kind: str
    content: bytes


@cache
def load_assets() -> Mapping[str, Asset]:
    """Return all static files by their versioned names, such as page.1a2b3c4d5e6f.css."""
    return {get_versioned_name(name): Asset(get_content_type(name), read_asset(name)) for name in NAMES}


def read_asset(name: str) -> bytes:
    """Return the content of a file."""
    return (files(__package__) / "static" / name).read_bytes()


def get_content_type(name: str) -> str:
    """Return the content type of a file."""
    return CONTENT_TYPES.get(name.rpartition(".")[2], "text/plain; charset=utf-8")


@cache
def get_versioned_name(name: str) -> str:
    """Return the name of a file with twelve digits of its digest."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(read_asset(name)).hexdigest()[:12]}.{ending}"


def get_asset_url(name: str) -> str:
    """Return the URL of a file."""
    return f"/static/{get_versioned_name(name)}"
