"""Lines of JSON: one for each request, one for each failure. Never a body, never a key, never the words of an error.

An error's words may hold what a user sent, so a failure is told by its kind and its place in the code.
"""

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TextIO

import msgspec

OURS = "stagewise."
ASKED = ContextVar("request", default="")
"""The id of the request that is being answered."""

log = logging.getLogger("stagewise.desk")

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


class Trouble(msgspec.Struct, omit_defaults=True):
    """What is said of a failure, or of something that a person should know."""

    at: float
    level: str
    said: str
    id: str = ""
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


class Lines(logging.Handler):
    """Writes whatever is logged in this process."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; of others' loggers the name alone, because their messages may hold what was sent."""
        with contextlib.suppress(Exception):  # a log that cannot be written ends nothing else
            said = record.getMessage() if record.name.startswith(OURS) else f"a failure in {record.name}"
            line = Trouble(record.created, record.levelname.lower(), said, ASKED.get(), fault_in(record))
            sys.stderr.write(f"{_encoded(line).decode()}\n")
            sys.stderr.flush()


def fault_in(record: logging.LogRecord) -> str:
    """Return the kind of error that a record tells of, and its place in the code.

    Libraries often log an error among the arguments of a message, never raised in our sight: then the place is where
    it was logged. What tells of no error says where it was logged, if it is another's, whose words are left out.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is not None and error.__traceback__ is not None:
        return fault_of(error)
    told = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
    error = error or next((value for value in told if isinstance(value, BaseException)), None)
    if error is None and record.name.startswith(OURS):
        return ""
    kind = "no exception" if error is None else type(error).__name__
    return f"{kind} at {record.module}.{record.funcName}:{record.lineno}"


def fault_of(error: BaseException | None) -> str:
    """Return the kind of an error and its place in the code; its words are left out."""
    if error is None:
        return ""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    at = "" if step is None else f" at {step.tb_frame.f_code.co_qualname}:{step.tb_lineno}"
    return f"{type(error).__name__}{at}"


@contextlib.contextmanager
def said_in_lines() -> Iterator[None]:
    """Have all loggers of this process say what they say in lines of JSON, and threads that fail as well."""
    lines, before = Lines(), threading.excepthook

    def failed(told: threading.ExceptHookArgs) -> None:
        log.error("a thread failed", exc_info=told.exc_value)

    logging.getLogger().addHandler(lines)
    threading.excepthook = failed
    try:
        yield
    finally:
        logging.getLogger().removeHandler(lines)
        threading.excepthook = before
