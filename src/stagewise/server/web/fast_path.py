"""The fast path of single decisions and outcomes, which are nearly all of the load.

A request whose head was seen before, which is complete and alone on its connection, needs no parser, task or future.
Requests that arrive while a transaction is being made durable are decided together afterwards and go into the next one;
each response is one write. Every other request (a list, an append that is not new, an error) takes the regular path
from its first byte.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stagewise.server.event_log import AppendResult
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.web.http_types import JSON, RouteResponse
from stagewise.server.web.security_headers import API_POLICY, SECURITY_HEADERS
from stagewise.server.writer import WriteOutcome

if TYPE_CHECKING:
    from stagewise.server.web.app import App
    from stagewise.server.web.router import Route

log = logging.getLogger("stagewise.server")

MAX_CACHED_HEADS = 1024
MAX_HEAD_BYTES = 4096
MAX_FAST_BODY_BYTES = 1 << 16
MAX_WAITING = 256  # from so many requests on, the batch does not wait for more
COMMON_HEADERS = b"".join(b"%b: %b\r\n" % pair for pair in ((b"content-type", JSON), API_POLICY, *SECURITY_HEADERS))
STATUS_LINES = {
    200: b"HTTP/1.1 200 OK\r\n" + COMMON_HEADERS,
    503: b"HTTP/1.1 503 Service Unavailable\r\n" + COMMON_HEADERS,
}
UNSUPPORTED_HEADERS = (b"content-encoding", b"transfer-encoding", b"expect", b"upgrade")


class CachedHead(NamedTuple):
    """A request head as the parser understood it."""

    route: "Route"
    path_params: tuple[str, ...]
    key: bytes
    size: int
    """Bytes of the body."""


class WaitingRequest(ABC):
    """A request that waits for its response."""

    __slots__ = ("content", "holder", "route", "start")

    route: "Route"
    content: Any
    """The parsed request, then its prepared row."""
    holder: str
    start: float

    @abstractmethod
    def reply(self, head: bytes, body: bytes) -> None:
        """Send a response."""

    @abstractmethod
    def fall_back(self) -> None:
        """Serve the request on the regular path."""


class FastPath:
    """Takes requests from connections and answers them in batches."""

    def __init__(self, app: "App") -> None:
        self._app, self._heads = app, dict[bytes, CachedHead]()
        self._requests: list[WaitingRequest] = []
        self._last_waiting = 0  # how many waited at the last check
        self._is_writing = False

    def remember_head(self, data: bytes, scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> None:
        """Cache the head of a request that the parser has read from its first byte, if it can occur again."""
        head = data[: data.find(b"\r\n\r\n") + 4]
        found = parse_head(self._app, scope, headers) if len(head) <= MAX_HEAD_BYTES else None
        if found is not None and is_complete_head(head, found, scope, headers):
            if len(self._heads) >= MAX_CACHED_HEADS:
                self._heads.clear()
            self._heads[head] = found

    def find(self, data: bytes) -> tuple[CachedHead | None, int]:
        """Return the cached head of a request, or None, and the offset of its body."""
        end = data.find(b"\r\n\r\n") + 4
        return self._heads.get(data[:end]), end

    def take(self, head: CachedHead, body: bytes, request: WaitingRequest) -> bool:
        """Take a complete request; False: it needs the regular path."""
        app, route = self._app, head.route
        request.start, request.route = time.perf_counter(), route
        holder = app.keys.authenticate(head.key)
        if holder is None or route.fast_handler is None or route.role is None or not holder.has_role(route.role):
            return False
        try:
            request.content = route.fast_handler.read(app.server, head.path_params, body)
            if request.content is None:
                return False
            app.rate_limiter.take(holder.name, 1, time.monotonic())
        except Exception:  # the regular path reports it
            return False
        request.holder = holder.name
        if not self._requests and not self._is_writing:
            asyncio.get_running_loop().call_soon(self._process)
        self._requests.append(request)
        return True

    def _process(self) -> None:
        """Prepare the waiting requests and write their rows, once no more requests arrive.

        A request that misses the batch waits for two transactions, which is the worst latency.
        """
        if self._is_writing:
            return
        if self._last_waiting < len(self._requests) < MAX_WAITING:
            self._last_waiting = len(self._requests)
            asyncio.get_running_loop().call_soon(self._process)
            return
        self._last_waiting = 0
        batch, self._requests, prepared = self._requests, [], list[WaitingRequest]()
        for handler in {request.route.fast_handler for request in batch}:
            requests = [request for request in batch if request.route.fast_handler is handler]
            rows = prepare_batch(handler, [request.content for request in requests])
            for request, row in zip(requests, rows, strict=True):
                if row is None:
                    self._fall_back(request)
                else:
                    request.content = row
                    prepared.append(request)
        if prepared:
            appends = [request.content.append_request for request in prepared]
            try:
                self._app.server.writer.append_soon(appends, lambda outcome: self._finish(prepared, outcome))
                self._is_writing = True
            except StoreUnavailable:
                for request in prepared:
                    self._fall_back(request)

    def _finish(self, prepared: list[WaitingRequest], outcome: WriteOutcome) -> None:
        """Answer the requests whose rows are durable, then process those that arrived meanwhile.

        Clients that are answered now ask again soon, and one transaction for all costs less than two.
        """
        self._is_writing = False
        for i, request in enumerate(prepared):
            self._reply(request, outcome[i] if isinstance(outcome, list) else outcome)
        if self._requests and not self._is_writing:
            asyncio.get_running_loop().call_soon(self._process)
        self._app.server.learner.wake()

    def _reply(self, request: WaitingRequest, result: AppendResult | Exception) -> None:
        response: RouteResponse | None = None
        if isinstance(result, (AppendResult, StoreUnavailable)) and request.route.fast_handler is not None:
            response = request.route.fast_handler.build_response(request.content, result)
        if response is None or response.status not in STATUS_LINES:
            self._fall_back(request)
            return
        request_id = self._app.next_id()
        request.reply(encode_head(response, request_id), response.body)
        self._app.record(request_id, request.route.path, response.status, request.start, request.holder)

    def _fall_back(self, request: WaitingRequest) -> None:
        """Serve a request on the regular path, which charges it again."""
        self._app.rate_limiter.give_back(request.holder, 1)
        request.fall_back()


def prepare_batch(fast_handler: Any, requests: list[Any]) -> Sequence[Any]:
    """Return the prepared rows of requests; None for each if that fails."""
    try:
        rows: Sequence[Any] = fast_handler.prepare(requests)
    except Exception:
        log.exception("a batch of requests failed; each is served separately")
        return [None] * len(requests)
    return rows


def encode_head(response: RouteResponse, request_id: str) -> bytes:
    """Return the status line and headers of a response, without the server's default headers."""
    more = b"".join([b"%b: %b\r\n" % pair for pair in response.headers]) if response.headers else b""
    return b"%bcontent-length: %d\r\nx-request-id: %b\r\n%b" % (
        STATUS_LINES[response.status], len(response.body), request_id.encode(), more,
    )  # fmt: skip


