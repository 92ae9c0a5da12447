"""The page of a real desk: its button stops decisions, here and in another process; and the simulated users come."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.browser import launched
from tests.server.logs import problem
from tests.server.page.serving import served, tab_of
from tests.server.server_helpers import NAME, user

import stagewise as sw
from stagewise.cli.demo import Population, UserStream, start_demo_users
from stagewise.server.access_keys import AccessKeys
from stagewise.server.client import Client, DecisionResponse
from stagewise.server.decision_server import DecisionServer
from stagewise.server.experiments import REFRESH_INTERVAL
from stagewise.server.store.migrate import open_store
from stagewise.server.web.app import App, HttpSettings

EXAMPLE = Path(__file__).parents[3] / "examples" / "notifications.toml"


@pytest.fixture
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@contextmanager
def watching(place: str) -> Iterator[Callable[[], str]]:
    """Start the other process; yield what waits for its next line."""
    root = Path(__file__).parents[3]
    told = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    command = [sys.executable, "-m", "tests.server.page.watcher", place, NAME, "4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=told) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process.stdout.readline
        finally:
            process.kill()


def press(tab: Any, what: str, reason: str) -> None:
    tab.click(f"[data-open=do-{what}]")
    tab.fill(f"#{what}-reason", reason)
    tab.click(f"#do-{what} button:not([type])")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    return str(tmp_path / "server.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


def test_the_button_stops_decisions_in_another_process_too(place: str, browser: Any) -> None:
    desk = DecisionServer(open_store(place), alone="://" not in place)
    keys = AccessKeys(desk.store)
    key = keys.add("ada", "admin")

    async def prepare() -> None:
        await desk.open(NAME, problem(), "ada", "a test")

    app = App(desk, keys, HttpSettings(log=False), prepare)
    with (
        served(app, "on") as address,
        watching(place) as line,
        Client(address, key, NAME, "nothing", timeout=60.0) as client,
        tab_of(browser, address, key=key) as tab,
    ):
        tab.goto(f"{address}/e/{NAME}")
        for i in range(2):
            press(tab, "kill", f"test {i}")
            tab.wait_for_selector("h1 >> text=Stopped")
            assert line().endswith(f"ada: test {i}\n")
            made = client.decide(user().context)
            assert (made.action, made.reason, made.logged) == ("nothing", "killed", True)
            press(tab, "resume", "over")
            tab.wait_for_selector("[data-open=do-kill]")
            assert line() == "None\n"
        assert tab.troubles == []
    assert 2 * REFRESH_INTERVAL < 1.0  # seconds: in another process it holds within one


class Remembered:
    """A client that says yes, and remembers what it was told."""

    def __init__(self, action: str) -> None:
        self.action, self.asked, self.told = action, list[Any](), list[Any]()

    def decide_many(self, contexts: Any) -> list[Any]:
        self.asked += contexts
        first = len(self.asked) - len(contexts)
        return [
            DecisionResponse(f"d{first + i}", self.action, {self.action: 1.0}, logged=True)
            for i in range(len(contexts))
        ]

    def learn_many(self, outcomes: Any) -> None:
        self.told += outcomes


def test_simulated_users_are_such_as_the_problem_declares_and_tell_late_or_never() -> None:
    declared = sw.Problem.load(EXAMPLE)
    client: Any = Remembered("reminder")
    stream = UserStream(Population(declared, 3), client, 3)
    for now in range(100):
        stream.step(20, float(now))
    assert len(client.asked) == 2000
    for request in client.asked[:50]:
        declared.encode_context(request.context)  # is not refused
    assert {request.context["country"] for request in client.asked} == {"NZ", "PT"}
    clicks = [one for one in client.told if "click" in one]
    left = [one for one in client.told if "opt_out" in one]
    assert 0.85 < len(clicks) / 2000 < 0.98
    assert all(one["opt_out"] == 1.0 for one in left)  # nobody tells that he stays
    allowed = float(declared.to_dict()["limits"]["opt_out"]["at_most"])
    assert 1.1 * allowed < len(left) / 2000 < 2.0 * allowed  # a reminder costs 1.6 times what is allowed
    assert any(one.get("shown") is False for one in client.told)


def test_simulated_users_ask_a_running_desk_by_http_until_they_are_stopped(tmp_path: Path) -> None:
    desk = DecisionServer(open_store(str(tmp_path / "server.db")))
    keys = AccessKeys(desk.store)

    async def prepare() -> None:
        await desk.open("notifications", sw.Problem.load(EXAMPLE), "ada", "a test")

    with served(App(desk, keys, HttpSettings(log=False), prepare), "on") as address:
        stop = start_demo_users(["notifications"], address, desk, keys, rate=40.0)
        try:
            for _ in range(3000):
                if desk.store.events_of_kind("notifications", "outcome"):
                    break
                time.sleep(0.01)
            assert desk.store.events_of_kind("notifications", "outcome")
        finally:
            stop()
        told = desk.figures("notifications")
        assert told["decisions"] > 3
        assert {row.note for row in keys.list_keys()} == {"simulated users"}
