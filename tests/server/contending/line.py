"""A connection to a server that is kept open: requests of one length have one head, so that they go the short way."""

import asyncio
from typing import Any

import msgspec

PATIENCE = 30.0  # seconds until an answer is missed


class Line:
    """Sends requests with a key, one after the other."""

    def __init__(self, address: str, key: str) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self.place, self.key = (host, int(port)), key
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Send a body; return the status and what is answered."""
        return await self.send(path, msgspec.json.encode(body))

    async def send(self, path: str, body: bytes) -> tuple[int, Any]:
        """Do the same with bytes."""
        reader, writer = await self._opened()
        writer.write(self._request(path, body))
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            told = await reader.readexactly(size)
        if b"connection: close" in head.lower():
            self.hang_up()
        return int(head.split(b" ", 2)[1]), msgspec.json.decode(told)

    async def send_and_hang_up(self, path: str, body: Any) -> None:
        """Send a body, and wait for no answer."""
        _, writer = await self._opened()
        writer.write(self._request(path, msgspec.json.encode(body)))
        await writer.drain()
        self.hang_up()

    def hang_up(self) -> None:
        """End the connection; the next request opens another."""
        if self._ends is not None:
            self._ends[1].close()
        self._ends = None

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._ends is None:
            self._ends = await asyncio.open_connection(*self.place)
        return self._ends

    def _request(self, path: str, body: bytes) -> bytes:
        head = f"POST {path} HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer {self.key}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
