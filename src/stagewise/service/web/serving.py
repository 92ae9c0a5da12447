"""A desk on a port, until it is told to stop: it takes no more, finishes what it has, writes it, and ends well."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import uvicorn

from stagewise.problem.errors import StagewiseError
from stagewise.service.keys import Keys
from stagewise.service.web.app import App, Settings
from stagewise.service.web.connection import Connection
from stagewise.service.web.log import said_in_lines

if TYPE_CHECKING:
    from stagewise.service.desk import Desk

STOPS = (signal.SIGTERM, signal.SIGINT)
GRACE = 5  # seconds for requests that are under way
SWITCH = 0.001  # seconds that a thread may keep the interpreter while others wait for it
RARELY = (20_000, 20, 20)  # objects, and looks, between two looks for garbage
KEPT = 75  # seconds that an idle connection stays open


class NotServed(StagewiseError):
    """The desk could not start."""


class Server(uvicorn.Server):
    """uvicorn, stopped by its event loop: the process ends with 0, and not by the signal."""

    def __init__(self, app: App, started: Callable[[], None] | None = None) -> None:
        self._tell = started
        logging.getLogger("uvicorn.error").addFilter(untold)
        super().__init__(
            uvicorn.Config(
                app, http=Connection, loop="uvloop", ws="none", lifespan="on", proxy_headers=False, server_header=False,
                access_log=False, log_config=None, log_level="error", timeout_keep_alive=KEPT,
                timeout_graceful_shutdown=GRACE,
            )
        )  # fmt: skip

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        attentive()
        if self.started and self._tell is not None:
            self._tell()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop by a signal, where this is the thread that signals come to."""
        here = threading.current_thread() is threading.main_thread()
        loop = asyncio.get_running_loop()
        for number in STOPS if here else ():
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in STOPS if here else ():
                loop.remove_signal_handler(number)


def untold(record: logging.LogRecord) -> bool:
    """Say whether a line of uvicorn's is news: that a desk did not start is said by `serve`, with the reason."""
    return record.msg != "Application startup failed. Exiting."


def attentive() -> None:
    """Have this process answer evenly: who waits for the interpreter has it soon, and what is there stays unlooked at.

    Modules and machine code are half a million objects; to look through them for garbage takes a tenth of a second. And
    what a request leaves behind refers to nothing that refers to it: to look every 700 objects finds none.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*RARELY)
    sys.setswitchinterval(SWITCH)


def serve(
    desk: "Desk",
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    keys: Keys | None = None,
    settings: Settings | None = None,
    prepare: Callable[[], Awaitable[None]] | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a desk until SIGTERM or Ctrl+C.

    Args:
        desk: Not started yet; it is stopped at the end, with its store.
        host: The address to listen at.
        port: The port; 0: any that is free.
        keys: The keys of the desk's store, where somebody made them already.
        settings: Rates, the log of requests, Personalizer's experiment.
        prepare: Called once the desk runs and before anybody is answered, to open experiments.
        started: Called with the address of the desk once it answers.
    """
    with listener(host, port) as listening, said_in_lines():
        app = App(desk, Keys(desk.store) if keys is None else keys, settings, prepare)
        server = Server(app, None if started is None else lambda: started(address_of(listening)))
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_until_stopped(server, listening))
    if app.failed:
        raise NotServed(app.failed)


async def _until_stopped(server: Server, listening: socket.socket) -> None:
    with contextlib.suppress(SystemExit):  # uvicorn's word for a desk that did not start
        await server.serve([listening])


def listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except OSError as error:
        raise NotServed(f"nothing can listen at {host}, port {port}: {error.strerror or error}") from None


def address_of(listening: socket.socket) -> str:
    """Return the address of a socket as a browser takes it."""
    place: tuple[Any, ...] = listening.getsockname()
    return f"http://[{place[0]}]:{place[1]}" if ":" in place[0] else f"http://{place[0]}:{place[1]}"
