"""Ready means that decisions can be written: on a real desk whose store is locked, gone, full, read-only or down."""

import math
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.server_helpers import played
from tests.server.servers import Server, small_disk
from tests.server.web.real import Real, real

from stagewise.server.store.sqlite import SqliteStore
from stagewise.server.writer import StoreHealth

USER = {"context": {"age": 34}}
DECIDE, METRICS = "/v1/demo/decisions", "/metrics"
LAST_WRITE, TRY = math.inf, 0.0  # seconds for which the last write holds: for ever, or not at all


@contextmanager
def locked(store: SqliteStore) -> Any:
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


@contextmanager
def gone(store: SqliteStore) -> Any:
    away = store.path.with_name("away")
    store.path.rename(away)
    yield
    away.rename(store.path)


@contextmanager
def set_by(store: SqliteStore, pragma: str) -> Any:
    """Open every connection that writes with a setting."""
    plain = store._open

    def opened(mode: str) -> sqlite3.Connection:
        connection = plain(mode)
        if mode == "rw":
            connection.execute(pragma)
        return connection

    store._open, store._writer = opened, None  # type: ignore[method-assign]
    yield
    store._open, store._writer = plain, None  # type: ignore[method-assign]


@contextmanager
def read_only(store: SqliteStore) -> Any:
    with set_by(store, "PRAGMA query_only = on"):
        yield


@asynccontextmanager
async def still(place: Path | str) -> AsyncIterator[Real]:
    """Open a desk whose learner is stopped: it says so too when it cannot write, and is not what is tested."""
    async with real(place) as desk:
        desk.desk.learner.stop()
        yield desk


async def held_to(desk: Real, ready: bool, why: str = "ready") -> None:
    """Hold /readyz and /metrics to what is so; counters are there in any case."""
    said = await desk.reader.get("/readyz")
    assert (said.status, said.plain["ready"]) == ((200, True) if ready else (503, False))
    assert why in said.plain["why"]
    page = await desk.reader.get(METRICS)
    assert page.status == 200
    lines = page.content.decode().splitlines()
    assert f"stagewise_ready {float(ready)}" in lines
    assert any(line.startswith("stagewise_decisions_total{") for line in lines)
    assert any(line.startswith('stagewise_killed{experiment="demo"}') for line in lines)


@pytest.mark.parametrize("holds", [LAST_WRITE, TRY])
@pytest.mark.parametrize(("fault", "why"), [(locked, "locked"), (gone, "was removed"), (read_only, "readonly")])
@played
async def test_a_file_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any], why: str, holds: float
) -> None:
    monkeypatch.setattr(StoreHealth, "max_age_s", holds)
    monkeypatch.setattr(SqliteStore, "timeout", 0.05)
    async with still(tmp_path) as desk:
        await desk.writer.post(DECIDE, USER)
        await held_to(desk, True)
        with fault(desk.store):
            if holds == LAST_WRITE:
                assert (await desk.writer.post(DECIDE, USER)).status == 503
            await held_to(desk, False, why)
        if holds == LAST_WRITE:
            assert (await desk.writer.post(DECIDE, USER)).status == 200
        await held_to(desk, True)


@played
async def test_a_file_that_may_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreHealth, "max_age_s", LAST_WRITE)
    async with still(tmp_path) as desk:
        assert isinstance(desk.store, SqliteStore)
        await desk.writer.post(DECIDE, USER)
        with set_by(desk.store, "PRAGMA max_page_count = 60"):
            await desk.writer.post(DECIDE, [USER] * 200)
            while (await desk.writer.post(DECIDE, USER)).status == 200:
                pass
            await held_to(desk, False, "full")
        await desk.writer.post(DECIDE, USER)
        await held_to(desk, True)


@played
async def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreHealth, "max_age_s", TRY)
    with small_disk(tmp_path / "disk", "8m") as place:
        async with still(place) as desk:
            await desk.writer.post(DECIDE, USER)
            await held_to(desk, True)
            (place / "filling").write_bytes(bytes(shutil.disk_usage(place).free))
            await held_to(desk, False, "full")
            (place / "filling").unlink()
            await held_to(desk, True)


@pytest.mark.parametrize("holds", [LAST_WRITE, TRY])
@played
async def test_a_server_that_is_down(
    postgres_server: Server, postgres: str, monkeypatch: pytest.MonkeyPatch, holds: float
) -> None:
    monkeypatch.setattr(StoreHealth, "max_age_s", holds)
    async with still(postgres) as desk:
        await desk.writer.post(DECIDE, USER)
        await held_to(desk, True)
        postgres_server.stop()
        try:
            if holds == LAST_WRITE:
                assert (await desk.writer.post(DECIDE, USER)).status == 503
            await held_to(desk, False, "cannot be written")
        finally:
            postgres_server.start()
        assert (await desk.writer.post(DECIDE, USER)).status == 200
        await held_to(desk, True)


@pytest.mark.parametrize("holds", [LAST_WRITE, TRY])
@played
async def test_a_server_for_reading_only(postgres: str, monkeypatch: pytest.MonkeyPatch, holds: float) -> None:
    import psycopg

    monkeypatch.setattr(StoreHealth, "max_age_s", holds)
    name, others = postgres.rpartition("/")[2], "pid <> pg_backend_pid() AND datname = current_database()"

    def only(reading: str) -> None:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = {reading}")
            connection.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {others}")

    async with still(postgres) as desk:
        await desk.writer.post(DECIDE, USER)
        only("on")
        if holds == LAST_WRITE:
            assert (await desk.writer.post(DECIDE, USER)).status == 503
        await held_to(desk, False, "read-only")
        only("off")
        assert (await desk.writer.post(DECIDE, USER)).status == 200
        await held_to(desk, True)


@contextmanager
def small_database(server: Server) -> Any:
    """Give the address of a database on a disk of its own, and that disk."""
    import psycopg

    with (
        small_disk(server.folder / "small", "24m") as disk,
        psycopg.connect(server.url("postgres"), autocommit=True) as connection,
    ):
        if server.user is not None:
            shutil.chown(disk, server.user.pw_uid, server.user.pw_gid)
        connection.execute(f"CREATE TABLESPACE small_disk LOCATION '{disk}'")
        connection.execute("CREATE DATABASE small_disk TABLESPACE small_disk")
        yield server.url("small_disk"), disk
        connection.execute("DROP DATABASE small_disk WITH (FORCE)")
        connection.execute("DROP TABLESPACE small_disk")


@played
async def test_a_full_disk_of_a_server(postgres_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoreHealth, "max_age_s", LAST_WRITE)
    with small_database(postgres_server) as (address, disk):
        async with still(address) as desk:
            await desk.writer.post(DECIDE, USER)
            (disk / "filling").write_bytes(bytes(shutil.disk_usage(disk).free))
            while (await desk.writer.post(DECIDE, USER)).status == 200:
                pass
            await held_to(desk, False, "No space left on device")
            (disk / "filling").unlink()
            assert (await desk.writer.post(DECIDE, USER)).status == 200
            await held_to(desk, True)


@played
async def test_a_table_that_somebody_else_locks(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setattr(StoreHealth, "max_age_s", TRY)
    async with still(postgres) as desk:
        await desk.writer.post(DECIDE, USER)
        with psycopg.connect(postgres) as other:
            other.execute("LOCK TABLE migrations IN ACCESS EXCLUSIVE MODE")
            await held_to(desk, False, "cannot be written")
        await held_to(desk, True)
