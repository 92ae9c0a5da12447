"""Counts catch up with their logs by themselves, however rarely somebody looks."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.server_helpers import NAME, played, serve_problem, user

from stagewise.problem.errors import ErrorCode
from stagewise.server import log_statistics
from stagewise.server.decision_server import DecisionServer


def soon(holds: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def follows(server: DecisionServer) -> bool:
    """Say whether a thread follows the logs of a server."""
    return server.statistics_updater._thread is not None and server.statistics_updater._thread.is_alive()


def caught_up(server: DecisionServer) -> bool:
    """Say whether a count has all rows, without looking as a page or a scrape does."""
    return server.statistics_updater._statistics[NAME].seq == server.store.head(NAME).seq


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look takes in little, and the thread comes often."""
    monkeypatch.setattr(log_statistics, "MAX_ROWS_PER_READ", 10)
    monkeypatch.setattr(log_statistics, "BATCH_SIZE", 7)
    monkeypatch.setattr(log_statistics, "UPDATE_INTERVAL", 0.01)


@played
async def test_one_look_is_enough_to_be_up_to_date_soon_and_later(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        await server.decide_many(NAME, [user() for _ in range(100)])
        server.figures(NAME)
        assert soon(lambda: caught_up(server))
        await server.decide_many(NAME, [user() for _ in range(100)])
        assert soon(lambda: caught_up(server)), "rows that came after the look"
        told = server.figures(NAME)
        assert (told["lag_rows"], told["decisions"]) == (0, 200)
    assert not follows(server)


@played
async def test_nobody_counts_where_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_statistics, "IDLE_TIMEOUT", 0.0)
    async with serve_problem(tmp_path) as server:
        await server.decide_many(NAME, [user() for _ in range(100)])
        assert not follows(server)
        behind = server.figures(NAME)["lag_rows"]
        assert soon(lambda: not follows(server))
        assert 80 < server.figures(NAME)["lag_rows"] < behind, "each look takes in some"


@played
async def test_a_store_that_is_away_for_a_while_is_followed_again(tmp_path: Path) -> None:
    async with serve_problem(tmp_path) as server:
        server.figures(NAME)
        server.learner.stop()
        read, tried = server.store.events, threading.Event()

        def away(*asked: object) -> list[object]:
            tried.set()
            raise log_statistics.StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the store is away")

        server.store.events = away  # type: ignore[method-assign, assignment]
        await server.decide_many(NAME, [user() for _ in range(50)])
        assert tried.wait(30)
        assert not caught_up(server)
        server.store.events = read  # type: ignore[method-assign]
        assert soon(lambda: caught_up(server))
