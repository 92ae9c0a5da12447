"""A route, and which one a path leads to. Whatever is known of a route is said once, in the table of `routes`."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_to_bytes

from stagewise.service.web.call import LARGEST_BODY, Answer, Call, Quick, Refused, plain_refusal

ANY = "{}"
CONTROL = re.compile("[\\x00-\\x1f\\x7f]")
Does = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Route:
    """What can be asked."""

    method: str
    path: str
    """With {names} for what may stand there."""
    role: str | None
    """Who may ask; None: everybody, without a key."""
    does: Does
    quick: Quick | None = None
    """The short way to the same."""
    tells: str
    """What it is for, in one sentence."""
    takes: Any = None
    """The type of the body; None: there is none."""
    largest: int = LARGEST_BODY
    """How many bytes a body may have."""
    answers: Mapping[int, Any]
    """The type of the body by status; None: there is none; str: text."""
    refuses: tuple[int, ...] = ()
    """Statuses of refusals, beyond those that every route with a key and every route with a body has."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Whole numbers that may stand in the query, with what they are."""
    refusal: Callable[[int, str], Any] = plain_refusal
    key_header: bytes = b""
    """Where a key may stand besides Authorization."""


class _Place:
    """Where a path may end, or go on."""

    __slots__ = ("below", "routes")

    def __init__(self) -> None:
        self.below: dict[str, _Place] = {}
        self.routes: dict[str, Route] = {}


class Table:
    """Routes by path: a tree of words, in which {names} match what no fixed word does."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root = _Place()
        for route in routes:
            place = self._root
            for word in route.path.split("/"):
                place = place.below.setdefault(ANY if word.startswith("{") else word, _Place())
            place.routes[route.method] = route

        self.find = lru_cache(1024)(self._find)  # most calls are for a few paths

    def _find(self, path: bytes) -> tuple[Mapping[str, Route], tuple[str, ...]]:
        """Return the routes of a path by method, with what stands at its names; there may be none."""
        place, named = self._root, []
        for word in words_of(path):
            below = place.below.get(word)
            if below is None:
                below = place.below.get(ANY)
                if below is None or not word:
                    return {}, ()
                named.append(word)
            place = below
        return place.routes, tuple(named)


def words_of(path: bytes) -> list[str]:
    """Return the words of a path; a percent-encoded slash stands within a word.

    >>> words_of(b"/v1/a%2Fb")
    ['', 'v1', 'a/b']
    """
    if b"%" not in path:
        return path.decode(errors="replace").split("/")
    return [unquote_to_bytes(word).decode(errors="replace") for word in path.split(b"/")]


def check_words(path: bytes, words: Sequence[str]) -> None:
    """Refuse names that nothing can have: not every store can look for them."""
    if b"%" in path and any(CONTROL.search(word) for word in words):
        raise Refused(404, "the path has control characters; there is nothing there")
