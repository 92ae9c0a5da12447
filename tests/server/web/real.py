"""A server on a file, in this process, ready to be asked by HTTP."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.server.web.client import Client, running

import stagewise as sw
from stagewise.cli.server_startup import read_log
from stagewise.problem.errors import ErrorCode
from stagewise.server.access_keys import AccessKeys
from stagewise.server.decision_server import DecisionServer
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.migrate import open_store
from stagewise.server.store.sqlite import SqliteStore
from stagewise.server.web.app import App, HttpSettings

USER = {"context": {"age": 34}}


@cache
def problem() -> sw.Problem:
    """Return the problem of the tests."""
    return sw.Problem(
        action_names=["nothing", "digest", "offer"],
        safe_name="nothing",
        context={"age": (18, 99)},
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, window="7d", model="rates")},
    )


class SwitchStore(SqliteStore):
    """A store in a file; `down`: nothing of it can be reached."""

    down = False

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        if self.down:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the store cannot be reached")
        with super()._errors(what):
            yield


class Real:
    """Who is there."""

    def __init__(
        self, place: Path | str, played: sw.Problem | None = None, settings: HttpSettings | None = None
    ) -> None:
        self.played = played or problem()
        self.store: Any = SwitchStore(place / "desk.db") if isinstance(place, Path) else open_store(place)
        self.desk = DecisionServer(self.store, read_log=read_log)
        self.keys = AccessKeys(self.store)
        self.app = App(self.desk, self.keys, settings or HttpSettings(log=False), self.prepare)
        self.admin, self.writer, self.reader = (Client(self.app, key) for key in self.keys.create_initial_keys())
        self.nobody = Client(self.app, "")

    async def prepare(self) -> None:
        """Open the experiment."""
        await self.desk.open("demo", self.played, "ada", "a test")

    def rows(self) -> list[Any]:
        """Return all that must be the same after whatever is refused, but for time that passes."""
        kept = [(name, e.kind, e.key, e.body) for name, e in self.store.rows(0) if e.kind != "tick"]
        return [*kept, *self.store.keys()]


@asynccontextmanager
async def real(
    place: Path | str, played: sw.Problem | None = None, settings: HttpSettings | None = None
) -> AsyncIterator[Real]:
    """Open a desk on a file in a folder, or at an address, and close it."""
    there = Real(place, played, settings)
    async with running(there.app):
        yield there


@asynccontextmanager
async def opened(settings: HttpSettings | None = None) -> AsyncIterator[Real]:
    """Open a desk in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        async with real(Path(folder), settings=settings) as there:
            yield there
