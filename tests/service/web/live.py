"""The real desk on a port of this machine, in a thread."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.service.web.real import Real

import stagewise as sw
from stagewise.service.web.serving import Server, address_of, listener


class Live(NamedTuple):
    """Where it is, and who may."""

    address: str
    admin: str
    writer: str
    reader: str
    desk: Real


@contextmanager
def live(place: Path | str, played: sw.Problem | None = None) -> Iterator[Live]:
    """Serve a desk on a file in a folder, or at an address, and stop it."""
    there, listening, begun = Real(place, played), listener("127.0.0.1", 0), threading.Event()
    server = Server(there.app, begun.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        assert begun.wait(20.0)
        yield Live(address_of(listening), there.admin.key, there.writer.key, there.reader.key, there)
    finally:
        server.should_exit = True
        thread.join()
