"""The order of the log: by seals. Histories are in `test_histories`, and planted bugs in `test_simulated`."""

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.problem.refusal import refused
from tests.server.store.append_requests import decision, log_of, sealed, sound

from stagewise.problem.errors import ErrorCode
from stagewise.server.store.base import StoreUnavailable

psycopg = pytest.importorskip("psycopg")
from stagewise.server.store import postgres as postgres_module  # noqa: E402
from stagewise.server.store import postgres_transactions as postgres_batch  # noqa: E402
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
