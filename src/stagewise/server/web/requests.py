"""An authenticated request, its response, and what is checked before: rate, content type and size of the body."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import AccessKeys, KeyHolder
from stagewise.server.web.errors import Headers, HTTPError

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.web.telemetry import Telemetry

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON = b"application/json"
BODY_TIMEOUT = 10.0  # seconds for a body that comes in pieces

encode_json = msgspec.json.Encoder(order="deterministic").encode  # equal values are encoded to equal bytes


class ClientDisconnected(Exception):
    """The client closed the connection before the request was complete."""


class RateLimit(NamedTuple):
    """The rate that one key may have."""

    per_second: float = 20_000.0
    """Calls per second in the long run; an item of a batch is a call."""
    burst: float = 40_000.0
    """Calls that may come at once after a pause."""


class RateLimiter:
    """A token bucket per key; each decision, outcome or other call takes one token."""

    def __init__(self, rate: RateLimit) -> None:
        self.rate = rate
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens and the time of that count, by key

    def take(self, name: str, count: int, now: float) -> None:
        """Take tokens from a bucket, or raise HTTPError."""
        (per_second, burst), (tokens, then) = self.rate, self._buckets.get(name, (self.rate.burst, now))
        tokens = min(burst, tokens + (now - then) * per_second)
        self._buckets[name] = (tokens - count if count <= tokens else tokens, now)
        if count > tokens:
            wait = (min(count, burst) - tokens) / per_second
            message = "the key {name!r} made more than {per_second:g} calls per second; retry after {wait:.3g} s"
            headers = ((b"retry-after", str(int(wait) + 1).encode()),)
            raise HTTPError(429, ErrorCode.RATE_LIMITED, message, headers, name=name, per_second=per_second, wait=wait)


class Call(NamedTuple):
    """An authenticated request with its decoded body."""

    server: "DecisionServer"
    keys: AccessKeys
    rate_limiter: RateLimiter
    holder: KeyHolder
    path_params: tuple[str, ...]
    """The values of the route's {names}, in their order."""
    query: Mapping[str, int]
    body: Any
    telemetry: "Telemetry | None" = None
    """None: OpenTelemetry is not installed."""

    @property
    def name(self) -> str:
        """The first path parameter: an experiment, or a key."""
        return self.path_params[0]

    @property
    def actor(self) -> str:
        """The name of the key, which the log names."""
        return self.holder.name

    def charge(self, calls: int) -> None:
        """Charge the key's rate limit for the items of a batch; the first is already charged."""
        self.rate_limiter.take(self.holder.name, calls - 1, time.monotonic())


class Response(NamedTuple):
    """Status, body and headers of a response."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: Headers = ()


def json_response(value: Any, status: int = 200, headers: Headers = ()) -> Response:
    return Response(status, encode_json(value), JSON, headers)


def parse_query(query: bytes, defaults: Mapping[str, int]) -> dict[str, int]:
    values = dict(defaults)
    for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True) if defaults else ():
        if name not in defaults:
            message = "unknown query parameter {name!r}; this route has {defaults}"
            raise HTTPError(422, ErrorCode.UNKNOWN_NAME, message, name=name, defaults=", ".join(defaults))
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            message = "{name} is {text!r}; it must be an integer, 0 or more"
            raise HTTPError(422, ErrorCode.INVALID_REQUEST, message, name=name, text=text[:50])
        values[name] = int(text)
    return values


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], max_bytes: int) -> bytes:
    """Return the complete body of a request, which must be declared as JSON and not be compressed."""
    kind = headers.get(b"content-type", b"")
    if kind != JSON:
        name, _, rest = kind.lower().replace(b" ", b"").replace(b'"', b"").partition(b";")
        if name != JSON or rest not in (b"", b"charset=utf-8"):
            text = kind.decode("latin-1") or "missing"
            problem = "the content type is {text}; it must be application/json, in UTF-8"
            raise HTTPError(415, ErrorCode.INVALID_REQUEST, problem, text=text[:100])
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise HTTPError(415, ErrorCode.INVALID_REQUEST, "the body has a content encoding; send it uncompressed")
    declared = headers.get(b"content-length", b"0")
    pieces, size, more = list[bytes](), 0, True
    is_too_large = declared.isdigit() and int(declared[:20]) > max_bytes
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while more and not is_too_large:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                more, is_too_large = message.get("more_body", False), size > max_bytes
    except TimeoutError:
        problem = "the body was not complete after {body_timeout:g} s; send it at once"
        raise HTTPError(408, ErrorCode.INVALID_REQUEST, problem, body_timeout=BODY_TIMEOUT) from None
    if is_too_large:
        problem = "the body has more than {max_bytes} bytes; send less at a time"
        raise HTTPError(413, ErrorCode.BODY_TOO_LARGE, problem, ((b"connection", b"close"),), max_bytes=max_bytes)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
