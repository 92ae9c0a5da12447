"""A connection: uvicorn's HTTP, which hangs up on what never ends, and before it the short way (`lane`)."""

import asyncio
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stagewise.service.web.lane import Lane, Waiting

LARGEST_HEAD = 1 << 16  # bytes of a request's head: so many may come in a piece of their own, and it is not complete
LARGEST_BEHIND = 1 << 16  # bytes that may come before the request before them is answered
SOON = 0.05  # seconds for a body that comes after its head
PATIENCE = 15.0  # seconds between two looks at a request that is not complete: at the second it is hung up on
END, CLOSE = b"\r\n", b"connection: close\r\n\r\n"


@lru_cache(2)  # they change every second, with the date
def headers_of(*pairs: tuple[bytes, bytes]) -> bytes:
    """Return headers as they are sent."""
    return b"".join(b"%b: %b\r\n" % pair for pair in pairs)


class Turn(Waiting):
    """A request on the short way, which uvicorn takes for one of its own."""

    __slots__ = ("_connection", "data", "disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, connection: "Connection", data: bytes) -> None:
        self._connection, self.data = connection, data
        self.response_complete = self.disconnected = False
        self.keep_alive, self.message_event = True, connection.unheard

    def reply(self, head: bytes, body: bytes) -> None:
        """Send an answer."""
        self.response_complete = True
        self._connection.replied(self, head, body)

    def long_way(self) -> None:
        """Have the request served as if it came just now."""
        self._connection.turned(self)


class Connection(HttpToolsProtocol):
    """What comes goes to the lane where it can, else to the parser; one request after the other."""

    head = -1  # bytes since a request began whose headers are not complete; -1: there is none
    midst = False  # of a request that the parser reads
    begun = b""  # what the parser was given as a request began
    held = b""  # a head whose body is still to come
    turn: Turn | None = None  # the request that the lane has
    behind = b""  # what came after it
    last = 0.0  # when the lane answered last
    begun_ever = 0  # requests that the parser has begun to read
    looks: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self.lane: Lane | None = getattr(self.app, "lane", None)
        self.unheard = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and look from time to time whether anybody is there."""
        super().connection_made(transport)
        self.looks = self.loop.call_later(PATIENCE, self._look, -1)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self.looks is not None:
            self.looks.cancel()
        super().connection_lost(exc)

    def _look(self, before: int) -> None:
        """Hang up on a request that the last look saw begun, and on who never asked: one byte a minute takes no key."""
        silent = not self.begun_ever and not self.last and self.turn is None
        now = self.begun_ever if self.midst or silent else -1
        if now >= 0 and now == before:
            self.transport.close()
        else:
            self.looks = self.loop.call_later(PATIENCE, self._look, now)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if self.turn is not None:
            self.behind += data
            if len(self.behind) > LARGEST_BEHIND:
                self.flow.pause_reading()
        elif self.lane is None or self.midst or not (self.cycle is None or self.cycle.response_complete):
            self._parse(data)
        else:
            self._offer(self.lane, self.held + data if self.held else data)

    def _offer(self, lane: Lane, data: bytes) -> None:
        """Let the lane have what begins with a request, where it takes it."""
        self.held = b""
        head, end = lane.find(data)
        lacks = -1 if head is None else end + head.size - len(data)
        if lacks > 0:
            self.held = data
            self.loop.call_later(SOON, self._release, data)
        elif head is None or lacks < 0 or self.flow.write_paused:
            self._parse(data)
        else:
            turn = Turn(self, data)
            if lane.take(head, data[end:], turn):
                self.cycle = self.turn = turn  # type: ignore[assignment]
            else:
                self._parse(data)

    def _release(self, data: bytes) -> None:
        """Let the parser have what was held for too long."""
        if self.held is data:
            self.held = b""
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Let the parser have bytes, at most so many at once as a head may have: only those of a head count for it.

        A network cuts requests anywhere, and the rest of a head may come with all of its body, or with the next ones.
        """
        for start in range(0, len(data), LARGEST_HEAD):
            if self.parser is None or self.transport.is_closing():  # the connection is lost, or was refused
                return
            piece = data if len(data) <= LARGEST_HEAD else data[start : start + LARGEST_HEAD]
            self.begun = b"" if self.midst else piece
            asked = self.begun_ever
            super().data_received(piece)
            if self.head >= 0 and asked == self.begun_ever:  # all of it was of one head, which goes on
                self.head += len(piece)
                if self.head > LARGEST_HEAD:
                    self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.head, self.midst = 0, True
        self.begun_ever += 1

    def on_headers_complete(self) -> None:
        """Go on to a request's body; the lane may remember what its head says."""
        self.head = -1
        super().on_headers_complete()
        if self.begun and self.lane is not None and self.parser.should_keep_alive():
            self.lane.meet(self.begun, self.scope, self.headers)
        self.begun = b""

    def on_message_complete(self) -> None:
        """End a request."""
        self.midst = False
        super().on_message_complete()

    def replied(self, turn: Turn, head: bytes, body: bytes) -> None:
        """Send the lane's answer in one write, and go on with what came after the request."""
        self.turn = None
        if turn.disconnected or self.transport.is_closing():
            return
        always = headers_of(*self.server_state.default_headers)
        self.transport.write(b"".join((head, always, END if turn.keep_alive else CLOSE, body)))
        self.server_state.total_requests += 1
        if not turn.keep_alive:
            self.transport.close()
            return
        self.last = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._rest(self.timeout_keep_alive)
        self._go_on()

    def turned(self, turn: Turn) -> None:
        """Let the parser have a request that the lane could not answer."""
        self.turn = self.cycle = None  # type: ignore[assignment]
        if not turn.disconnected:
            self._parse(turn.data)
            if not turn.keep_alive and self.cycle is not None:  # told to stop meanwhile
                self.cycle.keep_alive = False
            self._go_on()

    def _go_on(self) -> None:
        if self.behind:
            behind, self.behind = self.behind, b""
            self.flow.resume_reading()
            self.data_received(behind)

    def _rest(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Hang up on who has been silent for long; the lane's answers do not move this timer, and are counted here."""
        self.timeout_keep_alive_task = None
        left = self.last + self.timeout_keep_alive - self.loop.time()
        if self.turn is not None or left > 0.0:
            self._rest(max(left, 1.0))
        else:
            super().timeout_keep_alive_handler()
