"""Schedules on a real SQLite file: the store as it is, on connections that fail and die by seed.

One process at a time has the file. At any statement it may die, and the next one gets the file and its journal as they
are then; a COMMIT that it dies in may be in the journal in part. A statement may fail, as on a full disk, and a COMMIT
before it is done or after.

    python -m tests.server.simulated.file 1 100
"""

import asyncio
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.server.simulated import world
from tests.server.simulated.database import Crashed
from tests.server.simulated.process import EPOCH
from tests.server.simulated.world import Result, World

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest, AppendResult
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.sqlite import SqliteStore

FAILS = 0.01  # the chance of a COMMIT to fail, before it is done or after
TORN = 0.5  # the chance of a COMMIT in which a process dies to be in the journal in part
MEMORY = Path("/dev/shm")
WRITES = ("INSERT", "UPDATE", "DELETE", "COMMIT")
PLANTS = ("unsynced",)  # half of the journal is lost with a process

connect = sqlite3.connect


class File:
    """The file, wherever it is after the last death of a process."""

    def __init__(self, rng: random.Random, plant: str | None) -> None:
        self.rng, self.plant = rng, plant
        self.folder = Path(tempfile.mkdtemp(prefix="stagewise-", dir=MEMORY if MEMORY.is_dir() else None))
        self.path, self.deaths = self.folder / "0.db", 0
        self.is_full, self.rejected = False, 0
        self.flying: set[int] = set()
        self.leader: Any = None
        self.stores: list[FileStore] = []

    def files(self) -> list[Path]:
        """Return the file and its journal."""
        return [self.path, self.path.with_name(f"{self.path.name}-wal")]

    def die(self, before: Sequence[bytes] | None = None) -> None:
        """Take the files from a process that died; `before`: as they were before the COMMIT in which it did."""
        after = [path.read_bytes() if path.exists() else b"" for path in self.files()]
        if before is not None and before[0] == after[0]:  # the journal is not saved in the file meanwhile
            old, new = before[1], after[1]
            first = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(old))
            cut = self.rng.randrange(first, len(new) + 1)
            after[1] = new[:cut] + old[cut:]
        if self.plant == "unsynced":
            after[1] = after[1][: len(after[1]) // 2]
        self.deaths += 1
        self.path = self.folder / f"{self.deaths}.db"
        for path, content in zip(self.files(), after, strict=True):
            path.write_bytes(content)

    @property
    def connection(self) -> sqlite3.Connection:
        """A connection for what is read at the end."""
        return connect(self.path)


class FailingConnection(sqlite3.Connection):
    """A connection of a process that may die."""

    store: "FileStore"

    def execute(self, sql: str, *values: Any) -> Any:
        """Execute a statement, or die."""
        store, file, verb = self.store, self.store.file, sql.split(maxsplit=1)[0]
        before = None
        if store.left == 1 and verb == "COMMIT":  # it dies in it
            before = [path.read_bytes() for path in file.files()]
            super().execute(sql)
        store.step(before if before and store.rng.random() < TORN else None)
        if verb in WRITES and file.is_full:
            raise sqlite3.OperationalError("database or disk is full")
        fails = verb == "COMMIT" and store.rng.random() < (FAILS if store.loses else 0.0)
        if fails and store.rng.random() < 0.5:
            raise sqlite3.OperationalError("disk I/O error")
        found = super().execute(sql, *values)
        if fails:
            raise sqlite3.OperationalError("disk I/O error")
        return found


class FileStore(SqliteStore):
    """A store in the file, in a process that dies after some steps."""

    def __init__(self, file: File, rng: random.Random, steps: int) -> None:
        self.file, self.rng, self.left = file, rng, steps
        file.stores.append(self)
        self.clock_offset, self.loses, self.is_dead = 0, 0.0, False
        connection = type("Connection", (FailingConnection,), {"store": self})
        with patch.object(sqlite3, "connect", partial(connect, factory=connection)):
            super().__init__(file.path, clock=self.tell_time)

    def _open(self, mode: str) -> sqlite3.Connection:
        connection = type("Connection", (FailingConnection,), {"store": self})
        with patch.object(sqlite3, "connect", partial(connect, factory=connection)):
            return super()._open(mode)

    def tell_time(self) -> int:
        """Return the time by the clock of this process."""
        return EPOCH + round(asyncio.get_event_loop().time() * 1e6) + self.clock_offset

    def step(self, before: Sequence[bytes] | None = None) -> None:
        """Count a statement; die at the last."""
        self.left -= 1
        if self.left == 0:
            self.is_dead = True
            self.file.die(before)
        if self.is_dead:
            raise Crashed

    def _errors(self, what: str) -> Any:
        if self.is_dead:  # whatever it does next does not happen
            raise Crashed
        return super()._errors(what)

    async def transact(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows between others; the answer may be lost."""
        await self.pause()
        results = self.append(requests)
        await self.pause()
        if self.rng.random() < self.loses:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem="the answer was lost")
        return results

    async def pause(self) -> None:
        """Let others go on."""
        await asyncio.sleep(self.rng.expovariate(1.0 / 0.002))


class FileWorld(World):
    """One schedule on a file."""

    processes = 1
    database: File

    def build_database(self) -> File:
        """Return the file."""
        return File(self.rng, self.plant)

    def build_store(self, rng: random.Random, steps: int) -> FileStore:
        """Return a store on the file."""
        return FileStore(self.database, rng, steps)


def play(seed: int, plant: str | None = None) -> Result:
    """Play the schedule of a seed."""
    made = list[FileWorld]()

    def build(*about: Any) -> FileWorld:
        made.append(FileWorld(*about))
        return made[-1]

    try:
        return world.play(seed, plant, build)  # type: ignore[arg-type]
    finally:
        for one in made:
            for store in one.database.stores:
                store.close()
            shutil.rmtree(one.database.folder)


if __name__ == "__main__":
    sys.exit(world.main(play=play, plants=PLANTS))
