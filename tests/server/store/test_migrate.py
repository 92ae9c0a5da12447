"""A store of every earlier version is taken forward when it is opened; one of a later version is refused."""

import re
import shutil
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.store.append_requests import decision, log_of, sealed, sound

from stagewise.problem.errors import ErrorCode
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.store.migrate import FOLDER, READABLE_FROM, read_migrations, to_postgres_sql
from stagewise.server.store.sqlite import SqliteStore

TOY = """CREATE TABLE toy (name TEXT PRIMARY KEY);
-- of 0001
INSERT INTO toy SELECT key FROM events WHERE experiment <> '';
"""
TOYS = "SELECT name FROM toy"
BROKEN = "CREATE TABLE half (name TEXT);\nINSERT INTO nowhere VALUES (1);\n"


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Store]:
    """A store that can be opened with other migrations."""
    if request.param == "sqlite":
        return partial(SqliteStore, tmp_path / "server.db")
    address = request.getfixturevalue("postgres")
    from stagewise.server.store.postgres import PostgresStore

    return partial(PostgresStore, address)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the store's migrations."""
    return Path(shutil.copytree(FOLDER, tmp_path / "migrations"))


def add(folder: Path, sql: str, name: str = "toy") -> None:
    (folder / f"{len(list(folder.iterdir())) + 1:04}_{name}.sql").write_text(sql, encoding="utf-8")


def test_from_every_earlier_version(opened: Callable[..., Store], folder: Path) -> None:
    """Version by version from nothing, with a row written in each: it is all there in the last."""
    steps = sorted(folder.iterdir())
    for step in steps[READABLE_FROM:]:
        step.rename(folder.parent / step.name)
    for number, step in enumerate(steps[READABLE_FROM - 1 :], READABLE_FROM):
        if number > READABLE_FROM:
            (folder.parent / step.name).rename(step)
        store = opened(migrations=folder)
        store.append([decision(f"of version {number}")])
        store.close()
    store = opened()
    assert sound(store) == len(steps) - READABLE_FROM + 1 >= 1
    store.close()


def test_a_next_file_is_applied_once(opened: Callable[..., Store], folder: Path) -> None:
    store = opened()
    store.append([decision("a")])
    store.close()
    add(folder, TOY)
    with refused(StoreUnavailable, ErrorCode.FILE_OF_OTHER_VERSION):
        opened(migrations=folder, read_only=True)
    for _ in range(2):
        store = opened(migrations=folder)
        assert store._all(TOYS) == [("a",)]
        store.append([decision("b")])
        store.close()
    store = opened(migrations=folder)
    sealed(store)
    store.close()
    reader = opened(migrations=folder, read_only=True)
    assert len(log_of(reader, "mail")) == 2
    reader.close()
    with refused(StoreUnavailable, ErrorCode.FILE_OF_OTHER_VERSION):
        opened()
    with refused(StoreUnavailable, ErrorCode.FILE_OF_OTHER_VERSION):
        opened(read_only=True)


def test_a_file_that_fails_changes_nothing(opened: Callable[..., Store], folder: Path) -> None:
    opened().close()
    add(folder, BROKEN, "broken")
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        opened(migrations=folder)
    next(folder.glob("*_broken.sql")).unlink()
    add(folder, "CREATE TABLE half (name TEXT);", "whole")
    store = opened(migrations=folder)
    assert store._all("SELECT * FROM half") == []
    store.close()


def test_files_are_numbered_without_a_gap(tmp_path: Path) -> None:
    (tmp_path / "0001_log.sql").write_text("")
    assert [step.number for step in read_migrations(tmp_path)] == [1]
    (tmp_path / "0003_log.sql").write_text("")
    with pytest.raises(ValueError, match="without a gap"):
        read_migrations(tmp_path)


def test_no_word_of_sqlite_s_alone_is_left_for_postgres() -> None:
    words = set(re.findall(r"\w+", " ".join(to_postgres_sql(step.sql) for step in read_migrations(FOLDER))))
    assert not words & {"STRICT", "ROWID", "TEXT", "INTEGER", "BLOB", "REAL"}
    assert {"text", "bigint", "bytea"} <= words


def test_several_servers_start_at_once(postgres: str) -> None:
    from stagewise.server.store.postgres import PostgresStore

    stores: list[Store] = []
    threads = [threading.Thread(target=lambda: stores.append(PostgresStore(postgres))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 6
    for store in stores:
        store.close()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database at all, but a text of some length\n" * 40)
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        SqliteStore(tmp_path / "text.db")
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        SqliteStore(tmp_path / "text.db", read_only=True)
    with refused(StoreUnavailable, ErrorCode.FILE_NOT_FOUND):
        SqliteStore(tmp_path / "none.db", read_only=True)
    assert not (tmp_path / "none.db").exists()
    sqlite3.connect(tmp_path / "other.db").close()
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        SqliteStore(tmp_path / "other.db", read_only=True)
