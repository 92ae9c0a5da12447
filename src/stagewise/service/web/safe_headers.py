"""Headers that keep a browser from guessing, framing, caching and telling others."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
NOTHING = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
OWN = (
    b"content-security-policy",
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
)


class PageSend:
    """Sends what the page answers, with these headers where it has none of its own; it remembers the status."""

    def __init__(self, send: Send, known: str) -> None:
        self._send, self._known, self.status = send, (b"x-request-id", known.encode()), 500

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name.lower() for name, _ in message["headers"]}
            ours = [pair for pair in (*SAFE, OWN) if pair[0] not in own]
            message["headers"] = [*message["headers"], self._known, *ours]
        await self._send(message)
