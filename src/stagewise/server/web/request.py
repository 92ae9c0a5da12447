"""A request before its key, route and body are checked."""

from collections.abc import MutableMapping
from typing import Any

from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import AccessKeys, KeyHolder
from stagewise.server.web.http_types import HTTPError, RouteResponse, error_response
from stagewise.server.web.request_log import format_error_location
from stagewise.server.web.router import Route

ANONYMOUS = KeyHolder("", "")


class IncomingRequest:
    """The head of a request, with its route and key holder once they are known."""

    __slots__ = ("fault", "headers", "holder", "method", "path", "query", "route")

    def __init__(self, scope: MutableMapping[str, Any]) -> None:
        self.method: str = scope["method"]
        self.path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query: bytes = scope.get("query_string", b"")
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.route: Route | None = None
        self.holder, self.fault = ANONYMOUS, ""

    @property
    def route_path(self) -> str:
        """The route's path with its {names}, for metrics and logs; empty if there is no route."""
        return "" if self.route is None else self.route.path

    def authenticate(self, keys: AccessKeys) -> KeyHolder:
        """Return the holder of the request's key."""
        scheme, _, value = self.headers.get(b"authorization", b"").partition(b" ")
        key = value if scheme.lower() == b"bearer" else b""
        holder = keys.authenticate(key) if key else None
        if holder is None:
            problem = "the key is unknown or revoked" if key else "the request has no key"
            raise HTTPError(
                401,
                ErrorCode.UNAUTHORIZED,
                f"{problem}; send one as Authorization: Bearer sw_...",
                ((b"www-authenticate", b"Bearer"),),
            )
        self.holder = holder
        return holder

    def build_not_found(self, allowed: list[str]) -> HTTPError:
        """Return the error of a path that does not exist, or not with this method."""
        if not allowed:
            return HTTPError(404, ErrorCode.NOT_FOUND, "no route has this path; GET /openapi.json lists the routes")
        methods = ", ".join(allowed)
        return HTTPError(
            405,
            ErrorCode.METHOD_NOT_ALLOWED,
            f"the method {self.method[:20]} is not allowed here; use {methods}",
            ((b"allow", methods.encode()),),
        )

    def fail(self, error: Exception, request_id: str) -> RouteResponse:
        """Record a bug and return its response, which has no details."""
        self.record(error)
        message = f"the server failed; its log has details under {request_id}"
        return error_response(HTTPError(500, ErrorCode.INTERNAL_ERROR, message))

    def record(self, error: Exception) -> None:
        """Store the location of a bug for the log."""
        self.fault = format_error_location(error)
