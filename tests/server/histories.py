"""Kill servers and PostgreSQL, cut and slow their links, set their clocks: python -m tests.server.histories KILLS SEED.

Two servers stand before one log, each behind a road of its own, with clients that ask again with the same id until they
are answered. One process forks them, kills them or PostgreSQL at random instants, and starts what it killed. In the end
every client's history is held against the log; one line says what was killed and what is wrong.
"""

import asyncio
import json
import math
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from typing import Any

from tests.server.history import Call, History, find_violations
from tests.server.kill_servers import say
from tests.server.logs import DAY, problem
from tests.server.server_helpers import NAME, check_fold, learned, serve_problem, user
from tests.server.servers import Server
from tests.server.store.proxy import Proxy

from stagewise.problem.errors import StagewiseError
from stagewise.server import learner
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.store import base, postgres
from stagewise.server.store import postgres_transactions as postgres_batch
from stagewise.server.store.postgres import PostgresStore

CLIENTS = 3
SAVE_INTERVAL = 0.1  # seconds, so that many die while they save
NOW = postgres.NOW


class Life:
    """A server in a process of its own, and what its clients were told."""

    def __init__(self, address: str, turn: int, seed: int, operates: bool) -> None:
        self.operates, self.told = operates, b""
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with suppress(BaseException):
                live(address, write, random.Random(seed * 1_000_003 + turn), turn, operates)
            os._exit(1)
        os.close(write)
        os.set_blocking(self.read, False)

    def listen(self) -> None:
        with suppress(BlockingIOError):
            while more := os.read(self.read, 1 << 16):
                self.told += more

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        assert os.WIFSIGNALED(status), "it ended by itself"
        self.listen()
        os.close(self.read)

    @property
    def calls(self) -> list[Call]:
        """The calls; one that nobody answered may be in effect since it began, and is never over."""
        calls, begun = list[Call](), dict[float, Call]()
        for line in self.told.splitlines(keepends=True):
            if line.endswith(b"\n"):
                call = Call(*json.loads(line))
                if call.ended is None:
                    begun[call.began] = call._replace(ended=math.inf)
                else:
                    begun.pop(call.began, None)
                    calls.append(call)
        return [*calls, *begun.values()]


def live(address: str, out: int, rng: random.Random, turn: int, operates: bool) -> None:
    """Be a server until death."""
    learner.SAVE_INTERVAL = learner.SHARE_INTERVAL = SAVE_INTERVAL
    base.START_TIME += 1000 * rng.choice((0, 0, DAY, -DAY))  # the clock of this machine
    road = Proxy(address)
    while True:  # until PostgreSQL is up
        try:
            asyncio.run(play(DecisionServer(PostgresStore(road.address), alone=False), road, out, rng, turn, operates))
        except StagewiseError:
            time.sleep(0.02)


async def play(server: DecisionServer, road: Proxy, out: int, rng: random.Random, turn: int, operates: bool) -> None:
    """Decide, tell outcomes, kill and resume for ever, with every answer written down."""
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")

    async def insist(ask: Any, kind: str, id_: str) -> Any:
        began = time.monotonic()
        say(out, [kind, began, None, id_, None])
        while True:
            try:
                made = await ask()
            except StagewiseError:
                await asyncio.sleep(0.02)
                continue
            if made.receipt is not None or kind == "outcome":
                say(out, [kind, began, time.monotonic(), id_, made.receipt, getattr(made, "mode", "")])
                return made
            await asyncio.sleep(0.02)  # the safe action, which is not in the log

    async def client(number: int) -> None:
        for i in range(10**9):
            is_shared = rng.random() < 0.3  # the clients of both servers ask for it
            id_ = f"{int(time.monotonic() * 3)}-{number}" if is_shared else f"{turn}-{number}-{i}"
            await insist(lambda id_=id_: server.decide(NAME, user(id_)), "decision", id_)
            values = {"click": 1.0, "opt_out": 0.0} if is_shared else {"click": float(rng.random() < 0.3)}
            await insist(lambda id_=id_, values=values: server.learn(NAME, OutcomeUpdate(id_, values)), "outcome", id_)
            await asyncio.sleep(0.01)

    async def operator() -> None:
        for i in range(10**9) if operates else ():
            verb, began = ("kill", "resume")[i % 2], time.monotonic()
            say(out, [verb, began, None, "", None])
            with suppress(StagewiseError):
                await getattr(server, verb)(NAME, "ada", "a drill")
                say(out, [verb, began, time.monotonic(), "", None])
            await asyncio.sleep(0.1 + 0.3 * rng.random())

    async def trouble() -> None:
        while True:
            await asyncio.sleep(rng.expovariate(4.0))
            match rng.randrange(4):
                case 0:
                    road.cut()
                case 1:
                    road.cut_after = b"COMMIT"
                    await asyncio.sleep(0.05)
                    road.cut_after = None
                case 2:
                    road.delay = 0.01
                    await asyncio.sleep(0.2)
                    road.delay = 0.0
                case 3:  # the clock of PostgreSQL's machine
                    postgres.NOW = postgres_batch.NOW = f"{NOW} + {rng.choice((0, 3, -3)) * DAY}"

    await asyncio.gather(*(client(number) for number in range(CLIENTS)), operator(), trouble())


def crash(server: Server, rng: random.Random) -> str:
    """Crash PostgreSQL, wait, and start it; return how it crashed."""
    how = rng.choice(("immediate shutdown", "SIGKILL of the postmaster"))
    if how == "immediate shutdown":
        server.stop("immediate")
    else:
        os.kill(int((server.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    time.sleep(0.2 * rng.random())
    for attempt in range(100):
        try:
            server.start()
            break
        except AssertionError:  # processes of the old one are still there
            assert attempt < 99
            time.sleep(0.1)
    return how


def pause(lives: list[Life], seconds: float) -> None:
    """Wait, and read what servers say."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for one in lives:
            one.listen()
        time.sleep(0.005)


async def learn_rest(address: str) -> None:
    async with serve_problem(address) as server:
        await learned(server, 120.0)


def main(kills: int, seed: int) -> None:
    """Kill so often, check, and print the result."""
    rng, history, killed, lives, turn = random.Random(seed), History(), Counter[str](), list[Life](), 0
    server = Server()
    try:
        address = server.fresh()
        while killed.total() < kills:
            while len(lives) < 2:
                turn += 1
                lives.append(Life(address, turn, seed, operates=not any(one.operates for one in lives)))
            if rng.random() < 0.8:  # mostly once both answer
                end = time.monotonic() + 30.0
                while not all(one.told.count(b"\n") > CLIENTS + 4 for one in lives) and time.monotonic() < end:
                    pause(lives, 0.01)
            pause(lives, rng.expovariate(1 / 0.15))
            if rng.random() < 0.15:
                killed[crash(server, rng)] += 1
            else:
                one = lives.pop(rng.randrange(2))
                one.kill()
                history.calls += one.calls
                killed["server"] += 1
        for one in lives:
            one.kill()
            history.calls += one.calls
        asyncio.run(learn_rest(address))
        with closing(PostgresStore(address)) as store:
            violations = find_violations(history, store)
            check_fold(store)
            rows = store.count_rows(2**62)
        calls = Counter(call.kind for call in history.calls if call.receipt is not None)
        print(json.dumps({"killed": killed, "acknowledged": calls, "rows": rows, "violations": sorted(violations)}))
    finally:
        server.remove()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
