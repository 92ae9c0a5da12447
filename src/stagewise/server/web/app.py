"""The ASGI application: authentication, routing, body checks, errors and the request log.

The API's routes are plain ASGI, because two of them carry nearly all of the load (docs/decisions/0023). The page uses
Starlette.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from starlette.applications import Starlette
from starlette.routing import Match

from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import AccessKeys, KeyHolder
from stagewise.server.web.page.routes import build_page_routes
from stagewise.server.web.requests import (
    EXPECTED_ERRORS,
    REQUEST_ID,
    Call,
    ClientDisconnected,
    HTTPError,
    LogLine,
    Message,
    RateLimit,
    RateLimiter,
    Receive,
    Response,
    Send,
    format_error_location,
    json_response,
    parse_query,
    read_body,
    to_http_error,
)
from stagewise.server.web.routes import ROUTES, Route, Router

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer

try:
    from stagewise.server.web.telemetry import Telemetry
except ImportError:  # opentelemetry-api is not installed
    Telemetry = None  # type: ignore[assignment, misc]

API_POLICY = b"default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
CONTROL_CHARACTER = re.compile("[\\x00-\\x1f\\x7f]")
LARGE_BODY = 1 << 17  # bytes that a thread decodes, so that other requests do not wait


class HttpSettings(NamedTuple):
    """Settings of the HTTP server."""

    rate: RateLimit = RateLimit()
    """The rate limit of each key."""
    log: bool = True
    """Whether every request is logged to stderr; requests that fail inside the server always are."""
    public: str = ""
    """The origin at which browsers see the page, such as https://stagewise.example; empty: that of each request."""


class Reply:
    """Sends a response with its request id and the security headers that it lacks, and stores the status."""

    def __init__(self, send: Send, line: LogLine) -> None:
        self._send, self._line = send, line

    async def __call__(self, message: Message) -> None:
        """Send an ASGI message."""
        if message["type"] == "http.response.start":
            self._line.status, headers = message["status"], list(message["headers"])
            present = {name.lower() for name, _ in headers}
            policy = (b"content-security-policy", PAGE_POLICY)
            headers += [pair for pair in (*SECURITY_HEADERS, policy) if pair[0] not in present]
            message["headers"] = [*headers, (b"x-request-id", self._line.id.encode())]
        await self._send(message)

    async def send(self, response: Response, *, has_body: bool) -> None:
        kind = ((b"content-type", response.kind), (b"content-length", b"%d" % len(response.body)))
        headers = [*(kind if response.status != 204 else ()), (b"content-security-policy", API_POLICY)]
        await self({"type": "http.response.start", "status": response.status, "headers": [*headers, *response.headers]})
        await self({"type": "http.response.body", "body": response.body if has_body else b""})


