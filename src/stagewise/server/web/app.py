"""The ASGI application: authentication, routing, body checks, errors and the request log.

The API's routes are plain ASGI, because two of them carry nearly all of the load (docs/decisions/0023). The page uses
Starlette.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.util import find_spec
from itertools import count
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match

from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import AccessKeys
from stagewise.server.web.error_mapping import EXPECTED_ERRORS, to_http_error
from stagewise.server.web.http_types import HTTPError, RouteRequest, RouteResponse, error_response
from stagewise.server.web.rate_limit import RateLimit, RateLimiter
from stagewise.server.web.request import IncomingRequest
from stagewise.server.web.request_body import ClientDisconnected, Receive, check_content_type, read_body
from stagewise.server.web.request_log import REQUEST_ID, RequestLine, RequestLog
from stagewise.server.web.router import Router, check_path_parameters
from stagewise.server.web.routes import ROUTES
from stagewise.server.web.security_headers import API_POLICY, SECURITY_HEADERS, PageSend, Send

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer

Scope = MutableMapping[str, Any]


class HttpSettings(NamedTuple):
    """Settings of the HTTP server."""

    rate: RateLimit = RateLimit()
    """The rate limit of each key."""
    log: bool = True
    """Whether every request is logged to stderr; requests that fail inside the server always are."""
    public: str = ""
    """The origin at which browsers see the page, such as https://stagewise.example; empty: that of each request."""


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
        self.router, self._page = Router(ROUTES), Starlette(routes=load_page_routes(server, keys, self.settings.public))
        self.rate_limiter, self._log = RateLimiter(self.settings.rate), RequestLog()
        self._id_prefix, self._count = token_hex(4), count()
        self.start_error = ""
        """Why the server could not start."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        start, request_id = time.perf_counter(), f"{self._id_prefix}-{next(self._count):x}"
        request = IncomingRequest(scope)
        REQUEST_ID.set(request_id)
        try:
            response = await self._respond(request, scope, receive)
        except EXPECTED_ERRORS as error:
            response = error_response(to_http_error(error))
        except ClientDisconnected:
            return
        except Exception as error:
            response = request.fail(error, request_id)
        if response is None:
            status = await self._serve_page(request, scope, receive, PageSend(send, request_id))
        else:
            await _send(send, response, request_id, has_body=request.method != "HEAD")
            status = response.status
        self.record(request_id, request.route_path, status, start, request.holder.name, request.fault)

    def record(self, request_id: str, route: str, status: int, start: float, holder: str, fault: str = "") -> None:
        """Count a request and add it to the log."""
        if status >= 400:
            self.server.counters.refused[(route, status)] += 1
        if self.settings.log or fault:
            ms = round((time.perf_counter() - start) * 1e3, 3)
            line = RequestLine(time.time(), request_id, route, status, ms, holder, fault)
            self._log.add(line, asyncio.get_running_loop().call_later)

    async def _respond(self, request: IncomingRequest, scope: Scope, receive: Receive) -> RouteResponse | None:
        """Return the response; None: the page has this path."""
        routes, path_params = self.router.find(request.path)
        route = request.route = routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            if not routes and any(page.matches(scope)[0] is not Match.NONE for page in self._page.routes):
                return None
            request.authenticate(self.keys)
            raise request.build_not_found(sorted(routes))
        if route.role is not None:
            holder = request.authenticate(self.keys)
            if not holder.has_role(route.role):
                message = f"the key {holder.name!r} has the role {holder.role}; this route needs {route.role}"
                raise HTTPError(403, ErrorCode.FORBIDDEN, message)
            self.rate_limiter.take(holder.name, 1, time.monotonic())
        check_path_parameters(request.path, path_params)
        body = b""
        if route.request_type is not None:
            check_content_type(request.headers)
            body = await read_body(receive, request.headers, route.max_body_bytes)
        return await route.handler(
            RouteRequest(self.server, self.keys, self.rate_limiter, request.holder, path_params, request.query, body)
        )

    async def _serve_page(self, request: IncomingRequest, scope: Scope, receive: Receive, send: PageSend) -> int:
        """Serve a request with the page and return the status."""
        try:
            await self._page(scope, receive, send)
        except Exception as error:  # Starlette has answered 500
            request.record(error)
        return send.status

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
        watcher = asyncio.create_task(self.keys.watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
        await self.server.stop()
        self._log.flush()
        await send({"type": "lifespan.shutdown.complete"})


async def _send(send: Send, response: RouteResponse, request_id: str, *, has_body: bool) -> None:
    length = b"%d" % len(response.body)
    headers = [(b"content-type", response.kind), (b"content-length", length), (b"x-request-id", request_id.encode())]
    if response.status == 204:
        del headers[:2]
    headers += (API_POLICY, *SECURITY_HEADERS, *response.headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body if has_body else b""})


def load_page_routes(server: "DecisionServer", keys: AccessKeys, public: str) -> list[BaseRoute]:
    """Return the routes of the page, if it is installed."""
    if find_spec("stagewise.server.web.page") is None:
        return []
    from stagewise.server.web.page.page_routes import build_page_routes

    return list(build_page_routes(server, keys, public=public))
