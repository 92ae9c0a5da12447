"""Group commit: rows that wait while a transaction is written share the next one."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest, AppendResult
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.store_health import StoreHealth

MAX_BATCH_ROWS = 2_000  # rows of one transaction
MAX_PENDING_ROWS = 50_000  # rows that may wait
MAX_LOOP_BLOCK = 0.01  # seconds that beginning a transaction may block the event loop
OFFLOAD_SECONDS = 1.0  # after a slow begin, the writer's thread begins transactions for this long
STOPPING_MESSAGE = "the server is stopping and writes nothing more"

WriteOutcome = list[AppendResult] | Exception


class WriteRequest(NamedTuple):
    """Append requests for one transaction, and the callback for their results."""

    requests: Sequence[AppendRequest]
    callback: Callable[[WriteOutcome], None]
    """Called in the thread of the loop, or in the writer's thread without a loop."""
    loop: asyncio.AbstractEventLoop | None
    finish: Callable[[], list[AppendResult]] | None = None
    """Makes a transaction durable that has already begun."""


class Writer:
    """One thread that writes for the whole process; every request is answered, even if the writer stops or fails.

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
        self._busy = False
        self._offload_until = 0.0  # by the monotonic clock: until then no transaction begins in an event loop
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = True

    def start(self) -> None:
        """Start the thread."""
        with self._change:
            if self._thread is None:
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="stagewise-writer", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Write what waits and end the thread; later requests are rejected."""
        with self._change:
            self._stopping = True
            self._change.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        self._thread = None

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
        self._add(WriteRequest(requests, lambda outcome: resolve_future(future, outcome), loop))
        return await future

    def append_soon(self, requests: Sequence[AppendRequest], callback: Callable[[WriteOutcome], None]) -> None:
        """Append rows without waiting; the running loop calls `callback`. Raises StoreUnavailable.

        If nothing else is being written, the transaction begins here and the writer's thread only waits for the disk.
        This avoids switching threads. If beginning took long, because pages had to be read, the thread begins
        transactions for a while.
        """
        write = WriteRequest(requests, callback, asyncio.get_running_loop())
        with self._change:  # one lock for all steps
            began = time.monotonic()
            if self._busy or self._queue or self._stopping or began < self._offload_until:
                self._add(write)
                return
            finish = self.store.begin(requests)
            if time.monotonic() - began > MAX_LOOP_BLOCK:
                self._offload_until = began + OFFLOAD_SECONDS
            self._add(write._replace(finish=finish))

    def append_now(self, requests: Sequence[AppendRequest]) -> list[AppendResult]:
        """Append rows from a thread without a loop, and wait. Raises StoreUnavailable."""
        future: Future[list[AppendResult]] = Future()
        self._add(WriteRequest(requests, lambda outcome: resolve_future(future, outcome), None))
        return future.result()

    def _add(self, write: WriteRequest) -> None:
        with self._change:
            if self._stopping:
                raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "{problem}", problem=STOPPING_MESSAGE)
            if self._rows and self._rows + len(write.requests) > self.max_pending:
                raise StoreUnavailable(
                    ErrorCode.STORE_BUSY,
                    "the store is busy, with {rows:,} rows waiting to be written; try again later",
                    rows=self._rows,
                )
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
                left = list(self._queue)
                self._queue.clear()
                self._rows = 0
            notify_all(
                left,
                [
                    StoreUnavailable(ErrorCode.SERVER_UNAVAILABLE, "the server stopped before it wrote this row")
                    for _ in left
                ],
            )

    def _take(self) -> list[WriteRequest]:
        """Wait for requests and return those of one transaction; an empty list means the end."""
        with self._change:
            self._busy = False
            while not self._queue and not self._stopping:
                self._change.wait()
            self._busy = True
            taken, rows = list[WriteRequest](), 0
            while self._queue and (not taken or rows + len(self._queue[0].requests) <= self.max_batch):
                taken.append(self._queue.popleft())
                rows += len(taken[-1].requests)
                if taken[0].finish is not None:
                    break
            self._rows -= rows
            return taken

    def _write(self, writes: list[WriteRequest]) -> bool:
        """Write requests and call their callbacks; return False if there are none."""
        if not writes:
            return False
        try:
            finish = writes[0].finish  # such a request is alone in its batch
            results = (
                finish() if finish else self.store.append([request for write in writes for request in write.requests])
            )
        except BaseException as error:
            if isinstance(error, StoreUnavailable):
                self.store_health.record_write(str(error))
            notify_all(writes, [copy_error(error) for _ in writes])
            if not isinstance(error, Exception):
                raise
            return True
        self.store_health.record_write()
        ends = [0]
        for write in writes:
            ends.append(ends[-1] + len(write.requests))
        notify_all(writes, [results[start:end] for start, end in pairwise(ends)])
        return True


def notify_all(writes: Sequence[WriteRequest], outcomes: Sequence[WriteOutcome]) -> None:
    """Run the callbacks, with one call into each loop."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[WriteRequest, WriteOutcome]]] = {}
    for write, outcome in zip(writes, outcomes, strict=True):
        by_loop.setdefault(write.loop, []).append((write, outcome))
    for loop, pairs in by_loop.items():
        if loop is None:
            run_callbacks(pairs)
        else:
            with suppress(RuntimeError):  # the loop is closed, so nobody waits
                loop.call_soon_threadsafe(run_callbacks, pairs)


def run_callbacks(pairs: Sequence[tuple[WriteRequest, WriteOutcome]]) -> None:
    """Call each callback with its result."""
    for write, outcome in pairs:
        write.callback(outcome)


def resolve_future(
    future: "asyncio.Future[list[AppendResult]] | Future[list[AppendResult]]", outcome: WriteOutcome
) -> None:
    """Resolve a future unless it was cancelled."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def copy_error(error: BaseException) -> Exception:
    """Return a copy of an error for each waiter; a shared exception would collect their tracebacks."""
    if isinstance(error, Exception) and not isinstance(error, StoreUnavailable):
        return error  # a bug: raise it unchanged
    if isinstance(error, StoreUnavailable):
        return StoreUnavailable(error.code, error.template, **error.details)
    return StoreUnavailable(ErrorCode.SERVER_UNAVAILABLE, "the writer was interrupted and stops")
