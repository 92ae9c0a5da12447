"""HTTP connections of the client: kept open, with one deadline for all of a request, and read as answers.

They need only the standard library.
"""

import http.client
import json
import os
import socket
import sys
import time
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import fit_line

MAX_RESPONSE_BYTES = 1 << 24


class Answer(NamedTuple):
    """An HTTP response; status 0: there was none that could be read."""

    status: int
    content: Any
    problem: str
    """What is wrong, as a sentence."""
    sent: bool = True
    """Whether the server may have received the request."""

    def get_list(self, count: int) -> list[Any] | None:
        """Return the items of a response to a batch; None if they are not so many."""
        return self.content if isinstance(self.content, list) and len(self.content) == count else None


class DeadlineSocket:
    """A mixin of sockets that read until a deadline, since a peer can send one byte within each timeout."""

    until = 0.0

    def recv_into(self, *args: Any) -> int:
        """Read, within the time that is left."""
        self.settimeout(remaining_seconds(self.until))  # type: ignore[attr-defined]
        return super().recv_into(*args)  # type: ignore[misc, no-any-return]


class PlainSocket(DeadlineSocket, socket.socket):
    """A TCP socket with a deadline."""


def inject_trace(headers: dict[str, str]) -> dict[str, str]:
    """Return headers with the caller's trace, so that the server's span belongs to it.

    A program that has not imported OpenTelemetry's API has no current span.
    """
    from opentelemetry.propagate import inject

    carrier = dict(headers)
    inject(carrier)
    return carrier


class ConnectionPool:
    """Connections to one server; a request takes a free one, or opens another."""

    def __init__(self, url: str, key: str) -> None:
        try:
            parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
            host, port = parts.hostname, parts.port
        except ValueError:  # unbalanced brackets, or a port that is not a number
            host = port = None
        if not host or parts.scheme not in ("http", "https"):
            rule = "the server's address, such as http://127.0.0.1:8000"
            raise StagewiseError.must_be(ErrorCode.INVALID_ADDRESS, "url", url, rule)
        if not isinstance(key, str) or not key.isascii() or not key.isprintable():
            problem = "the key contains invalid characters; give it as `stagewise keys` printed it"
            raise StagewiseError(ErrorCode.UNAUTHORIZED, problem)
        self._tls: Any = None
        if parts.scheme == "https":
            import ssl  # optional in Python

            self._tls = ssl.create_default_context()
            self._tls.sslsocket_class = type("TLSSocket", (DeadlineSocket, ssl.SSLSocket), {})
        self.url, self._path, self._host = url, parts.path.rstrip("/"), host
        self._port = port or (443 if self._tls else 80)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._free: list[http.client.HTTPConnection] = []
        self._process = os.getpid()

    def send(self, path: str, body: bytes | None, until: float) -> Answer:
        """Send a body, or read a path, and return the response, by the deadline `until` (of time.monotonic)."""
        if self._process != os.getpid():  # after a fork the parent's connections are not ours
            self._free, self._process = [], os.getpid()
        connection, is_reused = self._take()
        try:
            if connection.sock is None:
                connection.sock = self._connect(until)
            connection.sock.until = until
            connection.sock.settimeout(remaining_seconds(until))
            headers = self._headers if "opentelemetry.trace" not in sys.modules else inject_trace(self._headers)
            connection.request("GET" if body is None else "POST", self._path + path, body, headers)
            response = connection.getresponse()
            text = response.read(MAX_RESPONSE_BYTES + 1)
            if len(text) > MAX_RESPONSE_BYTES:
                raise http.client.HTTPException(f"its response is larger than {MAX_RESPONSE_BYTES} bytes")
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            if is_reused and isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)):
                # most likely the server closed the idle connection; if not, the id makes the retry safe
                return self.send(path, body, until)._replace(sent=True)
            reason = getattr(error, "strerror", None) or fit_line(str(error), 120) or type(error).__name__
            reason = "it did not answer in time" if isinstance(error, TimeoutError) else reason
            sent = not isinstance(error, (ConnectionRefusedError, socket.gaierror))
            return Answer(0, None, f"the server at {self.url} cannot be reached: {reason}", sent)
        except BaseException:  # part of a response may be left in it
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._free.append(connection)
        return parse_answer(response.status, text)

    def close(self) -> None:
        while self._free:
            self._free.pop().close()

    def _take(self) -> tuple[Any, bool]:
        """Return a connection, and whether it is reused."""
        try:
            return self._free.pop(), True
        except IndexError:
            return http.client.HTTPConnection(self._host, self._port), False

    def _connect(self, until: float) -> Any:
        """Return a socket that is connected to the first of the host's addresses that accepts."""
        sock = PlainSocket(fileno=socket.create_connection((self._host, self._port), remaining_seconds(until)).detach())
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(remaining_seconds(until))
            return sock if self._tls is None else self._tls.wrap_socket(sock, server_hostname=self._host)
        except BaseException:  # the deadline passed while it connected, or the certificate is not trusted
            sock.close()
            raise


def remaining_seconds(until: float) -> float:
    """Return the seconds until a deadline; raise TimeoutError after it."""
    seconds = until - time.monotonic()
    if seconds <= 0.0:
        raise TimeoutError("timed out")
    return seconds


def parse_answer(status: int, text: bytes) -> Answer:
    """Return the content of a response, and the message of an error."""
    try:
        content = json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        content = None
    problem = f"the server answered with status {status}" if status != 200 else "the server's answer cannot be read"
    if status != 200 and isinstance(content, dict) and isinstance(content.get("message"), str):
        problem = content["message"]
    return Answer(status, content, fit_line(problem, 399))


def reject_constant(text: str) -> NoReturn:
    """Reject NaN and infinities, which are not JSON."""
    raise ValueError(text)
