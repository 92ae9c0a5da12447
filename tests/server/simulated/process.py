"""A process of the simulation: the server's code as it is, on a store and a writer that have no threads.

The store answers the queries of `Store` from the database; rows are resolved, signed, sealed and verified by the code
of the package. Every step with the database may be the process' last.
"""

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from typing import Any

from tests.server.simulated.database import Crashed, Database

from stagewise.problem.errors import ErrorCode
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import (
    GLOBAL,
    MAX_SEAL_ROWS,
    AppendRequest,
    AppendResult,
    Event,
    Fence,
    SealPart,
    WriterChain,
    build_seal,
    number_rows,
)
from stagewise.server.store.append_batch import BatchResult, get_outcome_decisions, is_change, resolve_batch
from stagewise.server.store.base import (
    EVENT_COLUMNS,
    INSERT_PART,
    INSERT_SEAL,
    SELECT_LAST_PART,
    SELECT_ROWS,
    Statement,
    Store,
    StoreUnavailable,
)
from stagewise.server.store.sqlite import INSERT_ANSWERS, INSERT_EVENTS, insert_rows, read_state

EPOCH = 1_700_000_000_000_000
MAX_ATTEMPTS = 5
SELECT_OPEN = f"SELECT {EVENT_COLUMNS}, experiment FROM events WHERE number = ?"