def parse_head(app: "App", scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]) -> CachedHead | None:
    """Return a head that the fast path can serve, or None."""
    path, fields = scope["raw_path"], dict(headers)
    routes, path_params = app.router.find(path)
    route, size = routes.get(scope["method"]), fields.get(b"content-length", b"")
    if route is None or route.fast_handler is None or scope["query_string"] or scope["http_version"] != "1.1":
        return None
    if b"%" in path or len(fields) != len(headers) or not size.isdigit() or int(size) > MAX_FAST_BODY_BYTES:
        return None
    if fields.get(b"content-type") != b"application/json" or any(name in fields for name in UNSUPPORTED_HEADERS):
        return None
    scheme, _, key = fields.get(b"authorization", b"").partition(b" ")
    return CachedHead(route, path_params, key, int(size)) if scheme == b"Bearer" and key else None


def is_complete_head(
    head: bytes, found: CachedHead, scope: Mapping[str, Any], headers: list[tuple[bytes, bytes]]
) -> bool:
    """Return whether these bytes are everything that the parser has read for this head, above all the key.

    Empty lines before a request, for example, are not part of it. If they were cached as its head, they would
    authenticate anybody.
    """
    line = b"%b %b HTTP/1.1\r\n" % (scope["method"].encode(), scope["raw_path"])
    return head.startswith(line) and found.key in head and head.count(b"\n") == len(headers) + 2
