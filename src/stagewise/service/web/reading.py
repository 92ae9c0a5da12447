"""The body of a request, whole and not too large."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from stagewise.service.web.call import LARGEST_BODY, Refused

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

PATIENCE = 10.0  # seconds for a body that comes in pieces


class Gone(Exception):
    """The client hung up before it had said everything."""


def check_kind(headers: Mapping[bytes, bytes]) -> None:
    """Refuse what is not declared to be JSON, or is packed."""
    kind = headers.get(b"content-type", b"")
    if kind != b"application/json":
        name, _, rest = kind.lower().replace(b" ", b"").replace(b'"', b"").partition(b";")
        if name != b"application/json" or rest not in (b"", b"charset=utf-8"):
            said = kind.decode("latin-1") or "missing"
            raise Refused(415, f"the content type is {said[:100]}; a body is application/json, in UTF-8")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise Refused(415, "the body is packed; it must be plain, with no content encoding")


async def body_of(receive: Receive, headers: Mapping[bytes, bytes], largest: int = LARGEST_BODY) -> bytes:
    """Return the body of a request, once all of it is there."""
    declared = headers.get(b"content-length", b"0")
    if len(declared) > 7 and declared.isdigit() and int(declared[:20]) > largest:
        raise too_large(largest)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        body = await _rest(receive, body, largest)
    if len(body) > largest:
        raise too_large(largest)
    return body


async def _rest(receive: Receive, begun: bytes, largest: int) -> bytes:
    pieces, size, more = [begun], len(begun), True
    try:
        async with asyncio.timeout(PATIENCE):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > largest:
                    raise too_large(largest)
                more = message.get("more_body", False)
    except TimeoutError:
        raise Refused(408, f"the body was not complete after {PATIENCE:g} s; send it at once") from None
    return b"".join(pieces)


def too_large(largest: int) -> Refused:
    """Return the refusal of a body that is too large."""
    return Refused(413, f"the body has more than {largest} bytes; send less at a time", ((b"connection", b"close"),))
