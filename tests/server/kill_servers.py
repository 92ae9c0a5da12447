"""Kill servers repeatedly, and print what they acknowledged: python -m tests.server.kill_servers STORE COUNT SEED.

One process imports everything, and forks a server for each kill. It decides, takes outcomes, learns and keeps snapshots
until it is killed: by its parent at a random instant, or by itself between two statements of the store. On PostgreSQL
two stand before one log, of which one learns: either dies, and the other goes on.
"""

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any

from tests.server.logs import problem
from tests.server.server_helpers import NAME, user

from stagewise.server import learner
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.store.migrate import open_store

OFTEN = 0.02  # seconds between two snapshots, so that many die while they write one


def killed_at(statement: int, store: Any) -> None:
    """Let the store's writer kill the process when it comes to its n-th statement."""
    left = [statement]

    def traced(*_: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if hasattr(store, "_open"):
        trace_file(store, traced)
    else:
        trace_server(store, traced)


def trace_file(store: Any, traced: Callable[..., None]) -> None:
    opened = store._open

    def opens(mode: str) -> sqlite3.Connection:
        connection: sqlite3.Connection = opened(mode)
        if mode != "ro":
            connection.set_trace_callback(traced)
        return connection

    store._open = opens


def trace_server(store: Any, traced: Callable[..., None]) -> None:
    connect = store._connect

    def connects() -> Any:
        connection = connect()
        execute = connection.execute

        def executes(*words: Any, **more: Any) -> Any:
            traced()
            return execute(*words, **more)

        connection.execute = executes
        return connection

    store._connect = connects
    store._close_idle()


async def play(server: DecisionServer, turn: int, out: int, rng: random.Random) -> None:
    """Decide and tell outcomes for ever, with every acknowledgement written down."""
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")

    async def client(number: int) -> None:
        for i in range(10**9):
            id_ = f"{turn}-{number}-{i}"
            made = await server.decide(NAME, user(id_, age=float(rng.randrange(100))))
            if not made.logged:
                continue
            say(out, ["decision", id_, made.action, made.probabilities])
            values = {"click": rng.randrange(2), "opt_out": int(rng.random() < 0.03), "complaint": 0}
            for name in rng.sample(sorted(values), 3):
                if rng.random() < 0.8:
                    await server.learn(NAME, OutcomeUpdate(id_, {name: values[name]}))
                    say(out, ["outcome", id_, name, values[name]])

    await asyncio.gather(*(client(number) for number in range(4)))


def say(out: int, told: list[Any]) -> None:
    os.write(out, json.dumps(told).encode() + b"\n")


class Child:
    """A server in a process of its own, and what it acknowledged."""

    def __init__(self, address: str, turn: int, seed: int) -> None:
        self.turn, self.told = turn, b""
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with suppress(BaseException):
                self.live(address, write, random.Random(seed * 1_000_003 + turn))
            os._exit(1)
        os.close(write)
        os.set_blocking(self.read, False)

    def live(self, address: str, out: int, rng: random.Random) -> None:
        """Be a server until death."""
        learner.SAVE_INTERVAL = learner.SHARE_INTERVAL = OFTEN
        store: Any = open_store(address)
        if rng.random() < 0.5:
            killed_at(rng.randrange(1, 60 if hasattr(store, "_open") else 200), store)
        asyncio.run(play(DecisionServer(store, alone="://" not in address), self.turn, out, rng))

    def listen(self) -> None:
        with suppress(BlockingIOError):
            self.told += os.read(self.read, 1 << 16)

    def end(self, beside: list["Child"], rng: random.Random, mean: float) -> None:
        """Kill it at a random instant, unless it kills itself before; print what it acknowledged."""
        wait, early = rng.expovariate(1 / mean), rng.random() < 0.3  # early: perhaps before it has begun
        deadline, gone, status = time.monotonic() + (wait if early else 20.0), 0, 0
        while not gone:
            for one in beside:
                one.listen()
            if self.told and not early:
                deadline, early = time.monotonic() + wait, True
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                deadline = float("inf")
            gone, status = os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.001)
        os.set_blocking(self.read, True)
        while more := os.read(self.read, 1 << 16):
            self.told += more
        os.close(self.read)
        sys.stdout.buffer.write(self.told[: self.told.rfind(b"\n") + 1])
        print(json.dumps(["killed" if os.WIFSIGNALED(status) else "ended", self.turn]), flush=True)


def main(address: str, count: int, seed: int) -> None:
    """Fork and kill so many servers; print what they acknowledged."""
    rng, turns, together = random.Random(seed), iter(range(count)), 2 if "://" in address else 1
    running: list[Child] = []
    while running := running + [Child(address, turn, seed) for turn in islice(turns, together - len(running))]:
        one = rng.choice(running)
        one.end(running, rng, 0.06 if together == 1 else 0.3)  # a leader that dies is followed by another
        running.remove(one)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
