"""A connection: uvicorn's HTTP protocol, with limits on the size of a head and on the time of a request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 1 << 16  # of an incomplete request head
REQUEST_TIMEOUT = 15.0  # seconds between two checks of an incomplete request; the second closes the connection


class Connection(HttpToolsProtocol):
    """Closes a connection whose request head is too large or does not end; neither needs a key."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_size = -1  # bytes of the incomplete head of the current request; -1: there is none
        self._in_request, self._requests = True, 0  # a connection that never sends anything does not end either
        self._check_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, with a periodic check for an incomplete request."""
        super().connection_made(transport)
        self._check_timer = self.loop.call_later(REQUEST_TIMEOUT, self._check_progress, -1)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop."""
        if self._check_timer is not None:
            self._check_timer.cancel()
        super().connection_lost(exc)

    def _check_progress(self, previous: int) -> None:
        """Close the connection if it is within the same request as at the last check."""
        current = self._requests if self._in_request else -1
        if current >= 0 and current == previous:
            self.transport.close()
        else:
            self._check_timer = self.loop.call_later(REQUEST_TIMEOUT, self._check_progress, current)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, in pieces of at most the size of a head; only bytes of a head count towards its maximum."""
        for start in range(0, len(data), MAX_HEAD_BYTES):
            if self.parser is None or self.transport.is_closing():  # the connection is lost or was rejected
                return
            piece, requests = data[start : start + MAX_HEAD_BYTES], self._requests
            super().data_received(piece)
            if self._head_size >= 0 and requests == self._requests:  # all of the piece belongs to one head
                self._head_size += len(piece)
                if self._head_size > MAX_HEAD_BYTES:
                    self.transport.close()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head_size, self._in_request = 0, True
        self._requests += 1

    def on_headers_complete(self) -> None:
        """Continue with the body of a request."""
        self._head_size = -1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_request = False
        super().on_message_complete()
