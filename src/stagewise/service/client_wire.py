"""Requests over connections that are kept open, each exchange with one deadline.

Every operation on the socket gets the time that is left, and no more: the timeout of a socket bounds one read, and a
peer that sends one byte at a time has as many as it likes. Only the look-up of a host name is the system's, which
cannot be cut short: give an address, or a resolver with a timeout of its own, where that matters.
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

from stagewise.problem.errors import StagewiseError
from stagewise.problem.words import one_line, shown

LARGEST = 16 * 2**20  # bytes of an answer


class Unreached(Exception):
    """Nobody answered."""


class Answer(NamedTuple):
    """What came back; status 0: nothing that could be read."""

    status: int
    content: Any
    words: str
    """What is wrong with it, in a sentence."""
    sent: bool = True
    """Whether the other side can have got the request."""


class Timed:
    """A socket whose every operation ends by `until` (of time.monotonic): what `http.client` asks of a socket."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self.sock, self.until = sock, until

    def sendall(self, data: Any) -> None:
        """Send all of it."""
        view = memoryview(data).cast("B")
        while view:
            self.sock.settimeout(left(self.until))
            view = view[self.sock.send(view) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return what is received as a file."""
        return io.BufferedReader(Received(self, self.sock.makefile(mode, buffering=0)))  # type: ignore[call-overload]

    def close(self) -> None:
        """Let go of it, once what is received was read."""
        self.sock.close()


class Received(io.RawIOBase):
    """What a timed socket receives."""

    def __init__(self, timed: Timed, raw: io.RawIOBase) -> None:
        self._timed, self._raw = timed, raw

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Receive what there is, within the time that is left."""
        self._timed.sock.settimeout(left(self._timed.until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Let go of the socket."""
        self._raw.close()
        super().close()


class Wire:
    """Connections to one address: whoever asks takes a free one, or opens another."""

    def __init__(self, url: str, key: str) -> None:
        try:
            parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
            host, port = parts.hostname, parts.port
        except ValueError:  # brackets that do not close, a port that is no number
            host = port = None
        if not host or parts.scheme not in ("http", "https"):
            raise StagewiseError(f"url is {shown(url)}; it must be the desk's address, such as http://127.0.0.1:8000")
        if not isinstance(key, str) or not key.isascii() or not key.isprintable():
            raise StagewiseError("the key holds characters that no key has; give it as `stagewise keys` printed it")
        self.url, self.path = url.rstrip("/"), parts.path.rstrip("/")
        self._safe = None
        if parts.scheme == "https":
            import ssl  # a Python may have none

            self._safe = ssl.create_default_context()
        self._host, self._port = host, port
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._free: list[http.client.HTTPConnection] = []
        self._lock, self._process = threading.Lock(), os.getpid()

    def post(self, path: str, body: bytes, until: float) -> Answer:
        """Send a body and return what is answered before the time `until` (of time.monotonic)."""
        connection, kept = self._taken()
        try:
            answer, stays = self._sent(connection, path, body, until)
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            if kept and isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)):
                # it was closed while nobody used it, most likely; where it was not, the same id is asked for again
                return self.post(path, body, until)._replace(sent=True)
            sent = not isinstance(error, (ConnectionRefusedError, socket.gaierror))
            return Answer(0, None, f"the desk at {self.url} cannot be reached: {reason(error)}", sent)
        except BaseException:  # half an answer may be left in it
            connection.close()
            raise
        self._give(connection) if stays else connection.close()
        return answer

    def close(self) -> None:
        """Close what is free."""
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()

    def _taken(self) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it was in use before; after a fork the parent's are left alone."""
        with self._lock:
            if self._process != os.getpid():
                self._free, self._process = [], os.getpid()
            if self._free:
                return self._free.pop(), True
        if self._safe is None:
            return http.client.HTTPConnection(self._host, self._port), False
        return http.client.HTTPSConnection(self._host, self._port, context=self._safe), False

    def _opened(self, host: str, port: int, until: float) -> socket.socket:
        """Return a socket that is connected, to the first of the host's addresses that takes it."""
        places, failed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), OSError(f"{host} has no address")
        for turn, (family, kind, protocol, _, place) in enumerate(places):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(left(until) / (len(places) - turn))  # one that is silent leaves time for the others
                sock.connect(place)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(left(until))
                return sock if self._safe is None else self._safe.wrap_socket(sock, server_hostname=host)
            except OSError as error:
                sock.close()
                failed = error
            except BaseException:
                sock.close()
                raise
        raise failed

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._free.append(connection)

    def _sent(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, until: float
    ) -> tuple[Answer, bool]:
        timed: Any = connection.sock
        if timed is None:
            timed = connection.sock = Timed(self._opened(connection.host, connection.port, until), until)
        timed.until = until
        connection.request("POST", path, body, self._headers)
        response = connection.getresponse()
        parts, size = [], 0
        while part := response.read1(2**16):
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                raise http.client.HTTPException(f"its answer is larger than {LARGEST} bytes")
        response.read()  # nothing is left of it; only now the connection takes another request
        return read(response.status, b"".join(parts)), not response.will_close


def left(until: float) -> float:
    """Return the seconds that are left."""
    seconds = until - time.monotonic()
    if seconds <= 0.0:
        raise TimeoutError("timed out")
    return seconds


def read(status: int, body: bytes) -> Answer:
    """Return an answer, with what is wrong with it where something is."""
    try:
        content = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        content = None
    if status == 200:
        words = "the desk's answer cannot be read"
    elif isinstance(content, dict) and isinstance(content.get("error"), str):
        words = content["error"]
    else:
        words = f"the desk answered with status {status}"
    return Answer(status, content, one_line(words, 399))


def refuse(word: str) -> NoReturn:
    """Refuse NaN and infinities, which are no JSON: a desk sends none."""
    raise ValueError(word)


def reason(error: Exception) -> str:
    """Return why a connection failed."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return getattr(error, "strerror", None) or one_line(str(error), 120) or type(error).__name__
