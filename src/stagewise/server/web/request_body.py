"""Reading the body of a request, within limits of size and time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.http_types import MAX_BODY_BYTES, HTTPError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

BODY_TIMEOUT = 10.0  # seconds for a body that comes in pieces


class ClientDisconnected(Exception):
    """The client closed the connection before the request was complete."""


def check_content_type(headers: Mapping[bytes, bytes]) -> None:
    """Reject a body that is not declared as JSON, or is compressed."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json":
        name, _, rest = kind.lower().replace(b" ", b"").replace(b'"', b"").partition(b";")
        if name != b"application/json" or rest not in (b"", b"charset=utf-8"):
            text = kind.decode("latin-1") or "missing"
            message = f"the content type is {text[:100]}; it must be application/json, in UTF-8"
            raise HTTPError(415, ErrorCode.INVALID_REQUEST, message)
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        message = "the body has a content encoding; send it uncompressed"
        raise HTTPError(415, ErrorCode.INVALID_REQUEST, message)


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Return the complete body of a request."""
    declared = headers.get(b"content-length", b"0")
    if len(declared) > 7 and declared.isdigit() and int(declared[:20]) > max_bytes:
        raise build_too_large_error(max_bytes)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        body = await _read_rest(receive, body, max_bytes)
    if len(body) > max_bytes:
        raise build_too_large_error(max_bytes)
    return body


async def _read_rest(receive: Receive, start: bytes, max_bytes: int) -> bytes:
    pieces, size, more = [start], len(start), True
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > max_bytes:
                    raise build_too_large_error(max_bytes)
                more = message.get("more_body", False)
    except TimeoutError:
        problem = f"the body was not complete after {BODY_TIMEOUT:g} s; send it at once"
        raise HTTPError(408, ErrorCode.INVALID_REQUEST, problem) from None
    return b"".join(pieces)


def build_too_large_error(max_bytes: int) -> HTTPError:
    """Return the error of a body that is too large."""
    message = f"the body has more than {max_bytes} bytes; send less at a time"
    return HTTPError(413, ErrorCode.BODY_TOO_LARGE, message, ((b"connection", b"close"),))
