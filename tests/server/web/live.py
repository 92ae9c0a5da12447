"""The real desk on a port of this machine, in a thread."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.server.web.real import Real

import stagewise as sw
from stagewise.server.web.http_server import HttpServer, format_address, open_listener


class Live(NamedTuple):
    """Where it is, and who may."""

    address: str
    admin: str
    writer: str
    reader: str
    desk: Real


def run(server: HttpServer, listening: socket.socket) -> None:
    """Serve by the loop that desks have."""
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve([listening]))


@contextmanager
def live(place: Path | str, played: sw.Problem | None = None) -> Iterator[Live]:
    """Serve a desk on a file in a folder, or at an address, and stop it."""
    there, listening, begun = Real(place, played), open_listener("127.0.0.1", 0), threading.Event()
    server = HttpServer(there.app, begun.set)
    thread = threading.Thread(target=run, args=(server, listening))
    thread.start()
    try:
        assert begun.wait(20.0)
        yield Live(format_address(listening), there.admin.key, there.writer.key, there.reader.key, there)
    finally:
        server.should_exit = True
        thread.join()
