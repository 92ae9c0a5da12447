"""Types of a route: its request, its response and its error."""

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import LONGEST, fit_line
from stagewise.server.access_keys import AccessKeys, KeyHolder
from stagewise.server.messages import ErrorResponse

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.web.rate_limit import RateLimiter

JSON = b"application/json"
MAX_BODY_BYTES = 1 << 20  # default of a route
Headers = tuple[tuple[bytes, bytes], ...]

_encode_json = msgspec.json.Encoder(order="deterministic").encode  # equal values are encoded to equal bytes


class RouteRequest(NamedTuple):
    """An authenticated request with its complete body."""

    server: "DecisionServer"
    keys: AccessKeys
    rate_limiter: "RateLimiter"
    holder: KeyHolder
    path_params: tuple[str, ...]
    """The values of the route's {names}, in their order."""
    query: bytes = b""
    body: bytes = b""

    def charge(self, calls: int) -> None:
        """Charge the key's rate limit for the items of a batch; the first is already charged."""
        self.rate_limiter.take(self.holder.name, calls - 1, time.monotonic())


class RouteResponse(NamedTuple):
    """Status, body and headers of a response."""

    status: int
    body: bytes
    kind: bytes = JSON
    headers: Headers = ()


class HTTPError(Exception):
    """An error response: status, code and one sentence."""

    def __init__(self, status: int, code: ErrorCode, message: str, headers: Headers = ()) -> None:
        super().__init__(fit_line(message, LONGEST))
        self.status, self.code, self.headers = status, code, headers


def json_response(value: Any, status: int = 200) -> RouteResponse:
    """Return a JSON response."""
    return RouteResponse(status, _encode_json(value))


def error_response(error: HTTPError) -> RouteResponse:
    """Return the response of an error."""
    return json_response(ErrorResponse(error.code, str(error)), error.status)._replace(headers=error.headers)
