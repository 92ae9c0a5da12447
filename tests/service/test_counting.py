"""Counts catch up with their logs by themselves, however rarely somebody looks."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.service.desks import NAME, desk_on, played, user

from stagewise.service import counting
from stagewise.service.desk import Desk


def soon(holds: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.01)
    return holds()


def follows(desk: Desk) -> bool:
    """Say whether a thread follows the logs of a desk."""
    return desk.counting._thread is not None and desk.counting._thread.is_alive()


def caught_up(desk: Desk) -> bool:
    """Say whether a count has all rows, without looking as a page or a scrape does."""
    return desk.counting._tallies[NAME].seq == desk.store.head(NAME).seq


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look takes in little, and the thread comes often."""
    monkeypatch.setattr(counting, "AT_ONCE", 10)
    monkeypatch.setattr(counting, "PORTION", 7)
    monkeypatch.setattr(counting, "EVERY", 0.01)


@played
async def test_one_look_is_enough_to_be_up_to_date_soon_and_later(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        await desk.decide_all(NAME, [user() for _ in range(100)])
        desk.figures(NAME)
        assert soon(lambda: caught_up(desk))
        await desk.decide_all(NAME, [user() for _ in range(100)])
        assert soon(lambda: caught_up(desk)), "rows that came after the look"
        told = desk.figures(NAME)
        assert (told["behind"], told["decisions"]) == (0, 200)
    assert not follows(desk)


@played
async def test_nobody_counts_where_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "WATCHED", 0.0)
    async with desk_on(tmp_path) as desk:
        await desk.decide_all(NAME, [user() for _ in range(100)])
        assert not follows(desk)
        behind = desk.figures(NAME)["behind"]
        assert soon(lambda: not follows(desk))
        assert 80 < desk.figures(NAME)["behind"] < behind, "each look takes in some"


@played
async def test_a_store_that_is_away_for_a_while_is_followed_again(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        desk.figures(NAME)
        desk.learner.stop()
        read, tried = desk.store.events, threading.Event()

        def away(*asked: object) -> list[object]:
            tried.set()
            raise counting.StoreDown("away")

        desk.store.events = away  # type: ignore[method-assign, assignment]
        await desk.decide_all(NAME, [user() for _ in range(50)])
        assert tried.wait(30)
        assert not caught_up(desk)
        desk.store.events = read  # type: ignore[method-assign]
        assert soon(lambda: caught_up(desk))
