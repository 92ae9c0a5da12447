"""Kill a desk again and again, and print what it had acknowledged: python -m tests.service.kills STORE COUNT SEED.

One process imports everything, and forks a desk for each kill. It decides, takes outcomes and learns until it is
killed: by its parent at a random instant, or by itself between two statements of the store.
"""

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from typing import Any

from tests.service.desks import NAME, user
from tests.service.logs import problem

from stagewise.service.desk import Desk
from stagewise.service.messages import Asked, Decided, Outcome
from stagewise.service.records import NEW
from stagewise.service.store.opened import open_store


def killed_at(statement: int, store: Any) -> None:
    """Let the store's writer kill the process when it comes to its n-th statement."""
    left, opened = [statement], store._open

    def traced(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def opens(mode: str) -> sqlite3.Connection:
        connection: sqlite3.Connection = opened(mode)
        if mode != "ro":
            connection.set_trace_callback(traced)
        return connection

    store._open = opens


async def long(desk: Desk, wanted: Asked) -> Decided:
    """Decide as the long way of a request does."""
    return await desk.decide(NAME, wanted)


async def short(desk: Desk, wanted: Asked) -> Decided:
    """Decide as the short way does: the loop begins the transaction, the writer makes it durable."""
    (made,) = desk.make_all(desk.experiment(NAME), [(str(wanted.decision_id), wanted)])
    if made is None:
        return await long(desk, wanted)
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    desk.writer.append_soon([made.ask], done.set_result)
    settled = await done
    desk.learner.wake()
    return desk.written(made) if isinstance(settled, list) and settled[0].verdict == NEW else await long(desk, wanted)


async def play(desk: Desk, turn: int, out: int, rng: random.Random) -> None:
    """Decide and tell outcomes for ever, with every acknowledgement written down."""
    await desk.start()
    await desk.open(NAME, problem(), "ada", "a test")

    async def client(number: int) -> None:
        for i in range(10**9):
            id_ = f"{turn}-{number}-{i}"
            wanted = user(id_, age=float(rng.randrange(100)))
            made = await (short if hasattr(desk.store, "path") and rng.random() < 0.5 else long)(desk, wanted)
            if not made.logged:
                continue
            say(out, ["decision", id_, made.action, made.probabilities])
            values = {"click": rng.randrange(2), "opt_out": int(rng.random() < 0.03), "complaint": 0}
            for name in rng.sample(sorted(values), 3):
                if rng.random() < 0.8:
                    await desk.learn(NAME, Outcome(id_, {name: values[name]}))
                    say(out, ["outcome", id_, name, values[name]])

    await asyncio.gather(*(client(number) for number in range(4)))


def say(out: int, told: list[Any]) -> None:
    os.write(out, json.dumps(told).encode() + b"\n")


def child(address: str, turn: int, out: int, seed: int) -> None:
    """Be a desk until death."""
    rng = random.Random(seed)
    store: Any = open_store(address)
    if hasattr(store, "_open") and rng.random() < 0.5:
        killed_at(rng.randrange(1, 60), store)
    asyncio.run(play(Desk(store), turn, out, rng))


def main(address: str, count: int, seed: int) -> None:
    """Fork and kill so many desks; print what they acknowledged."""
    rng = random.Random(seed)
    for turn in range(count):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            with suppress(BaseException):
                child(address, turn, write, seed * 1_000_003 + turn)
            os._exit(1)
        os.close(write)
        wait, early = rng.expovariate(1 / 0.06), rng.random() < 0.3  # early: perhaps before it has begun
        deadline = time.monotonic() + (wait if early else 20.0)
        os.set_blocking(read, False)
        told = b""
        while True:
            with suppress(BlockingIOError):
                told += os.read(read, 1 << 16)
            if told and not early:
                deadline, early = time.monotonic() + wait, True
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                break
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                deadline = float("inf")
            time.sleep(0.001)
        os.set_blocking(read, True)
        while more := os.read(read, 1 << 16):
            told += more
        os.close(read)
        sys.stdout.buffer.write(told[: told.rfind(b"\n") + 1])
        print(json.dumps(["killed" if os.WIFSIGNALED(status) else "ended", turn]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
