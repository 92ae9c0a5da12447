"""Ready means that decisions can be written: on a real desk whose store is locked, gone, full, read-only or down."""

import math
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.server_helpers import played
from tests.server.servers import Server
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
