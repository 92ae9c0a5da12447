"""One line of JSON for each request: never a body, never a key."""

import sys
from collections.abc import Callable
from typing import TextIO

import msgspec

_encoded = msgspec.json.Encoder().encode


class Line(msgspec.Struct, omit_defaults=True):
    """What is said of a request."""

    at: float
    id: str
    route: str
    status: int
    ms: float
    key: str = ""
    error: str = ""


class RequestLog:
    """Lines that are written a moment later and together, so that no answer waits for them."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lines: list[bytes] = []

    def add(self, line: Line, later: Callable[[float, Callable[[], None]], object]) -> None:
        """Add a line; `later` calls after so many seconds."""
        if not self._lines:
            later(0.2, self.flush)
        self._lines.append(_encoded(line))

    def flush(self) -> None:
        """Write what was added."""
        lines, self._lines = self._lines, []
        if lines:
            self._stream.write("".join(f"{line.decode()}\n" for line in lines))
            self._stream.flush()
