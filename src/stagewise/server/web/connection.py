"""A connection: uvicorn's HTTP protocol with timeouts for incomplete requests, and the fast path before the parser."""

import asyncio
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stagewise.server.web.fast_path import FastPath, WaitingRequest

MAX_HEAD_BYTES = 1 << 16  # of an incomplete request head
MAX_PIPELINED_BYTES = 1 << 16  # that may arrive before the previous request is answered
BODY_WAIT = 0.05  # seconds for a body that arrives after its head
REQUEST_TIMEOUT = 15.0  # seconds between two checks of an incomplete request; the second closes the connection
END_OF_HEADERS, CLOSE_HEADER = b"\r\n", b"connection: close\r\n\r\n"


@lru_cache(2)  # they change every second, with the date
def encode_headers(*pairs: tuple[bytes, bytes]) -> bytes:
    """Return encoded headers."""
    return b"".join(b"%b: %b\r\n" % pair for pair in pairs)


class FastCycle(WaitingRequest):
    """A request on the fast path, with the attributes that uvicorn expects of its own request cycles."""

    __slots__ = ("_connection", "data", "disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, connection: "Connection", data: bytes) -> None:
        self._connection, self.data = connection, data
        self.response_complete = self.disconnected = False
        self.keep_alive, self.message_event = True, connection.unused_event

    def reply(self, head: bytes, body: bytes) -> None:
        """Send a response."""
        self.response_complete = True
        self._connection.send_reply(self, head, body)

    def fall_back(self) -> None:
        """Serve the request on the regular path."""
        self._connection.parse_again(self)


class Connection(HttpToolsProtocol):
    """Gives requests to the fast path if it takes them, else to the parser; one request at a time."""

    head_size = -1  # bytes of the incomplete head of the current request; -1: there is none
    in_request = False  # whether the parser is within a request
    first_bytes = b""  # what the parser was given when the request began
    partial = b""  # a head whose body has not arrived
    fast_cycle: FastCycle | None = None  # the request on the fast path
    queued = b""  # what arrived after it
    last_reply = 0.0  # when the fast path answered last
    request_count = 0  # requests that the parser has begun to read
    check_timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fast_path: FastPath | None = getattr(self.app, "fast_path", None)
        self.unused_event = asyncio.Event()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, with a periodic check for incomplete requests."""
        super().connection_made(transport)
        self.check_timer = self.loop.call_later(REQUEST_TIMEOUT, self._check_progress, -1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop."""
        if self.check_timer is not None:
            self.check_timer.cancel()
        super().connection_lost(exc)

    def _check_progress(self, previous: int) -> None:
        """Close the connection if it never sent a request, or is within the same request as at the last check.

        Sending one byte a minute needs no key.
        """
        is_silent = not self.request_count and not self.last_reply and self.fast_cycle is None
        current = self.request_count if self.in_request or is_silent else -1
        if current >= 0 and current == previous:
            self.transport.close()
        else:
            self.check_timer = self.loop.call_later(REQUEST_TIMEOUT, self._check_progress, current)

    def data_received(self, data: bytes) -> None:
        """Take bytes from the transport."""
        if self.fast_cycle is not None:
            self.queued += data
            if len(self.queued) > MAX_PIPELINED_BYTES:
                self.flow.pause_reading()
        elif self.fast_path is None or self.in_request or not (self.cycle is None or self.cycle.response_complete):
            self._parse(data)
        else:
            self._try_fast_path(self.fast_path, self.partial + data if self.partial else data)

    def _try_fast_path(self, fast_path: FastPath, data: bytes) -> None:
        """Give a request to the fast path, or to the parser if the fast path does not take it."""
        self.partial = b""
        head, end = fast_path.find(data)
        missing = -1 if head is None else end + head.size - len(data)
        if missing > 0:
            self.partial = data
            self.loop.call_later(BODY_WAIT, self._parse_partial, data)
        elif head is None or missing < 0 or self.flow.write_paused:
            self._parse(data)
        else:
            cycle = FastCycle(self, data)
            if fast_path.take(head, data[end:], cycle):
                self.cycle = self.fast_cycle = cycle  # type: ignore[assignment]
            else:
                self._parse(data)

    def _parse_partial(self, data: bytes) -> None:
        """Give a request to the parser whose body has not arrived in time."""
        if self.partial is data:
            self.partial = b""
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Give bytes to the parser, in pieces of at most the size of a head.

        A network splits requests anywhere: the rest of a head may arrive with its whole body, or with the next
        requests. Only bytes of a head count towards its maximum.
        """
        for start in range(0, len(data), MAX_HEAD_BYTES):
            if self.parser is None or self.transport.is_closing():  # the connection is lost or was rejected
                return
            piece = data if len(data) <= MAX_HEAD_BYTES else data[start : start + MAX_HEAD_BYTES]
            self.first_bytes = b"" if self.in_request else piece
            count = self.request_count
            super().data_received(piece)
            if self.head_size >= 0 and count == self.request_count:  # all of the piece belongs to one head
                self.head_size += len(piece)
                if self.head_size > MAX_HEAD_BYTES:
                    self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.head_size, self.in_request = 0, True
        self.request_count += 1

    def on_headers_complete(self) -> None:
        """Continue with the body of a request; the fast path may cache the head."""
        self.head_size = -1
        super().on_headers_complete()
        if self.first_bytes and self.fast_path is not None and self.parser.should_keep_alive():
            self.fast_path.remember_head(self.first_bytes, self.scope, self.headers)
        self.first_bytes = b""

    def on_message_complete(self) -> None:
        """End a request."""
        self.in_request = False
        super().on_message_complete()

    def send_reply(self, cycle: FastCycle, head: bytes, body: bytes) -> None:
        """Send the response of the fast path in one write, and continue with the queued bytes."""
        self.fast_cycle = None
        if cycle.disconnected or self.transport.is_closing():
            return
        default = encode_headers(*self.server_state.default_headers)
        self.transport.write(b"".join((head, default, END_OF_HEADERS if cycle.keep_alive else CLOSE_HEADER, body)))
        self.server_state.total_requests += 1
        if not cycle.keep_alive:
            self.transport.close()
            return
        self.last_reply = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._start_keep_alive_timer(self.timeout_keep_alive)
        self._process_queued()

    def parse_again(self, cycle: FastCycle) -> None:
        """Give a request to the parser that the fast path could not answer."""
        self.fast_cycle = self.cycle = None  # type: ignore[assignment]
        if not cycle.disconnected:
            self._parse(cycle.data)
            if not cycle.keep_alive and self.cycle is not None:  # the server is stopping
                self.cycle.keep_alive = False
            self._process_queued()

    def _process_queued(self) -> None:
        if self.queued:
            queued, self.queued = self.queued, b""
            self.flow.resume_reading()
            self.data_received(queued)

    def _start_keep_alive_timer(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; replies of the fast path do not restart this timer, so they are checked here."""
        self.timeout_keep_alive_task = None
        left = self.last_reply + self.timeout_keep_alive - self.loop.time()
        if self.fast_cycle is not None or left > 0.0:
            self._start_keep_alive_timer(max(left, 1.0))
        else:
            super().timeout_keep_alive_handler()
