"""Security headers of every response."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
API_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
PAGE_POLICY = (
    b"content-security-policy",
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
)


class PageSend:
    """Sends the page's responses, adds the headers that they lack, and stores the status."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._request_id, self.status = send, (b"x-request-id", request_id.encode()), 500

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send an ASGI message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            added = [pair for pair in (*SECURITY_HEADERS, PAGE_POLICY) if pair[0] not in present]
            message["headers"] = [*message["headers"], self._request_id, *added]
        await self._send(message)
