"""Several servers on one PostgreSQL: one learns, another takes over when it dies, and decisions go on meanwhile."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.server.server_helpers import NAME, check_fold, learned, played, serve_problem, user

from stagewise.server.store.migrate import open_store

psycopg = pytest.importorskip("psycopg")
from stagewise.server.store.postgres import TRY_LEAD  # noqa: E402

HERE = Path(__file__).parents[2]


class Taker:
    """A server in a process of its own."""

    def __init__(self, address: str, name: str) -> None:
        words = [sys.executable, "-m", "tests.server.server_process", address, name]
        self.process = subprocess.Popen(words, cwd=HERE, stdout=subprocess.PIPE, text=True)
        self.last: dict[str, Any] = {"leads": False, "state": 0, "made": 0}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.last = json.loads(line)

    def end(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()


def until(what: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@contextmanager
def led_by_nobody(address: str) -> Iterator[threading.Event]:
    """Queue for the learner's lock, to have it when its holder dies; yield what says that this is so."""
    held, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with psycopg.connect(address) as connection:
            connection.execute(TRY_LEAD.replace("pg_try_", "pg_").encode())
            held.set()
            enough.wait(60.0)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        yield held
    finally:
        enough.set()
        holder.join()


def queued(address: str) -> bool:
    """Say whether somebody waits for the learner's lock."""
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT 1 FROM pg_locks WHERE classid = 7301 AND NOT granted").fetchone() is not None


def test_another_learner_takes_over_and_decisions_go_on_meanwhile(postgres: str) -> None:
    open_store(postgres).close()
    takers = [Taker(postgres, f"pod-{i}") for i in range(2)]
    try:
        until(lambda: all(one.last["state"] > 20 for one in takers), 60.0)
        assert [one.last["leads"] for one in takers].count(True) == 1
        dead, alive = sorted(takers, key=lambda one: not one.last["leads"])
        with led_by_nobody(postgres) as held:
            until(lambda: queued(postgres), 20.0)
            os.kill(dead.process.pid, signal.SIGKILL)
            until(held.is_set, 20.0)
            time.sleep(1.0)  # what the dead one has published is read
            made, state = alive.last["made"], alive.last["state"]
            until(lambda: alive.last["made"] > made + 20, 20.0)
            assert (alive.last["state"], alive.last["leads"]) == (state, False), "nobody learns, and decisions go on"
        until(lambda: alive.last["leads"] and alive.last["state"] > state, 5.0)
    finally:
        for one in takers:
            one.end()
    with closing(open_store(postgres)) as store:
        check_fold(store)


@played
async def test_a_server_that_only_decides_follows_the_one_that_learns(postgres: str) -> None:
    async with serve_problem(postgres, alone=False) as first, serve_problem(postgres, alone=False) as second:
        for i in range(20):
            await second.decide(NAME, user(f"u-{i}"))
        await learned(first)
        assert (first.learner.is_leader, second.learner.is_leader) == (True, False)
        await learned(second)
        dry = [await server.decide(NAME, user("x", dry_run=True)) for server in (first, second)]
        assert dry[0] == dry[1]
        await first.kill(NAME, "ada", "stop")
        made = await second.decide(NAME, user("y"))
        assert made.mode == "killed"
