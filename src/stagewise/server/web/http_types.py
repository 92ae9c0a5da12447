"""Types of a route: its request, its response and its error."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import LONGEST, fit_line
from stagewise.server.access_keys import AccessKeys, KeyHolder
from stagewise.server.event_log import AppendRequest, AppendResult
from stagewise.server.messages import ErrorResponse
from stagewise.server.store.base import StoreUnavailable

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


class HasAppendRequest(Protocol):
    """A request that appends one row to the log."""

    @property
    def append_request(self) -> AppendRequest:
        """The row to append."""


class FastHandler(Protocol):
    """The fast path of a route whose requests append one row each: read each, prepare all, answer each."""

    def read(self, server: "DecisionServer", path_params: tuple[str, ...], body: bytes) -> Any:
        """Parse a request; None or any exception: use the regular path."""

    def prepare(self, requests: Sequence[Any]) -> Sequence[HasAppendRequest | None]:
        """Return the rows to append for parsed requests; None: use the regular path for that one."""

    def build_response(self, prepared: Any, result: AppendResult | StoreUnavailable) -> RouteResponse | None:
        """Return the response to a request whose row was appended or failed; None: use the regular path."""


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
