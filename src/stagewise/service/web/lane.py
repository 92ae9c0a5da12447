"""The short way of what is all of the load: single decisions and outcomes, from the socket to the log and back.

A request whose head was met before, whole and alone on its connection, needs no parser, no task and no future. What
comes while a transaction is made durable is decided together when that is done, and goes into the next one; each answer
is one write. Whatever is not as simple as that (a list, a verdict other than "new", a refusal) goes the long way from
its beginning, which says all.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stagewise.service.records import Settled
from stagewise.service.store.store import StoreDown
from stagewise.service.web.call import JSON, Answer
from stagewise.service.web.safe_headers import NOTHING, SAFE
from stagewise.service.writer import Answered

if TYPE_CHECKING:
    from stagewise.service.web.app import App
    from stagewise.service.web.route import Route

log = logging.getLogger("stagewise.desk")

MOST = 1024  # heads that are remembered
LARGEST = 4096  # bytes of one
LARGEST_BODY = 1 << 16
MANY = 256  # requests that wait for no more
ALWAYS = b"".join(b"%b: %b\r\n" % pair for pair in ((b"content-type", JSON), NOTHING, *SAFE))
STATUS = {200: b"HTTP/1.1 200 OK\r\n" + ALWAYS, 503: b"HTTP/1.1 503 Service Unavailable\r\n" + ALWAYS}
UNUSUAL = (b"content-encoding", b"transfer-encoding", b"expect", b"upgrade")


class Head(NamedTuple):
    """What the head of a request says, as the parser understood it."""

    route: "Route"
    words: tuple[str, ...]
    key: bytes
    size: int
    """Of the body that follows."""


class Waiting(ABC):
    """A request that waits for its answer."""

    __slots__ = ("began", "holder", "route", "what")

    route: "Route"
    what: Any
    """What is asked, and then what is written for it."""
    holder: str
    began: float

    @abstractmethod
    def reply(self, head: bytes, body: bytes) -> None:
        """Send an answer."""

    @abstractmethod
    def long_way(self) -> None:
        """Have the request served as if it came just now."""


class Lane:
    """Takes requests from connections, and answers them."""

    def __init__(self, app: "App") -> None:
        self._app, self._heads = app, dict[bytes, Head]()
        self._waiting: list[Waiting] = []
        self._seen = 0  # of those, when it was last looked
        self._writing = False  # what was asked for before

    def meet(self, data: bytes, scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> None:
        """Remember the head of a request that the parser has read from its first byte on, where it may come again."""
        head = data[: data.find(b"\r\n\r\n") + 4]
        found = head_of(self._app, scope, headers) if len(head) <= LARGEST else None
        if found is not None and is_whole(head, found, scope, headers):
            if len(self._heads) >= MOST:
                self._heads.clear()
            self._heads[head] = found

    def find(self, data: bytes) -> tuple[Head | None, int]:
        """Return the head that a request begins with, and where its body begins; None: it is none that can be taken."""
        end = data.find(b"\r\n\r\n") + 4
        return self._heads.get(data[:end]), end

    def take(self, head: Head, body: bytes, asker: Waiting) -> bool:
        """Take a whole request; False: it goes the long way."""
        app, route = self._app, head.route
        asker.began, asker.route = time.perf_counter(), route
        holder = app.keys.sent(head.key)
        if holder is None or route.quick is None or route.role is None or not holder.may(route.role):
            return False
        try:
            asker.what = route.quick.read(app.desk, head.words, body)
            if asker.what is None:
                return False
            app.buckets.take(holder.name, 1, time.monotonic())
        except Exception:  # the long way says what it is
            return False
        asker.holder = holder.name
        if not self._waiting and not self._writing:
            asyncio.get_running_loop().call_soon(self._ask)
        self._waiting.append(asker)
        return True

    def _ask(self) -> None:
        """Decide what waits, and have its rows written, once a look at the sockets brings nobody more.

        Who comes a moment too late waits for two transactions, and those are the slowest of all.
        """
        if self._writing:
            return
        if self._seen < len(self._waiting) < MANY:
            self._seen = len(self._waiting)
            asyncio.get_running_loop().call_soon(self._ask)
            return
        self._seen = 0
        came, self._waiting, made = self._waiting, [], list[Waiting]()
        for quick in {one.route.quick for one in came}:
            ours = [one for one in came if one.route.quick is quick]
            for one, what in zip(ours, made_by(quick, [one.what for one in ours]), strict=True):
                if what is None:
                    self._turn_away(one)
                else:
                    one.what = what
                    made.append(one)
        if made:
            asks = [one.what.ask for one in made]
            try:
                self._app.desk.writer.append_soon(asks, lambda answered: self._written(made, answered))
                self._writing = True
            except StoreDown:
                for one in made:
                    self._turn_away(one)

    def _written(self, made: list[Waiting], answered: Answered) -> None:
        """Answer those whose rows are durable now, and then see who came meanwhile.

        Soon those who are answered now ask again, and one transaction for all costs less than two.
        """
        self._writing = False
        for place, one in enumerate(made):
            self._answer(one, answered[place] if isinstance(answered, list) else answered)
        if self._waiting and not self._writing:
            asyncio.get_running_loop().call_soon(self._ask)
        self._app.desk.learner.wake()

    def _answer(self, one: Waiting, settled: Settled | Exception) -> None:
        known = isinstance(settled, (Settled, StoreDown))
        told: Answer | None = one.route.quick.say(one.what, settled) if known else None  # type: ignore
        if told is None or told.status not in STATUS:
            self._turn_away(one)
            return
        name = self._app.next_id()
        one.reply(start_of(told, name), told.body)
        self._app.note(name, one.route.path, told.status, one.began, one.holder)

    def _turn_away(self, one: Waiting) -> None:
        """Have a request go the long way, where it is counted again."""
        self._app.buckets.give_back(one.holder, 1)
        one.long_way()


def made_by(quick: Any, read: list[Any]) -> Sequence[Any]:
    """Return what is to be written for those that came together; where that fails, each goes the long way."""
    try:
        made: Sequence[Any] = quick.make(read)
    except Exception:
        log.exception("deciding together failed; each is decided by itself")
        return [None] * len(read)
    return made


def start_of(told: Answer, known: str) -> bytes:
    """Return the beginning of an answer: status and headers, but for what a server adds."""
    more = b"".join([b"%b: %b\r\n" % pair for pair in told.headers]) if told.headers else b""
    return b"%bcontent-length: %d\r\nx-request-id: %b\r\n%b" % (
        STATUS[told.status], len(told.body), known.encode(), more,
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


def is_whole(head: bytes, found: Head, scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> bool:
    """Say whether these bytes are all that the parser has read: who sends the same bytes again says all of it again.

    Above all the key. Empty lines before a request, say, are no part of it; were they taken for its head, they would
    open the door to anybody.
    """
    line = b"%b %b HTTP/1.1\r\n" % (scope["method"].encode(), scope["raw_path"])
    return head.startswith(line) and found.key in head and head.count(b"\n") == len(headers) + 2
