"""Requests over connections that are kept open, each within a time."""

import http.client
import json
import os
import socket
import threading
import time
from typing import Any, NamedTuple
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


class Wire:
    """Connections to one address: whoever asks takes a free one, or opens another."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StagewiseError(f"url is {shown(url)}; it must be the desk's address, such as http://127.0.0.1:8000")
        if not isinstance(key, str) or not key.isascii() or not key.isprintable():
            raise StagewiseError("the key holds characters that no key has; give it as `stagewise keys` printed it")
        self.url, self.path = url.rstrip("/"), parts.path.rstrip("/")
        self._make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port = parts.hostname, parts.port
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
        return self._make(self._host, self._port), False

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._free.append(connection)

    def _sent(
        self, connection: http.client.HTTPConnection, path: str, body: bytes, until: float
    ) -> tuple[Answer, bool]:
        connection.timeout = left(until)
        if connection.sock is None:
            connection.connect()
        connection.sock.settimeout(left(until))
        connection.request("POST", path, body, self._headers)
        connection.sock.settimeout(left(until))
        response = connection.getresponse()
        parts, size = [], 0
        while part := response.read1(2**16):
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                raise http.client.HTTPException(f"its answer is larger than {LARGEST} bytes")
            if connection.sock is not None:
                connection.sock.settimeout(left(until))
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
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if status == 200:
        words = "the desk's answer cannot be read"
    elif isinstance(content, dict) and isinstance(content.get("error"), str):
        words = content["error"]
    else:
        words = f"the desk answered with status {status}"
    return Answer(status, content, one_line(words, 399))


def reason(error: Exception) -> str:
    """Return why a connection failed."""
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return getattr(error, "strerror", None) or one_line(str(error), 120) or type(error).__name__
