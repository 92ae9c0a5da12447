"""The order of the log: by seals. Histories of servers that share a store pass, and those of planted bugs do not."""

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.problem.refusal import refused
from tests.server.history import History, find_violations
from tests.server.server_helpers import NAME, learned, played, serve_problem, user
from tests.server.store.append_requests import decision, log_of, sealed, sound
from tests.server.store.proxy import Proxy

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.store.base import StoreUnavailable

psycopg = pytest.importorskip("psycopg")
from stagewise.server.store import postgres as postgres_module  # noqa: E402
from stagewise.server.store import postgres_batch  # noqa: E402
from stagewise.server.store.postgres import PostgresStore  # noqa: E402


@pytest.fixture
def store(postgres: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(postgres)
    yield opened
    opened.close()


def test_a_lower_number_that_is_committed_later_is_in_a_later_seal(store: PostgresStore, postgres: str) -> None:
    """Learning does not wait for it; a number that nobody can commit any more is a gap for good."""
    sealed(store)
    wait, go = threading.Event(), threading.Event()
    slow = PostgresStore(postgres)
    slow.append([decision("first")])
    sealed(store)
    write = postgres_module.write_batch

    def held(connection: Any, batch: Any) -> None:
        if threading.current_thread() is thread:
            wait.set()
            go.wait(20)
        write(connection, batch)

    thread = threading.Thread(target=lambda: slow.append([decision("slow")]))
    postgres_module.write_batch = held
    try:
        thread.start()
        assert wait.wait(20)
        store.append([decision("quick")])
        assert [row.key for row in log_of(store, "mail")] == ["first", "quick"]
        (number,) = store.last_seal().open_numbers
        for n in range(3):  # its transaction is older than the fence, so its number stays open
            store.append([decision(f"beside {n}")])
            sealed(store)
            assert store.last_seal().open_numbers == [number]
        go.set()
        thread.join()
    finally:
        postgres_module.write_batch = write
    rows = log_of(store, "mail")
    assert [row.key for row in rows] == ["first", "quick", "beside 0", "beside 1", "beside 2", "slow"]
    assert rows[5].number == number < rows[1].number
    assert store.last_seal().open_numbers == []
    store.append([decision("quick"), decision("next")])  # the first is a duplicate and uses a number up
    for n in range(3):
        store.append([decision(f"later {n}")])
        sealed(store)
    assert store.last_seal().open_numbers == [], "nobody can commit it any more"
    assert sound(store) == 10
    slow.close()


def test_rows_are_sealed_in_a_causal_order(store: PostgresStore, postgres: str) -> None:
    """Writers, and a learner that seals as fast as it can: what was answered before another was asked comes before."""
    ended: dict[str, float] = {}
    began: dict[str, float] = {}
    stop, errors = threading.Event(), list[BaseException]()

    def write(who: int) -> None:
        rng, own = random.Random(who), PostgresStore(postgres)
        try:
            for n in range(60):
                keys = [f"{who}-{n}-{i}" for i in range(rng.randrange(1, 4))]
                began.update(dict.fromkeys(keys, time.monotonic()))
                own.append([decision(key) for key in keys])
                ended.update(dict.fromkeys(keys, time.monotonic()))
        except BaseException as error:
            errors.append(error)
        finally:
            own.close()

    def learn() -> None:
        while not stop.is_set():
            store.seal()

    threads = [threading.Thread(target=write, args=(who,)) for who in range(6)]
    learner = threading.Thread(target=learn)
    for thread in [learner, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    learner.join()
    assert errors == []
    keys = [row.key for row in log_of(store, "mail")]
    assert len(keys) == len(ended)
    first = float("inf")
    for key in reversed(keys):  # no row that comes later was over before this one began
        assert first >= began[key]
        first = min(first, ended[key])
    assert store.last_seal().seal > 2
    assert sound(store) == len(keys)


def test_a_sequence_with_a_cache_is_refused(store: PostgresStore, postgres: str) -> None:
    """At the start; and where it is changed while servers run, by the table."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("ALTER SEQUENCE numbers CACHE 20")
    with refused(StoreUnavailable, ErrorCode.STORE_CORRUPT):
        PostgresStore(postgres)
    store.append([decision("first")])
    with store._lend(), store._lend() as second:
        pass
    store._idle.remove(second)
    store.append([decision("a block of twenty")])
    store._idle, others = [second], store._idle
    store.append([decision("another block")])
    store._idle = others
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        store.append([decision("of the first block")])
    store._idle.append(second)


def test_a_number_that_was_drawn_before_the_choice_is_refused(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append([decision("a")])
    reserved = [(number,) for (number,) in store._all("SELECT nextval('numbers') FROM generate_series(1, 3)")]
    store.append([decision("b")])
    seen = store.seen
    monkeypatch.setattr(postgres_batch, "DRAW_NUMBERS", f"SELECT {reserved[0][0]} FROM generate_series(1, %s)")
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        store.append([decision("c")._replace(seen=seen)])


async def lived(address: str, seconds: float, plant: Callable[[list[DecisionServer]], None] | None = None) -> set[str]:
    """Play on two servers behind a slow road that is cut now and then; return the violations of the history."""
    history, rng, road = History(), random.Random(3), Proxy(address)
    async with serve_problem(address, alone=False) as one, serve_problem(road.address, alone=False) as two:
        servers, end = [one, two], time.monotonic() + seconds
        if plant is not None:
            plant(servers)

        async def client(who: int) -> None:
            n = 0
            while time.monotonic() < end:
                n += 1
                server, id_, began = servers[(who + n) % 2], f"{who}-{n}", time.monotonic()
                try:
                    made = await server.decide(NAME, user(id_))
                    history.add("decision", began, id_, made.receipt, made.mode)
                    if made.receipt is None:
                        continue
                    began = time.monotonic()
                    told = await server.learn(NAME, OutcomeUpdate(id_, {"click": int(rng.random() < 0.3)}))
                    history.add("outcome", began, id_, told.receipt)
                except StagewiseError:
                    await asyncio.sleep(0.01)

        async def operator() -> None:
            while time.monotonic() < end - 0.2:
                for verb in ("kill", "resume"):
                    began = time.monotonic()
                    await getattr(one, verb)(NAME, "ada", "a drill")
                    history.add(verb, began)
                    await asyncio.sleep(0.15)

        async def cutter() -> None:
            while time.monotonic() < end - 0.5:
                await asyncio.sleep(0.4)
                road.cut_after = b"COMMIT"
                await asyncio.sleep(0.05)
                road.cut_after = None

        await asyncio.gather(*(client(who) for who in range(6)), operator(), cutter())
        if plant is None:
            await learned(one, 60.0)
        for server in servers:
            await asyncio.to_thread(server.learner.stop)
        with closing(PostgresStore(address)) as store:
            assert sum(call.kind == "decision" for call in history.calls) > 20
            return find_violations(history, store, servers)


@played
async def test_histories_of_two_servers_pass(postgres: str) -> None:
    assert await lived(postgres, 3.0) == set()


@played
async def test_an_answer_before_the_commit_is_found(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction is rolled back now and then, as when a machine fails; its rows were answered."""
    write, hasty, turn = postgres_module.write_batch, threading.local(), random.Random(1)

    def write_or_not(connection: Any, batch: Any) -> None:
        if getattr(hasty, "now", False):
            connection.execute("ROLLBACK")
        else:
            write(connection, batch)

    def plant(servers: list[DecisionServer]) -> None:
        store: Any = servers[0].store
        append = store._append

        def append_or_not(session: Any, requests: Any, secret: bytes, *, is_again: bool) -> Any:
            hasty.now = turn.random() < 0.3 and all(ask.kind in ("decision", "outcome") for ask in requests)
            try:
                return append(session, requests, secret, is_again=is_again)
            finally:
                session.chain, hasty.now = None if hasty.now else session.chain, False

        monkeypatch.setattr(postgres_module, "write_batch", write_or_not)
        store._append = append_or_not

    assert "lost" in await lived(postgres, 2.0, plant)


@played
async def test_controls_that_are_not_read_are_found(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that neither refreshes nor compares decides on after a kill."""

    def plant(servers: list[DecisionServer]) -> None:
        monkeypatch.setattr(postgres_batch, "SELECT_CONTROLS", "SELECT %s::text[], %s::text[] LIMIT 0")
        monkeypatch.setattr(servers[1], "refresh", lambda: None)

    assert {"not_in_effect", "disobeyed"} <= await lived(postgres, 2.0, plant)


@played
async def test_a_seal_that_is_skipped_is_found(postgres: str) -> None:
    """A learner that leaves out the rows of every other seal learns another state, and servers decide by it."""

    def plant(servers: list[DecisionServer]) -> None:
        for server in servers:
            learner, turn = server.learner, itertools.cycle([True, False])
            restore = learner.restore_fold

            def restored(*about: Any, restore: Any = restore, turn: Any = turn) -> Any:
                fold = restore(*about)
                take = fold.take

                def skipping(events: Any) -> None:
                    kinds = {event.kind for event in events}
                    if next(turn) and "problem" not in kinds and "outcome" in kinds:
                        fold.seq = events[-1].seq
                    else:
                        take(events)

                fold.take = skipping
                return fold

            learner.restore_fold = restored  # type: ignore[method-assign]
            learner.folds.clear()

    assert "fold" in await lived(postgres, 2.0, plant)
