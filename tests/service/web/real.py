"""The real desk on a file, in this process, ready to be asked by HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.service.web.client import Client, running
from tests.service.web.fake import problem

import stagewise as sw
from stagewise.cli.offline import read_log
from stagewise.service.desk import Desk
from stagewise.service.keys import Keys
from stagewise.service.store.opened import open_store
from stagewise.service.web.app import App, Settings


class Real:
    """Who is there."""

    def __init__(self, place: Path | str, played: sw.Problem | None = None, settings: Settings | None = None) -> None:
        self.played = played or problem()
        self.store = open_store(str(place / "desk.db") if isinstance(place, Path) else place)
        self.desk = Desk(self.store, read_log=read_log)
        self.keys = Keys(self.store)
        self.app = App(self.desk, self.keys, settings or Settings(log=False), self.prepare)
        self.admin, self.writer, self.reader = (Client(self.app, key) for key in self.keys.first())

    async def prepare(self) -> None:
        """Open the experiment."""
        await self.desk.open("demo", self.played, "ada", "a test")

    def rows(self) -> list[Any]:
        """Return all that must be the same after whatever is refused, but for time that passes."""
        kept = [(e.kind, e.key, e.body) for name in ("demo", "") for e in self.store.events(name) if e.kind != "tick"]
        return [*kept, *self.store.keys()]


@asynccontextmanager
async def real(
    place: Path | str, played: sw.Problem | None = None, settings: Settings | None = None
) -> AsyncIterator[Real]:
    """Open a desk on a file in a folder, or at an address, and close it."""
    there = Real(place, played, settings)
    async with running(there.app):
        yield there
