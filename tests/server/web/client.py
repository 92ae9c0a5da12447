"""An ASGI application, called in this process: no socket, no server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from tests.server.web.described import as_described


class Answered(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def plain(self) -> Any:
        return msgspec.json.decode(self.content)


class Client:
    """Sends requests with a key."""

    def __init__(self, app: Any, key: str = "", header: str = "authorization") -> None:
        self.app, self.key, self.header = app, key, header

    def holding(self, key: str, header: str = "authorization") -> "Client":
        return Client(self.app, key, header)

    async def get(self, path: str, query: str = "") -> Answered:
        return await self.send("GET", path, query=query)

    async def post(self, path: str, body: Any, **more: Any) -> Answered:
        return await self.send("POST", path, msgspec.json.encode(body), **more)

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | list[bytes] = b"",
        *,
        query: str = "",
        kind: str | None = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answered:
        said = {} if kind is None else {"content-type": kind}
        if self.key:
            said[self.header] = f"Bearer {self.key}" if self.header == "authorization" else self.key
        said |= headers or {}
        pieces = body if isinstance(body, list) else [body]
        if not isinstance(body, list):
            said.setdefault("content-length", str(len(body)))
        scope = {
            "type": "http", "method": method, "path": path, "query_string": query.encode(), "scheme": "http",
            "raw_path": quote(path, safe="/%:{}").encode(), "http_version": "1.1", "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in said.items()],
            "server": ("desk", 80), "client": ("test", 1),
        }  # fmt: skip
        waiting = [
            {"type": "http.request", "body": piece, "more_body": i + 1 < len(pieces)} for i, piece in enumerate(pieces)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return waiting.pop(0) if waiting else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        answered = Answered(sent[0]["status"], told, b"".join(message["body"] for message in sent[1:]))
        as_described(method, scope["raw_path"], answered.status, told.get("content-type", ""), answered.content)
        return answered


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[None]:
    """Run an application's lifespan."""
    come: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    gone: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    living = asyncio.create_task(app({"type": "lifespan"}, come.get, gone.put))
    await come.put({"type": "lifespan.startup"})
    assert (await gone.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await come.put({"type": "lifespan.shutdown"})
        assert (await gone.get())["type"] == "lifespan.shutdown.complete"
        await living