class App:
    """The ASGI application of a decision server; its lifespan starts, prepares and stops the server."""

    def __init__(
        self,
        server: "DecisionServer",
        keys: AccessKeys,
        settings: HttpSettings | None = None,
        prepare: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.server, self.keys, self.settings, self._prepare = server, keys, settings or HttpSettings(), prepare
        self._router = Router(ROUTES)
        self._page = Starlette(routes=build_page_routes(server, keys, public=self.settings.public))
        self._rate_limiter = RateLimiter(self.settings.rate)
        self._id_prefix, self._count = token_hex(4), count()
        self.telemetry = None if Telemetry is None else Telemetry(server)
        self.start_error = ""
        """Why the server could not start."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        line = LogLine(time.time(), f"{self._id_prefix}-{next(self._count):x}")
        if self.telemetry is None or not self.telemetry.is_traced or scope["method"] != "POST":
            await self._answer(scope, receive, send, line)
        else:
            with self.telemetry.trace(scope, line):
                await self._answer(scope, receive, send, line)

    async def _answer(self, scope: Message, receive: Receive, send: Send, line: LogLine) -> None:
        start = time.perf_counter()
        REQUEST_ID.set(line.id)
        reply, response = Reply(send, line), None
        try:
            response = await self._respond(scope, receive, line)
            if response is None:
                await self._page(scope, receive, reply)
        except EXPECTED_ERRORS as error:
            found = to_http_error(error)
            response = json_response(found.to_message(), found.status, found.headers)
        except ClientDisconnected:
            return
        except Exception as error:
            line.error = format_error_location(error)
            if not line.status:  # else Starlette has answered 500
                message = "the server failed; its log has details under {id}"
                response = json_response(
                    HTTPError(500, ErrorCode.INTERNAL_ERROR, message, id=line.id).to_message(), 500
                )
        if response is not None:
            await reply.send(response, has_body=scope["method"] != "HEAD")
        if line.status >= 400:
            self.server.counters.refused[(line.route, line.status)] += 1
        if self.settings.log or line.error:
            line.ms = round((time.perf_counter() - start) * 1e3, 3)
            with contextlib.suppress(OSError, ValueError):  # an unwritable log must not fail a request
                line.write()

    async def _respond(self, scope: Message, receive: Receive, line: LogLine) -> Response | None:
        """Return the response; None: the page has this path."""
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        headers: dict[bytes, bytes] = dict(scope["headers"])
        routes, path_params = self._router.find(path)
        route = routes.get("GET" if scope["method"] == "HEAD" else scope["method"])
        if route is None:
            if not routes and any(page.matches(scope)[0] is not Match.NONE for page in self._page.routes):
                return None
            line.key = self._authenticate(headers).name
            raise build_no_route(scope["method"], routes)
        line.route, holder = route.path, KeyHolder("", "")
        if route.role is not None:
            holder = self._authenticate(headers)
            line.key = holder.name
            if not holder.has_role(route.role):
                message = "the key {name!r} has the role {role}; this route needs {needed}"
                raise HTTPError(
                    403, ErrorCode.FORBIDDEN, message, name=holder.name, role=holder.role, needed=route.role
                )
            self._rate_limiter.take(holder.name, 1, time.monotonic())
        if b"%" in path and any(CONTROL_CHARACTER.search(value) for value in path_params):
            raise HTTPError(404, ErrorCode.NOT_FOUND, "the path has control characters; no name has them")
        query, body = parse_query(scope.get("query_string", b""), route.query_defaults), None
        if route.decode is not None:
            content = await read_body(receive, headers, route.max_body_bytes)
            is_large = len(content) > LARGE_BODY
            body = await asyncio.to_thread(route.decode, content) if is_large else route.decode(content)
        telemetry = None if self.telemetry is None or not self.telemetry.is_traced else self.telemetry
        call = Call(self.server, self.keys, self._rate_limiter, holder, path_params, query, body, telemetry)
        result = await route.handler(call)
        return result if isinstance(result, Response) else json_response(result, route.status)

    def _authenticate(self, headers: dict[bytes, bytes]) -> KeyHolder:
        scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
        key = value if scheme.lower() == b"bearer" else b""
        holder = self.keys.authenticate(key) if key else None
        if holder is None:
            problem = "the key is unknown or revoked" if key else "the request has no key"
            message = "{problem}; send one as Authorization: Bearer sw_..."
            raise HTTPError(401, ErrorCode.UNAUTHORIZED, message, ((b"www-authenticate", b"Bearer"),), problem=problem)
        return holder

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.server.start()
            if self._prepare is not None:
                await self._prepare()
        except Exception as error:
            self.start_error = f"the server could not start: {error}"
            with contextlib.suppress(Exception):
                await self.server.stop()
            await send({"type": "lifespan.startup.failed", "message": ""})  # `serve` raises the error itself
            return
        if self.telemetry is not None:
            self.telemetry.start()
        watcher = asyncio.create_task(self.keys.watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
        await self.server.stop()
        await send({"type": "lifespan.shutdown.complete"})


def build_no_route(method: str, routes: Mapping[str, Route]) -> HTTPError:
    """Return the error of a path without routes, or of a method that its routes do not have."""
    if not routes:
        return HTTPError(404, ErrorCode.NOT_FOUND, "no route has this path; GET /openapi.json lists the routes")
    methods = ", ".join(sorted(routes))
    message, allowed = "the method {method} is not allowed here; use {methods}", ((b"allow", methods.encode()),)
    return HTTPError(405, ErrorCode.METHOD_NOT_ALLOWED, message, allowed, method=method[:20], methods=methods)
