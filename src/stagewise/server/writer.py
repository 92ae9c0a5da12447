"""Group commit: rows that wait while transactions are written share the next one."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest, AppendResult
from stagewise.server.store.base import Store, StoreUnavailable

MAX_BATCH_ROWS = 2_000  # rows of one transaction
MAX_PENDING_ROWS = 50_000  # rows that may wait
SPACING = 0.002  # seconds between the begins of two transactions that are in flight together
STOPPING_MESSAGE = "the server is stopping and writes nothing more"


class WriteRequest(NamedTuple):
    """Rows for one transaction, and who waits for their results."""

    requests: Sequence[AppendRequest]
    future: "asyncio.Future[list[AppendResult]] | Future[list[AppendResult]]"
    loop: asyncio.AbstractEventLoop | None
    """The loop of an asyncio future."""


class StoreHealth:
    """Whether a store can be written: the result of the last write, or of a test if that is too old.

    Attributes:
        max_age_s: Seconds for which the result of a write is valid; later the store is tested.
    """

    max_age_s = 2.0

    def __init__(self, store: Store) -> None:
        self.store = store
        self._last: tuple[float, str | None] = (-self.max_age_s, None)  # time, and the error or None
        self._lock = threading.Lock()  # concurrent callers share one test

    def record_write(self, error: str | None = None) -> None:
        """Record a successful write, or its error."""
        self._last = time.monotonic(), error

    def get_error(self) -> str | None:
        """Return why the store cannot be written; None if it can."""
        with self._lock:
            if time.monotonic() - self._last[0] >= self.max_age_s:
                try:
                    self.store.test_write()
                except StoreUnavailable as error:
                    self.record_write(str(error))
                else:
                    self.record_write()
            return self._last[1]


class Writer:
    """Threads that write for the whole process; every request is answered, even if a writer stops or fails.

    As many transactions are in flight as the store allows. Rows of different requests have no order between them: a
    client that needs one waits for the answer.

    Attributes:
        store: The store.
        max_batch: Maximum rows of a transaction; a single request may have more.
        max_pending: Maximum rows that wait; further requests are rejected.
        store_health: The result of the last write.
    """

    def __init__(self, store: Store, *, max_batch: int = MAX_BATCH_ROWS, max_pending: int = MAX_PENDING_ROWS) -> None:
        self.store, self.max_batch, self.max_pending = store, max_batch, max_pending
        self.store_health = StoreHealth(store)
        self._queue: deque[WriteRequest] = deque()
        self._rows = 0  # rows that wait
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._in_flight, self._began = 0, 0.0  # transactions, and when the last one began
        self._stopping = True

    def start(self) -> None:
        with self._change:
            if not self._threads:
                self._stopping = False
                for number in range(self.store.max_transactions):
                    thread = threading.Thread(target=self._run, name=f"stagewise-writer-{number}", daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def stop(self) -> None:
        """Write what waits and end the threads; later requests are rejected."""
        with self._change:
            self._stopping = True
            self._change.notify_all()
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()

    def get_error(self) -> str | None:
        """Return why the store cannot be written; None if it can. This may test the store."""
        return STOPPING_MESSAGE if self._stopping else self.store_health.get_error()

    async def append(self, request: AppendRequest) -> AppendResult:
        """Append a row; return its result once it is durable. Raises StoreUnavailable."""
        return (await self.append_all([request]))[0]

    async def append_all(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows in one transaction; return their results once it is durable. Raises StoreUnavailable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[AppendResult]] = loop.create_future()
        self._add(WriteRequest(requests, future, loop))
        return await future

    def append_now(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows from a thread without a loop, and wait. Raises StoreUnavailable."""
        future: Future[list[AppendResult]] = Future()
        self._add(WriteRequest(requests, future, None))
        return future.result()

    def _add(self, write: WriteRequest) -> None:
        with self._change:
            if self._stopping:
                raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem=STOPPING_MESSAGE)
            if self._rows and self._rows + len(write.requests) > self.max_pending:
                template = "the store is busy, with {rows:,} rows waiting to be written; try again later"
                raise StoreUnavailable(ErrorCode.STORE_BUSY, template, rows=self._rows)
            self._queue.append(write)
            self._rows += len(write.requests)
            self._change.notify()

    def _run(self) -> None:
        try:
            while self._write(self._take()):  # no variable for the batch, so that its requests are freed early
                pass
        finally:  # even if the interpreter fails, nobody waits forever
            with self._change:
                self._stopping = True
                self._change.notify_all()
                left, self._rows = list(self._queue), 0
                self._queue.clear()
            fail_all(
                left, StoreUnavailable(ErrorCode.SERVER_UNAVAILABLE, "the server stopped before it wrote this row")
            )

    def _take(self) -> list[WriteRequest]:
        """Wait for requests and return those of one transaction; an empty list means the end.

        Beside others in flight a transaction begins a little later, so that more rows share it.
        """
        with self._change:
            while not self._stopping:
                early = self._began + SPACING - time.monotonic() if self._in_flight else 0.0
                if self._queue and early <= 0.0:
                    break
                self._change.wait(early if self._queue else None)
            taken, rows = list[WriteRequest](), 0
            while self._queue and (not taken or rows + len(self._queue[0].requests) <= self.max_batch):
                taken.append(self._queue.popleft())
                rows += len(taken[-1].requests)
            self._rows -= rows
            if taken:
                self._began, self._in_flight = time.monotonic(), self._in_flight + 1
            return taken

    def _write(self, writes: list[WriteRequest]) -> bool:
        """Write requests and resolve their futures; return False if there are none."""
        if not writes:
            return False
        try:
            return self._write_all(writes)
        finally:
            with self._change:
                self._in_flight -= 1
                self._change.notify()

    def _write_all(self, writes: list[WriteRequest]) -> bool:
        try:
            results = self.store.append([request for write in writes for request in write.requests])
        except Exception as error:
            if isinstance(error, StoreUnavailable):
                self.store_health.record_write(str(error))
            fail_all(writes, error)
            return True
        except BaseException:
            fail_all(writes, StoreUnavailable(ErrorCode.SERVER_UNAVAILABLE, "the writer was interrupted and stops"))
            raise
        self.store_health.record_write()
        left = iter(results)
        resolve_all([(write, [next(left) for _ in write.requests]) for write in writes])
        return True


def fail_all(writes: Sequence[WriteRequest], error: Exception) -> None:
    """Give each waiter a copy of an error of the store; a shared exception would collect their tracebacks."""
    copies = [
        StoreUnavailable(error.code, error.template, **error.details) if isinstance(error, StoreUnavailable) else error
        for _ in writes
    ]
    resolve_all(list(zip(writes, copies, strict=True)))


def resolve_all(outcomes: Sequence[tuple[WriteRequest, list[AppendResult] | Exception]]) -> None:
    """Resolve futures, with one call into each loop."""
    for loop in {write.loop for write, _ in outcomes}:
        pairs = [(write, outcome) for write, outcome in outcomes if write.loop is loop]
        if loop is None:
            resolve(pairs)
        else:
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(resolve, pairs)


def resolve(outcomes: Sequence[tuple[WriteRequest, list[AppendResult] | Exception]]) -> None:
    """Resolve the futures that were not cancelled."""
    for write, outcome in outcomes:
        if write.future.done():
            continue
        if isinstance(outcome, Exception):
            write.future.set_exception(outcome)
        else:
            write.future.set_result(outcome)
