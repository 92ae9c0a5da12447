"""The real desk on a file, in this process, ready to be asked by HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.server.web.client import Client, running
from tests.server.web.fake import problem

import stagewise as sw
from stagewise.cli.server_startup import read_log
from stagewise.server.access_keys import AccessKeys
from stagewise.server.decision_server import DecisionServer
from stagewise.server.store.factory import open_store
from stagewise.server.web.app import App, HttpSettings


class Real:
    """Who is there."""

    def __init__(
        self, place: Path | str, played: sw.Problem | None = None, settings: HttpSettings | None = None
    ) -> None:
        self.played = played or problem()
        self.store = open_store(str(place / "desk.db") if isinstance(place, Path) else place)
        self.desk = DecisionServer(self.store, read_log=read_log)
        self.keys = AccessKeys(self.store)
        self.app = App(self.desk, self.keys, settings or HttpSettings(log=False), self.prepare)
        self.admin, self.writer, self.reader = (Client(self.app, key) for key in self.keys.create_initial_keys())

    async def prepare(self) -> None:
        """Open the experiment."""
        await self.desk.open("demo", self.played, "ada", "a test")

    def rows(self) -> list[Any]:
        """Return all that must be the same after whatever is refused, but for time that passes."""
        kept = [(e.kind, e.key, e.body) for name in ("demo", "") for e in self.store.events(name) if e.kind != "tick"]
        return [*kept, *self.store.keys()]


@asynccontextmanager
async def real(
    place: Path | str, played: sw.Problem | None = None, settings: HttpSettings | None = None
) -> AsyncIterator[Real]:
    """Open a desk on a file in a folder, or at an address, and close it."""
    there = Real(place, played, settings)
    async with running(there.app):
        yield there
