"""A database of the simulation: committed rows in SQLite, transactions in flight, locks, one sequence, a disk.

It behaves as PostgreSQL does towards the store: a transaction reads what is committed, draws its numbers, and commits
later; batches share a lock that a change of controls takes alone, and outcomes of one decision follow each other.
"""

import asyncio
import random
import sqlite3
from collections.abc import Iterable
from itertools import count
from typing import Any

from stagewise.server.store.migrate import FOLDER, read_migrations

BLOCK = 20  # of the planted sequence with a cache


class Crashed(BaseException):
    """The process is dead: whatever it does next with the database does not happen."""


class Database:
    """What all processes share.

    Attributes:
        flying: The transactions in flight, by id.
        is_full: Whether nothing can be written.
        leader: The process that has the learner's lock.
        cached: Whether each process draws numbers in blocks (a planted bug).
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.connection = rng, sqlite3.connect(":memory:", isolation_level=None)
        for step in read_migrations(FOLDER):
            self.connection.executescript(step.sql)
        self.ids, self.flying = count(1), set[int]()
        self.last_number, self.is_full, self.cached = 0, False, False
        self.leader: Any = None
        self.lock = Lock()
        self.rows: dict[Any, asyncio.Lock] = {}
        self.blocks: dict[Any, list[int]] = {}
        self.rejected = 0  # rows that a CHECK rejected

    def draw(self, count_: int, process: Any) -> list[int]:
        """Return numbers of the sequence."""
        if not self.cached:
            self.last_number += count_
            return list(range(self.last_number - count_ + 1, self.last_number + 1))
        block = self.blocks.setdefault(process, [])
        while len(block) < count_:
            block += range(self.last_number + 1, self.last_number + BLOCK + 1)
            self.last_number += BLOCK
        drawn, block[:count_] = block[:count_], []
        return drawn

    def row_locks(self, keys: Iterable[Any]) -> list[asyncio.Lock]:
        """Return the locks of rows, in an order in which nobody waits in a circle."""
        return [self.rows.setdefault(key, asyncio.Lock()) for key in sorted(keys)]


class Lock:
    """A fair lock, shared or alone."""

    def __init__(self) -> None:
        self.holders, self.is_alone = 0, False
        self.waiting: list[tuple[bool, asyncio.Future[None]]] = []

    async def acquire(self, alone: bool) -> None:
        """Wait for all that came before and do not share."""
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append((alone, turn))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            self.waiting = [one for one in self.waiting if one[1] is not turn]
            raise

    def release(self) -> None:
        """Let others in."""
        self.holders, self.is_alone = self.holders - 1, False
        self._admit()

    def _admit(self) -> None:
        while self.waiting and not self.is_alone and not (self.waiting[0][0] and self.holders):
            alone, turn = self.waiting.pop(0)
            if not turn.cancelled():
                self.is_alone, self.holders = alone, self.holders + 1
                turn.set_result(None)
