"""Group commit: many wishes, few transactions, and an answer for everyone."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.server_helpers import played
from tests.server.store.append_requests import decision, outcome, sound

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest, AppendResult, Event
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.sqlite import SqliteStore
from stagewise.server.writer import Writer


class Slow:
    """A store that writes when it is let, or fails as it is told."""

    max_transactions = 1

    def __init__(self) -> None:
        self.gate, self.entered = threading.Event(), threading.Event()
        self.batches: list[list[str]] = []
        self.error: BaseException | None = None

    def append(self, asks: Sequence[AppendRequest]) -> list[AppendResult]:
        self.entered.set()
        assert self.gate.wait(20)
        self.batches.append([ask.key for ask in asks])
        if self.error is not None:
            raise self.error
        return [AppendResult("new", Event(n, 0, ask.kind, ask.key, 0, b"")) for n, ask in enumerate(asks)]


@pytest.fixture
def slow() -> Iterator[Slow]:
    store = Slow()
    yield store
    store.gate.set()


def keys(settled: Sequence[AppendResult]) -> list[str]:
    return [each.event.key for each in settled if each.event]


async def waiting(writer: Writer, slow: Slow, count: int) -> list["asyncio.Task[AppendResult]"]:
    """Start wishes; the first is in a transaction, the others wait."""
    tasks = [asyncio.create_task(writer.append(decision("0")))]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(slow.entered.wait, 20)
    tasks += [asyncio.create_task(writer.append(decision(str(n)))) for n in range(1, count)]
    await asyncio.sleep(0)
    return tasks


@played
async def test_what_waits_shares_a_transaction(slow: Slow) -> None:
    writer = Writer(slow)
    writer.start()
    tasks = await waiting(writer, slow, 300)
    slow.gate.set()
    settled = await asyncio.gather(*tasks)
    assert keys(settled) == [str(n) for n in range(300)], "each gets its own answer"
    writer.stop()
    assert [len(batch) for batch in slow.batches] == [1, 299]


@played
async def test_a_batch_is_bounded_and_a_wish_is_never_split(slow: Slow) -> None:
    writer = Writer(slow, max_batch=10)
    writer.start()
    first = await waiting(writer, slow, 1)
    several = [decision(f"s{n}") for n in range(7)]
    many = [asyncio.create_task(writer.append_all(several)) for _ in range(3)]
    large = asyncio.create_task(writer.append_all([decision(f"l{n}") for n in range(25)]))
    none = asyncio.create_task(writer.append_all([]))
    await asyncio.sleep(0)
    slow.gate.set()
    await asyncio.gather(*first, *many, large)
    assert keys(many[1].result()) == [ask.key for ask in several]
    assert len(large.result()) == 25
    assert await none == []
    writer.stop()
    assert [len(batch) for batch in slow.batches] == [1, 7, 7, 7, 25, 0]


@played
async def test_too_much_waiting_is_refused_at_once(slow: Slow) -> None:
    writer = Writer(slow, max_pending=5)
    writer.start()
    tasks = await waiting(writer, slow, 6)
    with refused(StoreUnavailable, ErrorCode.STORE_BUSY):
        await writer.append(decision("x"))
    with refused(StoreUnavailable, ErrorCode.STORE_BUSY):
        await asyncio.to_thread(writer.append_now, [decision("x")])
    slow.gate.set()
    assert len(await asyncio.gather(*tasks)) == 6
    assert (await writer.append(decision("x"))).status == "new"
    writer.stop()


@pytest.mark.parametrize(
    "error", [StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the disk is full"), RuntimeError("a mistake of ours")]
)
@played
async def test_an_error_reaches_everyone_and_the_writer_goes_on(slow: Slow, error: Exception) -> None:
    writer = Writer(slow)
    writer.start()
    tasks = await waiting(writer, slow, 20)
    slow.error = error
    slow.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {(type(result), getattr(result, "code", str(result))) for result in results} == {
        (type(error), getattr(error, "code", str(error)))
    }
    slow.error = None
    assert (await writer.append(decision("x"))).status == "new"
    writer.stop()


def test_the_writer_thread_cannot_leave_anyone_waiting(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)

    async def main() -> None:
        writer = Writer(slow, max_batch=1)
        writer.start()
        tasks = await waiting(writer, slow, 3)
        slow.error = SystemExit("out")
        slow.gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} == {StoreUnavailable}
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE, "stopping"):
            await writer.append(decision("x"))
        writer.stop()

    asyncio.run(main())


@played
async def test_stopping_writes_what_waits(slow: Slow) -> None:
    writer = Writer(slow, max_batch=4)
    writer.start()
    tasks = await waiting(writer, slow, 11)
    ends = asyncio.create_task(asyncio.to_thread(writer.stop))
    await asyncio.sleep(0.05)
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE, "stopping"):
        await writer.append(decision("x"))
    slow.gate.set()
    assert len(await asyncio.gather(*tasks)) == 11
    await ends
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE, "stopping"):
        await writer.append(decision("x"))
    writer.start()
    assert (await writer.append(decision("y"))).status == "new"
    writer.stop()
    writer.stop()


def test_who_goes_away_harms_nobody(slow: Slow) -> None:
    """A request that is cancelled, and a loop that is closed, while their rows are being written."""
    writer = Writer(slow)
    writer.start()

    async def gone() -> None:
        task = asyncio.create_task(writer.append(decision("gone")))
        await asyncio.sleep(0)
        task.cancel()

    async def main() -> None:
        tasks = await waiting(writer, slow, 3)
        tasks[1].cancel()
        slow.gate.set()
        assert (await tasks[0]).status == (await tasks[2]).status == "new"

    asyncio.run(gone())
    asyncio.run(main())
    writer.stop()
    assert sorted(key for batch in slow.batches for key in batch) == ["0", "1", "2", "gone"]


def test_threads_and_loops_together(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "server.db")
    writer = Writer(store)
    writer.start()
    statuses: list[str] = []

    def ticking() -> None:
        for n in range(30):
            statuses.extend(each.status for each in writer.append_now([decision(f"d{n}"), outcome(f"d{n}", click=1.0)]))

    async def main() -> None:
        settled = await asyncio.gather(*(writer.append(decision(f"d{n}")) for n in range(30)))
        statuses.extend(each.status for each in settled)

    threads = [threading.Thread(target=ticking), threading.Thread(target=asyncio.run, args=(main(),))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.stop()
    assert Counter(statuses) == {"new": 60, "duplicate": 30}
    assert sound(store) == 60
    store.close()
