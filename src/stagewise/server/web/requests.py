"""An authenticated request, what is checked before, its response or error, and its line in the request log.

The text of an exception may contain user data, so a failure is logged by its type and its position in the code.
"""

import asyncio
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import LONGEST, fit_line, make_sentence
from stagewise.server.access_keys import AccessKeys, KeyHolder, UnknownKey
from stagewise.server.messages import Conflict, ErrorResponse, UnknownDecision, UnknownExperiment
from stagewise.server.store.base import StoreUnavailable

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer
    from stagewise.server.web.telemetry import Telemetry

Headers = tuple[tuple[bytes, bytes], ...]

STATUS = {UnknownExperiment: 404, UnknownDecision: 404, UnknownKey: 404, Conflict: 409, StoreUnavailable: 503}
"""Statuses by exception class; every other StagewiseError is 422."""
BODY_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
RETRY_AFTER: Headers = ((b"retry-after", b"1"),)


class HTTPError(Exception):
    """An error response: status, code and one sentence."""

    def __init__(self, status: int, code: ErrorCode, template: str, headers: Headers = (), /, **details: Any) -> None:
        super().__init__(fit_line(make_sentence(template, details), LONGEST))
        self.status, self.code, self.headers, self.details = status, code, headers, details

    def to_message(self) -> ErrorResponse:
        return ErrorResponse(self.code, str(self))


EXPECTED_ERRORS = (HTTPError, StagewiseError, *BODY_ERRORS)


def to_http_error(error: Exception) -> HTTPError:
    if isinstance(error, HTTPError):
        return error
    if isinstance(error, StagewiseError):
        status = STATUS.get(type(error), 422)
        return HTTPError(status, error.code, error.template, RETRY_AFTER if status == 503 else (), **error.details)
    if isinstance(error, msgspec.ValidationError):
        message = "the body is invalid: {error}"
        return HTTPError(422, ErrorCode.INVALID_REQUEST, message, error=str(error).replace(" - at ", " at "))
    problem = (
        "not UTF-8 text"
        if isinstance(error, UnicodeDecodeError)
        else "nested too deeply"
        if isinstance(error, RecursionError)
        else f"not JSON: {error}"
    )
    return HTTPError(400, ErrorCode.INVALID_JSON, "the body is {problem}", problem=problem)


LOGGER_PREFIX = "stagewise."
REQUEST_ID = ContextVar("request", default="")
"""The id of the current request."""

log = logging.getLogger("stagewise.server")

_encode_json = msgspec.json.Encoder().encode


class LogLine(msgspec.Struct, omit_defaults=True):
    """A line of the log: of a request, or, with a level and a message, of a failure or another event."""

    at: float
    id: str = ""
    route: str = ""
    status: int = 0
    ms: float = 0.0
    key: str = ""
    error: str = ""
    level: str = ""
    message: str = ""

    def write(self) -> None:
        sys.stderr.write(f"{_encode_json(self).decode()}\n")
        sys.stderr.flush()


class JsonLogHandler(logging.Handler):
    """Writes log records of this process as JSON lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; of other packages only the logger's name, because messages may contain user data."""
        with contextlib.suppress(Exception):  # an unwritable log must not stop the server
            message = record.getMessage() if record.name.startswith(LOGGER_PREFIX) else f"a failure in {record.name}"
            level, error = record.levelname.lower(), get_record_error(record)
            LogLine(record.created, REQUEST_ID.get(), level=level, message=message, error=error).write()


def get_record_error(record: logging.LogRecord) -> str:
    """Return the type of a record's exception and its position in the code.

    Libraries often log an exception as an argument of a message, without a traceback: then the position is where it was
    logged. A record of another package without an exception has its position only, since its message is left out.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is not None and error.__traceback__ is not None:
        return format_error_location(error)
    values = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
    error = error or next((value for value in values if isinstance(value, BaseException)), None)
    if error is None and record.name.startswith(LOGGER_PREFIX):
        return ""
    kind = "no exception" if error is None else type(error).__name__
    return f"{kind} at {record.module}.{record.funcName}:{record.lineno}"


def format_error_location(error: BaseException) -> str:
    """Return the type of an exception and its position in the code, without its text."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    location = "" if frame is None else f" at {frame.tb_frame.f_code.co_qualname}:{frame.tb_lineno}"
    return f"{type(error).__name__}{location}"


@contextlib.contextmanager
def log_as_json() -> Iterator[None]:
    """Log everything in this process as JSON lines, including exceptions of threads."""
    handler, previous = JsonLogHandler(), threading.excepthook

    def log_thread_error(arguments: threading.ExceptHookArgs) -> None:
        log.error("a thread failed", exc_info=arguments.exc_value)

    logging.getLogger().addHandler(handler)
    threading.excepthook = log_thread_error
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        threading.excepthook = previous


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
