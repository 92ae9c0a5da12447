"""Routes, and the router that finds the route of a path."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.http_types import MAX_BODY_BYTES, HTTPError, RouteRequest, RouteResponse

WILDCARD = "{}"
CONTROL_CHARACTER = re.compile("[\\x00-\\x1f\\x7f]")
Handler = Callable[[RouteRequest], Awaitable[RouteResponse]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route: method, path, role, types and handler."""

    method: str
    path: str
    """The path, with {names} for its parameters."""
    role: str | None
    """The role that is needed; None: no key is needed."""
    handler: Handler
    summary: str
    """One sentence for the documentation."""
    request_type: Any = None
    """The type of the request body; None: no body."""
    max_body_bytes: int = MAX_BODY_BYTES
    """The maximum size of a request body."""
    responses: Mapping[int, Any]
    """The type of the response body by status; None: no body; str: text."""
    error_statuses: tuple[int, ...] = ()
    """Error statuses beyond those of every route with a key and every route with a body."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Integer query parameters, with their descriptions."""


class _Node:
    """A node of the tree of path segments."""

    __slots__ = ("children", "routes")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.routes: dict[str, Route] = {}


class Router:
    """Routes by path: a tree of path segments; a fixed segment takes precedence over a {name}."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for segment in route.path.split("/"):
                node = node.children.setdefault(WILDCARD if segment.startswith("{") else segment, _Node())
            node.routes[route.method] = route

        self.find = lru_cache(1024)(self._find)  # most calls are for a few paths

    def _find(self, path: bytes) -> tuple[Mapping[str, Route], tuple[str, ...]]:
        """Return the routes of a path by method, possibly none, and the values of its {names}."""
        node, params = self._root, []
        for segment in split_path(path):
            child = node.children.get(segment)
            if child is None:
                child = node.children.get(WILDCARD)
                if child is None or not segment:
                    return {}, ()
                params.append(segment)
            node = child
        return node.routes, tuple(params)


def split_path(path: bytes) -> list[str]:
    """Return the segments of a path; a percent-encoded slash is part of a segment.

    >>> split_path(b"/v1/a%2Fb")
    ['', 'v1', 'a/b']
    """
    if b"%" not in path:
        return path.decode(errors="replace").split("/")
    return [unquote_to_bytes(segment).decode(errors="replace") for segment in path.split(b"/")]


def check_path_parameters(path: bytes, values: Sequence[str]) -> None:
    """Reject control characters: no name has them, and not every store can search for them."""
    if b"%" in path and any(CONTROL_CHARACTER.search(value) for value in values):
        raise HTTPError(404, ErrorCode.NOT_FOUND, "the path has control characters; no name has them")
