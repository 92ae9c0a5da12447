"""The short way of what is all of the load: single decisions and outcomes, from the socket to the log and back.

A request whose head was met before, whole and alone on its connection, needs no parser, no task and no future. What
came in one pass of the loop goes to the writer together, and each answer is one write. Whatever is not as simple as
that (a list, a verdict other than "new", a refusal) goes the long way from its beginning, which says all.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import Answer, Call, Quick
from stagewise.service.web.safe_headers import NOTHING, SAFE
from stagewise.service.writer import Answered

if TYPE_CHECKING:
    from stagewise.service.web.app import App
    from stagewise.service.web.route import Route

MOST = 1024  # heads that are remembered
LARGEST = 4096  # bytes of one
LARGEST_BODY = 1 << 16
STATUS = {200: b"HTTP/1.1 200 OK\r\n", 503: b"HTTP/1.1 503 Service Unavailable\r\n"}
ALWAYS = b"".join(b"%b: %b\r\n" % pair for pair in (NOTHING, *SAFE))
UNUSUAL = (b"content-encoding", b"transfer-encoding", b"expect", b"upgrade")


class Head(NamedTuple):
    """What the head of a request says, as the parser understood it."""

    route: "Route"
    words: tuple[str, ...]
    key: bytes
    size: int
    """Of the body that follows."""


class Asker(Protocol):
    """Who waits for an answer."""

    def reply(self, head: bytes, body: bytes) -> None:
        """Send an answer."""

    def long_way(self) -> None:
        """Have the request served as if it came just now."""


class Waiting(NamedTuple):
    """A request that waits for its row."""

    asker: Asker
    quick: Quick
    head: Head
    holder: str
    began: float


class Lane:
    """Takes requests from connections, and answers them."""

    def __init__(self, app: "App") -> None:
        self._app, self._heads = app, dict[bytes, Head]()
        self._waiting: list[Waiting] = []

    def meet(self, head: bytes, scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> None:
        """Remember the head of a request that the parser has read, where it may come again."""
        found = head_of(self._app, scope, headers) if len(head) <= LARGEST else None
        if found is not None:
            if len(self._heads) >= MOST:
                self._heads.clear()
            self._heads[head] = found

    def lacks(self, data: bytes) -> int:
        """Return how many bytes a request lacks; 0: it is whole; below: it is none that can be taken."""
        end = data.find(b"\r\n\r\n") + 4
        head = self._heads.get(data[:end])
        return -1 if head is None else end + head.size - len(data)

    def take(self, data: bytes, asker: Asker) -> bool:
        """Take a whole request; False: it goes the long way."""
        end = data.find(b"\r\n\r\n") + 4
        head = self._heads[data[:end]]
        app, began = self._app, time.perf_counter()
        route = head.route
        holder = app.keys.sent(head.key)
        if holder is None or route.role is None or not holder.may(route.role) or route.quick is None:
            return False
        try:
            quick = route.quick(Call(app.desk, app.keys, app.buckets, holder, head.words, b"", data[end:]))
            if quick is None:
                return False
            app.buckets.take(holder.name, 1, time.monotonic())
        except Exception:  # the long way says what it is
            return False
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(Waiting(asker, quick, head, holder.name, began))
        return True

    def _flush(self) -> None:
        """Have the rows written that were asked for in this pass of the loop."""
        waiting, self._waiting = self._waiting, []
        try:
            self._app.desk.writer.append_soon(
                [one.quick.ask for one in waiting], lambda answered: self._told(waiting, answered)
            )
        except StoreDown:
            for one in waiting:
                one.asker.long_way()

    def _told(self, waiting: list[Waiting], answered: Answered) -> None:
        """Answer those whose rows are durable now."""
        app, down = self._app, answered if isinstance(answered, StoreDown) else None
        for place, one in enumerate(waiting):
            told = None
            if not isinstance(answered, Exception):
                told = one.quick.say(answered[place])
            elif down is not None:
                told = one.quick.say(down)
            if told is None or told.status not in STATUS:
                one.asker.long_way()
                continue
            known = app.next_id()
            one.asker.reply(start_of(told, known), told.body)
            app.note(known, one.head.route.path, told.status, one.began, one.holder)
        app.desk.learner.wake()


def start_of(told: Answer, known: str) -> bytes:
    """Return the beginning of an answer: status and headers, but for what a server adds."""
    more = b"".join([b"%b: %b\r\n" % pair for pair in told.headers]) if told.headers else b""
    return b"%bcontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b%b" % (
        STATUS[told.status], len(told.body), known.encode(), ALWAYS, more,
    )  # fmt: skip


def head_of(app: "App", scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> Head | None:
    """Return what a head says, where it is one of a route that has a short way, and says nothing unusual."""
    path, told = scope["raw_path"], dict(headers)
    routes, words = app.table.find(path)
    route, size = routes.get(scope["method"]), told.get(b"content-length", b"")
    if route is None or route.quick is None or scope["query_string"] or scope["http_version"] != "1.1":
        return None
    if b"%" in path or len(told) != len(headers) or not size.isdigit() or int(size) > LARGEST_BODY:
        return None
    if told.get(b"content-type") != b"application/json" or any(name in told for name in UNUSUAL):
        return None
    scheme, _, key = told.get(b"authorization", b"").partition(b" ")
    return Head(route, words, key, int(size)) if scheme == b"Bearer" and key else None
