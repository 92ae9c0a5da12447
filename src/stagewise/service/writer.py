"""Group commit: whatever waits while one transaction is made durable shares the next one."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from stagewise.service.records import Ask, Settled
from stagewise.service.standing import Standing
from stagewise.service.store.store import Store, StoreDown

BATCH = 2_000  # rows of a transaction
WAITING = 50_000  # rows that may wait
LONG = 0.01  # seconds for which the loop may stand still while a transaction begins in it,
PAUSE = 1.0  # and else how long the writer's thread begins them: a disk that is slow to read stays so for a while
STOPPING = "the desk is stopping, and writes nothing more"

Answered = list[Settled] | Exception


class Wish(NamedTuple):
    """Asks that go into one transaction, and whom to tell."""

    asks: Sequence[Ask]
    tell: Callable[[Answered], None]
    """Called by the loop's thread, or by the writer's where there is no loop."""
    loop: asyncio.AbstractEventLoop | None
    finish: Callable[[], list[Settled]] | None = None
    """Where its transaction is begun: what makes it durable."""


class Writer:
    """One thread that writes for everybody in the process; every wish is answered, also when it stops or fails.

    Attributes:
        store: Where it writes.
        batch: The largest number of rows in a transaction; one wish alone may have more.
        waiting: The largest number of rows that may wait; beyond it a wish is refused at once.
        standing: Whether the store can be written.
    """

    def __init__(self, store: Store, *, batch: int = BATCH, waiting: int = WAITING) -> None:
        self.store, self.batch, self.waiting = store, batch, waiting
        self.standing = Standing(store)
        self._wishes: deque[Wish] = deque()
        self._rows = 0  # that wait
        self._busy = False
        self._patient_until = 0.0  # by the monotonic clock: until then nothing begins in a loop
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopping = True

    def start(self) -> None:
        """Begin to write."""
        with self._change:
            if self._thread is None:
                self._stopping = False
                self._thread = threading.Thread(target=self._run, name="stagewise-writer", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Write what waits, and end; what is asked from now on is refused."""
        with self._change:
            self._stopping = True
            self._change.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        self._thread = None

    def trouble(self) -> str | None:
        """Return why nothing can be written; None: it can. It may have the store tried out, which takes a while."""
        return STOPPING if self._stopping else self.standing.trouble()

    async def append(self, ask: Ask) -> Settled:
        """Return what became of an ask, once it is durable. Raises StoreDown."""
        return (await self.append_all([ask]))[0]

    async def append_all(self, asks: Sequence[Ask]) -> list[Settled]:
        """Return what became of asks that go into one transaction, once it is durable. Raises StoreDown."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Settled]] = loop.create_future()
        self._add(Wish(asks, lambda answered: tell(future, answered), loop))
        return await future

    def append_soon(self, asks: Sequence[Ask], tell: Callable[[Answered], None]) -> None:
        """Do the same without anybody who waits: the running loop calls `tell`. Raises StoreDown.

        Where nothing else is to be written the transaction begins here, and the writer only waits for the disk: two
        threads that take turns with the interpreter, and objects that go from one to the other, cost more than that.
        Where that took long, because pages had to be read first, the writer begins transactions for a while.
        """
        wish = Wish(asks, tell, asyncio.get_running_loop())
        with self._change:  # nothing comes between
            began = time.monotonic()
            if self._busy or self._wishes or self._stopping or began < self._patient_until:
                self._add(wish)
                return
            finish = self.store.begin(asks)
            if time.monotonic() - began > LONG:
                self._patient_until = began + PAUSE
            self._add(wish._replace(finish=finish))

    def append_now(self, asks: Sequence[Ask]) -> list[Settled]:
        """Do the same for a thread that has no loop, and waits. Raises StoreDown."""
        future: Future[list[Settled]] = Future()
        self._add(Wish(asks, lambda answered: tell(future, answered), None))
        return future.result()

    def _add(self, wish: Wish) -> None:
        with self._change:
            if self._stopping:
                raise StoreDown(STOPPING)
            if self._rows and self._rows + len(wish.asks) > self.waiting:
                raise StoreDown(f"the store is busy: {self._rows:,} rows wait to be written; try again later")
            self._wishes.append(wish)
            self._rows += len(wish.asks)
            self._change.notify()

    def _run(self) -> None:
        try:
            while self._write(self._take()):  # without a name for it: what was asked is let go of by who asked
                pass
        finally:  # also where the interpreter itself fails: nobody waits for ever
            with self._change:
                self._stopping = True
                left = list(self._wishes)
                self._wishes.clear()
                self._rows = 0
            answer(left, [StoreDown("the desk stopped before this was written") for _ in left])

    def _take(self) -> list[Wish]:
        """Wait for wishes, and return as many as go into a transaction; none: the end."""
        with self._change:
            self._busy = False
            while not self._wishes and not self._stopping:
                self._change.wait()
            self._busy = True
            taken, rows = list[Wish](), 0
            while self._wishes and (not taken or rows + len(self._wishes[0].asks) <= self.batch):
                taken.append(self._wishes.popleft())
                rows += len(taken[-1].asks)
                if taken[0].finish is not None:
                    break
            self._rows -= rows
            return taken

    def _write(self, wishes: list[Wish]) -> bool:
        """Write wishes, and tell; False: there are none."""
        if not wishes:
            return False
        try:
            finish = wishes[0].finish  # then it is alone
            settled = finish() if finish else self.store.append([ask for wish in wishes for ask in wish.asks])
        except BaseException as error:
            if isinstance(error, StoreDown):
                self.standing.wrote(str(error))
            answer(wishes, [another(error) for _ in wishes])
            if not isinstance(error, Exception):
                raise
            return True
        self.standing.wrote()
        ends = [0]
        for wish in wishes:
            ends.append(ends[-1] + len(wish.asks))
        answer(wishes, [settled[start:end] for start, end in pairwise(ends)])
        return True


def answer(wishes: Sequence[Wish], answers: Sequence[Answered]) -> None:
    """Tell everybody: those of one loop by one call into it."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[tuple[Wish, Answered]]] = {}
    for wish, answered in zip(wishes, answers, strict=True):
        by_loop.setdefault(wish.loop, []).append((wish, answered))
    for loop, pairs in by_loop.items():
        if loop is None:
            tell_all(pairs)
        else:
            with suppress(RuntimeError):  # its loop is closed: whoever asked is gone
                loop.call_soon_threadsafe(tell_all, pairs)


def tell_all(pairs: Sequence[tuple[Wish, Answered]]) -> None:
    """Tell each what became of its wish."""
    for wish, answered in pairs:
        wish.tell(answered)


def tell(future: "asyncio.Future[list[Settled]] | Future[list[Settled]]", answered: Answered) -> None:
    """Resolve a future; whoever was cancelled meanwhile is not waiting."""
    if future.done():
        return
    if isinstance(answered, Exception):
        future.set_exception(answered)
    else:
        future.set_result(answered)


def another(error: BaseException) -> Exception:
    """Return an error for each who waits: raised in many places, one would gather all their tracebacks."""
    if isinstance(error, Exception) and not isinstance(error, StoreDown):
        return error  # a mistake of ours: as it is
    return StoreDown(str(error) if isinstance(error, StoreDown) else "the writer was interrupted, and stops")
