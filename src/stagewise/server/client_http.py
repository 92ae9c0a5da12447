"""HTTP requests over persistent connections, with one deadline for each request.

A socket's timeout limits one operation only, so a server that sends one byte at a time could hold a client for ever.
Here every operation gets the time that is left. Only DNS lookups are the operating system's and cannot be interrupted.
"""

import http.client
import io
import json
import os
import socket
import threading
import time
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import fit_line, safe_repr

MAX_RESPONSE_BYTES = 16 * 2**20


class ConnectionFailed(Exception):
    """The server did not answer."""


class HttpResponse(NamedTuple):
    """A response; status 0: there was none that could be read."""

    status: int
    content: Any
    message: str
    """The error as a sentence."""
    sent: bool = True
    """Whether the server may have received the request."""


class DeadlineSocket:
    """A socket for `http.client` whose operations all end by `until` (of time.monotonic)."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self.sock, self.until = sock, until

    def sendall(self, data: Any) -> None:
        """Send all bytes."""
        view = memoryview(data).cast("B")
        while view:
            self.sock.settimeout(remaining_seconds(self.until))
            view = view[self.sock.send(view) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file that reads from the socket."""
        return io.BufferedReader(DeadlineReader(self, self.sock.makefile(mode, buffering=0)))  # type: ignore[call-overload]

    def close(self) -> None:
        """Close the socket once its files are closed."""
        self.sock.close()


class DeadlineReader(io.RawIOBase):
    """A file that reads from a DeadlineSocket."""

    def __init__(self, sock: DeadlineSocket, raw: io.RawIOBase) -> None:
        self._sock, self._raw = sock, raw

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read into a buffer, within the time that is left."""
        self._sock.sock.settimeout(remaining_seconds(self._sock.until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()


class HttpConnectionPool:
    """Connections to one server; a request takes a free one, or opens another."""

    def __init__(self, url: str, key: str) -> None:
        try:
            parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
            host, port = parts.hostname, parts.port
        except ValueError:  # unbalanced brackets, or a port that is not a number
            host = port = None
        if not host or parts.scheme not in ("http", "https"):
            raise StagewiseError(
                ErrorCode.INVALID_ADDRESS,
                "url is {url}; it must be the server's address, such as http://127.0.0.1:8000",
                url=safe_repr(url),
            )
        if not isinstance(key, str) or not key.isascii() or not key.isprintable():
            raise StagewiseError(
                ErrorCode.UNAUTHORIZED, "the key contains invalid characters; give it as `stagewise keys` printed it"
            )
        self.url, self.path = url.rstrip("/"), parts.path.rstrip("/")
        self._ssl_context = None
        if parts.scheme == "https":
            import ssl  # optional in Python

            self._ssl_context = ssl.create_default_context()
        self._host, self._port = host, port
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._free: list[http.client.HTTPConnection] = []
        self._lock, self._process = threading.Lock(), os.getpid()

    def post(self, path: str, body: bytes, until: float) -> HttpResponse:
        """Send a body and return the response, by the deadline `until` (of time.monotonic)."""
        connection, is_reused = self._acquire()
        try:
            response, keep_alive = self._send(connection, path, body, until)
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            if is_reused and isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)):
                # most likely the server closed the idle connection; if not, the id makes the retry safe
                return self.post(path, body, until)._replace(sent=True)
            sent = not isinstance(error, (ConnectionRefusedError, socket.gaierror))
            return HttpResponse(0, None, f"the server at {self.url} cannot be reached: {describe_error(error)}", sent)
        except BaseException:  # part of a response may be left in it
            connection.close()
            raise
        self._release(connection) if keep_alive else connection.close()
        return response

    def close(self) -> None:
        """Close the free connections."""
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _acquire(self) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it is reused; after a fork the parent's are not."""
        with self._lock:
            if self._process != os.getpid():
                self._free, self._process = [], os.getpid()
            if self._free:
                return self._free.pop(), True
        if self._ssl_context is None:
            return http.client.HTTPConnection(self._host, self._port), False
        return http.client.HTTPSConnection(self._host, self._port, context=self._ssl_context), False

    def _connect(self, host: str, port: int, until: float) -> socket.socket:
        """Return a socket that is connected to the first of the host's addresses that accepts."""
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        last_error = OSError(f"{host} has no address")
        for i, (family, kind, protocol, _, address) in enumerate(addresses):
            sock = socket.socket(family, kind, protocol)
            try:
                # an address that does not answer leaves time for the others
                sock.settimeout(remaining_seconds(until) / (len(addresses) - i))
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(remaining_seconds(until))
                return sock if self._ssl_context is None else self._ssl_context.wrap_socket(sock, server_hostname=host)
            except OSError as error:
                sock.close()
                last_error = error
            except BaseException:
                sock.close()
                raise
        raise last_error

    def _release(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._free.append(connection)

    def _send(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, until: float
    ) -> tuple[HttpResponse, bool]:
        sock: Any = connection.sock
        if sock is None:
            sock = connection.sock = DeadlineSocket(self._connect(connection.host, connection.port, until), until)
        sock.until = until
        connection.request("POST", path, body, self._headers)
        response = connection.getresponse()
        parts, size = [], 0
        while part := response.read1(2**16):
            parts.append(part)
            size += len(part)
            if size > MAX_RESPONSE_BYTES:
                raise http.client.HTTPException(f"its response is larger than {MAX_RESPONSE_BYTES} bytes")
        response.read()  # the connection accepts the next request only after this
        return parse_response(response.status, b"".join(parts)), not response.will_close


def remaining_seconds(until: float) -> float:
    """Return the seconds until a deadline; raise TimeoutError after it."""
    seconds = until - time.monotonic()
    if seconds <= 0.0:
        raise TimeoutError("timed out")
    return seconds


def parse_response(status: int, body: bytes) -> HttpResponse:
    """Return a response, with a message for errors."""
    try:
        content = json.loads(body, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        content = None
    if status == 200:
        message = "the server's answer cannot be read"
    elif isinstance(content, dict) and isinstance(content.get("message"), str):
        message = content["message"]
    else:
        message = f"the server answered with status {status}"
    return HttpResponse(status, content, fit_line(message, 399))


def reject_constant(text: str) -> NoReturn:
    """Reject NaN and infinities, which are not JSON."""
    raise ValueError(text)


def describe_error(error: Exception) -> str:
    """Return why a connection failed, as text."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return getattr(error, "strerror", None) or fit_line(str(error), 120) or type(error).__name__