class SimulatedStore(Store):
    """A store in the simulated database, as one process sees it."""

    read_only = False
    max_transactions = 4

    def __init__(self, database: Database, rng: random.Random, steps: int) -> None:
        self.database, self.rng, self.left = database, rng, steps
        self.clock_offset, self.loses = 0, 0.0
        self.chains: list[WriterChain] = []
        self._fence = Fence()
        self.reads_controls, self.commits_first = True, True  # False: planted bugs
        self.reserved: list[int] = []  # numbers that were drawn before the choice (a planted bug)
        self.reserves = False

    @property
    def is_dead(self) -> bool:
        """Whether the process has crashed."""
        return self.left <= 0

    def step(self) -> None:
        """Count a step with the database; die at the last."""
        self.left -= 1
        if self.left <= 0:
            if self.database.leader is self:
                self.database.leader = None
            raise Crashed

    def _all(self, query: str, *values: Any) -> list[Any]:
        self.step()
        return self.database.connection.execute(query, values).fetchall()

    def _change(self, *statements: Statement) -> None:
        self.step()
        self._check_disk()
        connection = self.database.connection
        connection.execute("BEGIN")
        try:
            for sql, values in statements:
                connection.execute(sql, values)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        self.step()

    def _check_disk(self) -> None:
        if self.database.is_full:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem="the disk is full")

    def append(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows at once; only before there are other processes."""
        batch, chain = self.begin(requests)
        self.commit(batch, chain)
        return batch.results

    async def transact(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows as the store on PostgreSQL does: read and draw numbers, write, commit, be answered."""
        for left in reversed(range(MAX_ATTEMPTS)):
            try:
                return await self._transact(requests)
            except sqlite3.IntegrityError as error:
                if "chosen_before_numbered" in str(error):
                    self.database.rejected += 1
                if not left or "UNIQUE" not in str(error):
                    raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem=error) from None
        raise AssertionError

    async def _transact(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        database, id_ = self.database, next(self.database.ids)
        await self.pause(0.002)
        await database.lock.acquire(is_change(requests))
        locks = list[asyncio.Lock]()
        database.flying.add(id_)
        try:
            for lock in database.row_locks(get_outcome_decisions(requests)):
                await lock.acquire()
                locks.append(lock)
            batch, chain = self.begin(requests)
            if not self.commits_first and self.rng.random() < 0.3 and not is_change(requests):
                return batch.results  # answered, and rolled back
            await self.pause(0.03 if self.rng.random() < 0.2 else 0.002)  # a slow commit now and then
            self.commit(batch, chain)
        finally:
            database.flying.discard(id_)
            for lock in locks:
                lock.release()
            database.lock.release()
        await self.pause(0.002)
        if self.rng.random() < self.loses:
            raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem="the answer of COMMIT was lost")
        self.chains.append(chain)
        return batch.results

    def begin(self, requests: Sequence[AppendRequest]) -> tuple[BatchResult, WriterChain]:
        """Read what a batch needs, draw its numbers and resolve it."""
        self.step()
        chain = self.chains.pop() if self.chains else WriterChain.begin(self._read_writers_secret())
        state = read_state(self.database.connection, requests, chain)
        if not self.reads_controls:
            state.controls = {}
        drawn = self.database.draw(len(requests), self)
        if self.reserves:  # what was drawn earlier is used now
            drawn, self.reserved = (self.reserved + drawn)[: len(requests)], (self.reserved + drawn)[len(requests) :]
            self.reserved = self.reserved or self.database.draw(3, self)
        state.numbers = iter(drawn)
        state.chain = self._renew_chain(state.chain, state.controls.get(GLOBAL, 0))
        batch = resolve_batch(requests, state, self.now())
        self._see(state.seen)
        return batch, state.chain

    def commit(self, batch: BatchResult, chain: WriterChain) -> None:
        """Write a resolved batch."""
        self.step()
        self._check_disk()
        connection = self.database.connection
        connection.execute("BEGIN")
        try:
            insert_rows(connection, INSERT_EVENTS, batch.records)
            insert_rows(connection, INSERT_ANSWERS, batch.answers)
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        self.step()
        self._see(max([0, *(event.number for _, event in batch.rows)]))

    def seal(self) -> dict[str, list[Event]]:
        """Seal committed rows, by the rule of the store on PostgreSQL."""
        self.step()
        database, before = self.database, self.last_seal()
        oldest_id = min(database.flying, default=next(database.ids))
        found = [row for number in before.open_numbers for row in self._all(SELECT_OPEN, number)]
        found += self._all(SELECT_ROWS, before.high, MAX_SEAL_ROWS)
        if not found:
            return {}
        rows = sorted(((row[-1], Event(*row[:-1])) for row in found), key=lambda row: row[1].number)
        names = sorted({experiment for experiment, _ in rows})
        ends = {name: SealPart(*row) for name in names for row in self._all(SELECT_LAST_PART, name, before.seal)}
        gaps = self._fence.find_gaps(before.open_numbers, oldest_id)
        seal, parts = build_seal(before, rows, ends, self.now(), 0, gaps)
        self._change((INSERT_SEAL, seal), *((INSERT_PART, part) for part in parts))
        if seal.open and self._fence.is_over(oldest_id):
            self._fence = Fence(next(database.ids), seal.high)
        return number_rows(rows, parts)

    def try_lead(self) -> bool:
        """Become the learner if no other process is."""
        if self.database.leader in (None, self) and not self.is_dead:
            self.database.leader = self
        return self.database.leader is self

    def now(self) -> int:
        """Return the time by the clock of this process."""
        return EPOCH + round(asyncio.get_event_loop().time() * 1e6) + self.clock_offset

    async def pause(self, mean: float) -> None:
        """Let others go on."""
        await asyncio.sleep(self.rng.expovariate(1.0 / mean))

    def test_write(self) -> None:
        """Whether the disk has room."""
        self._check_disk()

    def begin_term(self) -> None:
        """Nothing is restored here."""

    def continue_numbers(self) -> None:
        """Rows are not copied here."""

    def compact(self) -> None:
        """Nothing is deleted here."""

    def close(self) -> None:
        """Give up the learner's lock."""
        if self.database.leader is self:
            self.database.leader = None


class SimulatedWriter:
    """The writer of a process: each group of rows is a task instead of a thread."""

    def __init__(self, store: SimulatedStore) -> None:
        self.store = store
        self.tasks = set[asyncio.Task[Any]]()

    def start(self) -> None:
        """There is nothing to start."""

    def get_error(self) -> str | None:
        """There is none that lasts."""
        return None

    async def append_all(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows in one transaction."""
        return await self.store.transact(requests)

    async def append(self, request: AppendRequest) -> AppendResult:
        """Append a row."""
        return (await self.append_all([request]))[0]

    def append_soon(self, requests: Sequence[AppendRequest]) -> None:
        """Append rows of the learner; nobody waits."""
        task = asyncio.get_running_loop().create_task(self.store.transact(requests))
        self.tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it is noticed; the learner tries again


def build_server(store: SimulatedStore) -> DecisionServer:
    """Return a server whose learner is stepped by the simulation."""
    server = DecisionServer(store, learn=False, alone=False)
    writer: Any = SimulatedWriter(store)
    server.writer, server.learner.append = writer, writer.append_soon
    return server
