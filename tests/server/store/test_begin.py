"""A transaction that one thread begins and another makes durable: all of it or nothing, and nobody in between."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.store.append_requests import control, decision, outcome, problem, sound

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.sqlite import SqliteStore
from stagewise.server.store.sqlite_batch import MAX_CACHED_SIZES, MAX_STATEMENT_ROWS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "server.db")
    store.append([problem(), decision("before"), outcome("before", click=1.0)])
    yield store
    store.close()


def test_nothing_is_there_until_it_is_finished(store: SqliteStore) -> None:
    asks = [decision("a"), outcome("a", click=0.0), decision("b")]
    finish = store.begin(asks)
    assert finish is not None
    assert (store.head("mail").decision_count, len(store.events("mail"))) == (1, 3)
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.extend(one.status for one in finish()))
    thread.start()
    thread.join()
    assert told == ["new"] * 3
    assert [one.status for one in store.append(asks)] == ["duplicate"] * 3
    assert sound(store) == 6


def test_who_cannot_begin_at_once_begins_nothing(store: SqliteStore) -> None:
    finish = store.begin([decision("a")])
    assert finish is not None
    assert store.begin([decision("b")]) is None, "another transaction is under way"
    finish()
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    assert store.begin([decision("b")]) is None, "another program writes"
    assert time.monotonic() - began < store.timeout / 2, "it has not waited for that"
    other.close()
    assert store.append([decision("b")])[0].status == "new"
    away = store.path.rename(store.path.with_name("away"))
    assert store.begin([decision("c")]) is None, "the file is gone"
    away.rename(store.path)
    assert sound(store) == 5


def test_others_wait_for_the_end(store: SqliteStore) -> None:
    finish, verdicts = store.begin([decision("a")]), list[str]()
    assert finish is not None
    thread = threading.Thread(target=lambda: verdicts.append(store.append([decision("a"), decision("b")])[0].status))
    thread.start()
    time.sleep(0.05)
    assert not verdicts
    finish()
    thread.join()
    assert verdicts == ["duplicate"]
    assert sound(store) == 5


def test_what_is_begun_and_forgotten_was_never_written(store: SqliteStore) -> None:
    finish = store.begin([decision("a")])
    assert finish is not None
    del finish
    assert store.find("mail", "decision", "a") is None
    assert store.append([decision("a")])[0].status == "new"
    assert sound(store) == 4


def test_a_flush_that_fails_acknowledges_nothing(store: SqliteStore) -> None:
    connection = store._writer
    finish = store.begin([decision("a")])
    assert finish is not None
    assert connection is not None
    connection.close()  # as if the disk were gone
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        finish()
    assert store.append([decision("a")])[0].status == "new"
    assert sound(store) == 4


@pytest.mark.parametrize("place", [0, 3, 70])
def test_a_key_that_is_there_is_found_wherever_it_stands(store: SqliteStore, place: int) -> None:
    """Keys are not looked for first: the file refuses one that it has, and then nothing of the first try is left."""
    asks = [decision(f"d{n}") for n in range(MAX_CACHED_SIZES + MAX_STATEMENT_ROWS)]
    asks[place] = decision("before")
    verdicts = [one.status for one in store.append(asks)]
    assert verdicts == ["duplicate" if n == place else "new" for n in range(len(asks))]
    assert store.append([decision("before", action="other")])[0].status == "conflict"
    assert sound(store) == 3 + len(asks) - 1


def test_a_retry_is_a_retry_whatever_changed_meanwhile(store: SqliteStore) -> None:
    """By old controls nothing new can be written, but what was written once is answered."""
    first = store.append([decision("a", control=(1, 0))])
    store.append([control()])
    again: list[AppendRequest] = [decision("a", control=(1, 0)), decision("b", control=(1, 0))]
    told = store.append(again)
    assert [one.status for one in told] == ["duplicate", "stale"]
    assert told[0].event == first[0].event
