"""The page of a real desk: its button stops decisions, here and in another process; and the simulated users come."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.desks import NAME, desk_on, played, user
from tests.service.page.serving import browsing, page_of, tab_of

import stagewise as sw
from stagewise.cli.demo import Population, Stream
from stagewise.service.keys import Keys
from stagewise.service.messages import Outcome

EXAMPLE = Path(__file__).parents[3] / "examples" / "notifications.toml"


@pytest.fixture
def browser() -> Iterator[Any]:
    with browsing() as made:
        yield made


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    place, root = str(tmp_path / "desk.db"), Path(__file__).parents[3]
    told = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    asyncio.run(opened_once(tmp_path))
    command = [sys.executable, "-m", "tests.service.page.watcher", place, NAME, "6"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=told) as process:
        yield process
        process.kill()


async def opened_once(place: Path) -> None:
    async with desk_on(place):
        pass


def press(tab: Any, what: str, reason: str) -> None:
    tab.click(f"[data-open=do-{what}]")
    tab.fill(f"#{what}-reason", reason)
    tab.click(f"#do-{what} button:not([type])")


def test_the_button_stops_decisions_and_another_process_sees_it_within_a_second(
    tmp_path: Path, browser: Any, watcher: subprocess.Popen[str]
) -> None:
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "ready\n"
    loop, seen = asyncio.new_event_loop(), list[str]()
    holding = desk_on(tmp_path)
    desk = loop.run_until_complete(holding.__aenter__())
    try:
        key = Keys(desk.store).add("ada", "admin")
        with page_of(desk, Keys(desk.store)) as address, tab_of(browser, address, key=key) as tab:
            tab.goto(f"{address}/e/{NAME}")
            for i in range(3):  # one of three: this machine may be busy
                press(tab, "kill", f"test {i}")
                tab.wait_for_selector("h1 >> text=Stopped")
                seen.append(watcher.stdout.readline())
                made = loop.run_until_complete(desk.decide(NAME, user(f"u-{i}")))
                assert (made.action, made.mode, made.fallback) == ("nothing", "killed", f"killed by ada: test {i}")
                press(tab, "revive", "over")
                tab.wait_for_selector("[data-open=do-kill]")
                assert watcher.stdout.readline().endswith("None\n")
            assert tab.troubles == []
    finally:
        loop.run_until_complete(holding.__aexit__(None, None, None))
        loop.close()
    assert [line.split(" ", 1)[1] for line in seen] == [f"killed by ada: test {i}\n" for i in range(3)]
    assert min(int(line.split(" ", 1)[0]) for line in seen) < 1000


@played
async def test_the_page_shows_what_a_real_desk_did(tmp_path: Path) -> None:
    async with desk_on(tmp_path) as desk:
        for i in range(3):
            await desk.decide(NAME, user(f"u-{i}"))
        await desk.learn(NAME, Outcome("u-0", {"click": 1.0, "opt_out": 0.0, "complaint": 0.0}))
        told = desk.figures(NAME)
        assert (told["decisions"], told["behind"]) == (3, 0)
        assert [one["decision_id"] for one in told["last"]] == ["u-2", "u-1", "u-0"]
        assert told["reward"]["safe"]["count"] == 1
        assert told["mode"] == "live"
        assert {one["name"] for one in told["health"]} >= {"limit of opt_out"}
        await desk.kill(None, "ada", "everything")
        told = desk.figures(NAME)
        assert told["killed_everywhere"]
        assert told["controls"][0]["where"] == "all experiments"


class Remembered:
    """A client that says yes, and remembers what it was told."""

    def __init__(self, action: str) -> None:
        self.action, self.asked, self.told = action, list[Any](), list[Any]()

    def decide_all(self, contexts: Any) -> list[Any]:
        self.asked += contexts
        first = len(self.asked) - len(contexts)
        return [sw_decision(f"d{first + i}", self.action) for i in range(len(contexts))]

    def learn_all(self, outcomes: Any) -> None:
        self.told += outcomes


def sw_decision(id_: str, action: str) -> Any:
    from stagewise.service.client import Decision

    return Decision(id_, action, {action: 1.0}, logged=True)


def test_simulated_users_are_such_as_the_problem_declares_and_tell_late_or_never() -> None:
    problem = sw.Problem.load(EXAMPLE)
    client: Any = Remembered("reminder")
    stream = Stream(Population(problem, 3), client, 3)
    for now in range(100):
        stream.turn(20, float(now))
    assert len(client.asked) == 2000
    for context in client.asked[:50]:
        problem.offered(context)  # is not refused
    assert {context["country"] for context in client.asked} == {"NZ", "PT"}
    clicks = [one for one in client.told if "click" in one]
    left = [one for one in client.told if "opt_out" in one]
    assert 0.85 < len(clicks) / 2000 < 0.98
    assert all(one["opt_out"] == 1.0 for one in left)  # nobody tells that he stays
    assert 0.015 < len(left) / 2000 < 0.05  # a reminder costs 1.6 times what is allowed
    assert any(one.get("shown") is False for one in client.told)
