"""Running the server on a port, with a graceful shutdown: it finishes open requests and writes them."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.server.access_keys import AccessKeys
from stagewise.server.web.app import App, HttpSettings
from stagewise.server.web.requests import log_as_json

if TYPE_CHECKING:
    from stagewise.server.decision_server import DecisionServer

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SHUTDOWN_TIMEOUT = 5  # seconds for open requests
SWITCH_INTERVAL = 0.001  # seconds after which a thread must release the interpreter
GC_THRESHOLDS = (20_000, 20, 20)  # allocations and collections between two garbage collections
KEEP_ALIVE_TIMEOUT = 75  # seconds that an idle connection stays open
MAX_HEAD_BYTES = 1 << 16  # of a request head
REQUEST_TIMEOUT = 15.0  # seconds between two checks of an incomplete request; the second closes the connection


class ServerStartError(StagewiseError):
    """The server could not start."""


class Connection(HttpToolsProtocol):
    """Closes a connection whose request head is too large or whose request does not end; neither needs a key."""

    head_size = -1  # bytes of the incomplete head of the current request; -1: there is none
    in_request = True  # a connection that never sends anything does not end a request either
    request_count = 0
    check_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, with a periodic check for an incomplete request."""
        super().connection_made(transport)
        self._check_progress(-1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.check_timer is not None:
            self.check_timer.cancel()
        super().connection_lost(exc)

    def _check_progress(self, previous: int) -> None:
        """Close the connection if it is within the same request as at the last check."""
        current = self.request_count if self.in_request else -1
        if current >= 0 and current == previous:
            self.transport.close()
        else:
            self.check_timer = self.loop.call_later(REQUEST_TIMEOUT, self._check_progress, current)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, in pieces of at most the size of a head; only bytes of a head count towards its maximum."""
        for start in range(0, len(data), MAX_HEAD_BYTES):
            if self.parser is None or self.transport.is_closing():  # the connection is lost or was rejected
                return
            piece, count = data[start : start + MAX_HEAD_BYTES], self.request_count
            super().data_received(piece)
            if self.head_size >= 0 and count == self.request_count:  # all of the piece belongs to one head
                self.head_size += len(piece)
                if self.head_size > MAX_HEAD_BYTES:
                    self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head_size, self.in_request = 0, True
        self.request_count += 1

    def on_headers_complete(self) -> None:
        """Continue with the body of a request."""
        self.head_size = -1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a request."""
        self.in_request = False
        super().on_message_complete()


class HttpServer(uvicorn.Server):
    """uvicorn, stopped from its event loop, so that the process exits with 0 and not by the signal."""

    def __init__(self, app: App, on_start: Callable[[], None] | None = None) -> None:
        self._on_start = on_start
        logging.getLogger("uvicorn.error").addFilter(is_unreported)
        super().__init__(
            uvicorn.Config(
                app, http=Connection, loop="uvloop", ws="none", lifespan="on", proxy_headers=False, server_header=False,
                access_log=False, log_config=None, log_level="error", timeout_keep_alive=KEEP_ALIVE_TIMEOUT,
                timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
            )
        )  # fmt: skip

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call `on_start`."""
        await super().startup(sockets)
        tune_process()
        if self.started and self._on_start is not None:
            self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal, if this is the main thread."""
        is_main = threading.current_thread() is threading.main_thread()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS if is_main else ():
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in STOP_SIGNALS if is_main else ():
                loop.remove_signal_handler(number)


def is_unreported(record: logging.LogRecord) -> bool:
    """Return whether to log a line of uvicorn; `serve` reports a failed start itself, with the reason."""
    return record.msg != "Application startup failed. Exiting."


def tune_process() -> None:
    """Reduce latency peaks: switch threads sooner, and exclude existing objects from garbage collection.

    Modules and machine code are half a million objects; a collection over them takes a tenth of a second. Requests
    leave no reference cycles, so that frequent collections find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL)


def serve(
    server: "DecisionServer",
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    reuse_port: bool = False,
    keys: AccessKeys | None = None,
    settings: HttpSettings | None = None,
    prepare: Callable[[], Awaitable[None]] | None = None,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl+C.

    Args:
        server: The decision server, not started; it is stopped at the end, with its store.
        host: The address to listen on.
        port: The port; 0 is any free port.
        reuse_port: Whether other processes may listen on the same port; the system divides connections among them.
        keys: The keys of the server's store; None: read from the store.
        settings: Rate limit, request log and public address.
        prepare: Called after the server has started and before the first request, to open experiments.
        on_start: Called with the server's address once it accepts requests.
    """
    with open_listener(host, port, reuse_port) as listener, log_as_json():
        app = App(server, AccessKeys(server.store) if keys is None else keys, settings, prepare)
        http_server = HttpServer(app, None if on_start is None else lambda: on_start(format_address(listener)))
        with asyncio.Runner(loop_factory=http_server.config.get_loop_factory()) as runner:
            runner.run(_run(http_server, listener))
    if app.start_error:
        raise ServerStartError(ErrorCode.SERVER_NOT_STARTED, "{problem}", problem=app.start_error)


async def _run(http_server: HttpServer, listener: socket.socket) -> None:
    with contextlib.suppress(SystemExit):  # uvicorn exits if the server does not start
        await http_server.serve([listener])


def open_listener(host: str, port: int, reuse_port: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048, reuse_port=reuse_port)
    except OSError as error:
        problem = f"the server cannot listen at {host}, port {port}: {error.strerror or error}"
        raise ServerStartError(ErrorCode.SERVER_NOT_STARTED, "{problem}", problem=problem) from None


def format_address(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
