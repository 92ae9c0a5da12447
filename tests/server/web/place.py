"""A desk with its keys, in this process, ready to be asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.server.web.client import Client, running
from tests.server.web.fake import FakeDesk, FakeStore

from stagewise.server.access_keys import AccessKeys
from stagewise.server.web.app import App, HttpSettings

USER = {"context": {"age": 34}}


class Place(NamedTuple):
    """Who is there."""

    app: App
    desk: Any
    store: Any
    keys: AccessKeys
    admin: Client
    writer: Client
    reader: Client
    nobody: Client

    def changed(self) -> tuple[Any, ...]:
        """Return what must be the same after whatever is refused."""
        return len(self.store.log), len(self.desk.made), repr(self.desk.told), repr(self.store.rows)


@asynccontextmanager
async def opened(settings: HttpSettings | None = None, names: tuple[str, ...] = ("demo",)) -> AsyncIterator[Place]:
    """Open a desk with one key of each role."""
    store = FakeStore()
    desk = FakeDesk(store, names)
    keys = AccessKeys(store)  # type: ignore[arg-type]
    admin, writer, reader = keys.create_initial_keys()
    app = App(desk, keys, settings or HttpSettings(log=False))  # type: ignore[arg-type]
    async with running(app):
        yield Place(app, desk, store, keys, *(Client(app, key) for key in (admin, writer, reader, "")))
