"""A visitor of the page without a browser: requests in this process, and a cookie that is kept."""

import asyncio
import json
from http.cookies import SimpleCookie
from typing import Any, NamedTuple
from urllib.parse import unquote, urlencode, urlsplit


class Answered(NamedTuple):
    """What came back."""

    status_code: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


class Visitor:
    """Sends forms, follows nothing."""

    def __init__(self, app: Any, scheme: str = "http") -> None:
        self.app, self.scheme = app, scheme
        self.cookies: dict[str, str] = {}

    def get(self, path: str) -> Answered:
        return asyncio.run(self._send("GET", path, b"", {}))

    def post(
        self,
        path: str,
        data: dict[str, str] | None = None,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answered:
        body = urlencode(data or {}).encode() if content is None else content
        told = {"content-type": "application/x-www-form-urlencoded", **(headers or {})}
        return asyncio.run(self._send("POST", path, body, told))

    async def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answered:
        place = urlsplit(path)
        told = {"host": "testserver", **headers}
        if self.cookies:
            told["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http", "method": method, "path": unquote(place.path), "raw_path": place.path.encode(),
            "query_string": place.query.encode(), "scheme": self.scheme, "http_version": "1.1", "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
            "server": ("testserver", 80), "client": ("test", 1),
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        answered = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
        cookies = [value.decode("latin-1") for name, value in sent[0]["headers"] if name == b"set-cookie"]
        for name, one in (pair for cookie in cookies for pair in SimpleCookie(cookie).items()):
            self.cookies[name] = one.value
            if one["max-age"] == "0":
                del self.cookies[name]
        text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
        return Answered(sent[0]["status"], answered, text)
