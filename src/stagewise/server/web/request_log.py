"""The request log: a line of JSON for each request and each failure, without bodies, keys and texts of exceptions.

The text of an exception may contain user data, so a failure is logged by its type and its position in the code.
"""

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

import msgspec

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
