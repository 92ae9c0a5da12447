"""Decisions a second of one experiment by several deciders, each a process of its own with clients of its own.

    python benchmarks/deciders.py                    # SQLite and PostgreSQL with one decider: bar .6
    python benchmarks/deciders.py --slow 20          # commits of 20 ms, N = 1, 2, 4, 8 deciders: bar .8 N
    python benchmarks/deciders.py --slow 20 --clients 4 --seconds 8

A client asks, waits until its decision is durable, and asks again. PostgreSQL is started for this and flushes every
commit; a slow commit is one that a proxy on the loopback holds for so long, with the locks of its transaction. Without
HTTP.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server import PROBLEM as PLAYED
from stagewise.policies.problem import Problem
from stagewise.server.decision_server import DecisionServer, warm_up
from stagewise.server.messages import DecisionRequest
from stagewise.server.store.migrate import open_store

NAME = "load"


async def decide(address: str, clients: int, seconds: float, start: float) -> None:
    """Be one decider; print how many decisions were durable, and how much processor time they took."""
    server = DecisionServer(open_store(address), alone="://" not in address)
    await server.start()
    await server.open(NAME, Problem.from_dict(PLAYED), "the benchmark", "load")
    warm_up(server.experiment(NAME).current)
    count, worked = 0, 0.0

    async def client() -> None:
        nonlocal count
        while time.time() < start + seconds:
            made = await server.decide(NAME, DecisionRequest({"age": 40.0, "opens": 3.0}))
            count += made.logged and time.time() >= start

    async def clock() -> None:
        nonlocal worked
        await asyncio.sleep(max(start - time.time(), 0.0))
        worked = time.process_time()

    await asyncio.gather(clock(), *(client() for _ in range(clients)))
    print(count, time.process_time() - worked, flush=True)
    await server.stop()


def measure(address: str, deciders: int, asked: argparse.Namespace) -> tuple[float, float]:
    """Return decisions a second of all, and processor time of a decision in milliseconds."""
    words = [address, str(asked.clients), str(asked.seconds), str(time.time() + asked.warm)]
    command = [sys.executable, __file__, "--decide", *words]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(deciders)]
    found = [process.communicate(timeout=asked.warm + asked.seconds + 60)[0].split() for process in running]
    total = sum(int(count) for count, _ in found)
    return total / asked.seconds, 1e3 * sum(float(worked) for _, worked in found) / max(total, 1)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", type=int, default=0, metavar="MS", help="what a commit takes")
    parser.add_argument("--clients", type=int, default=0, help="of each decider")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--warm", type=float, default=20.0, help="seconds until all deciders have started")
    parser.add_argument("--jobs", type=int, nargs="*", default=[1, 2, 4, 8], help="how many deciders")
    parser.add_argument("--decide", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.decide:
        address, clients, seconds, start = asked.decide
        asyncio.run(decide(address, int(clients), float(seconds), float(start)))
        return
    here = Path(__file__).parent  # its tests.py would hide the folder of tests
    sys.path[:] = [str(here.parent), *(path for path in sys.path if Path(path) != here)]
    from tests.server import servers
    from tests.server.store.proxy import Proxy

    asked.clients = asked.clients or (4 if asked.slow else 64)
    servers.SETTINGS["fsync"] = "on"
    postgres, load = servers.server(), os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}, {asked.clients} clients a decider, {asked.seconds} s", flush=True)
    if not asked.slow:
        with tempfile.TemporaryDirectory() as folder:
            file, own = measure(f"{folder}/server.db", 1, asked)
        rate, other = measure(postgres.fresh(), 1, asked)
        print(f"SQLite {file:,.0f} decisions/s ({own:.2f} ms of processor time each)")
        print(f"PostgreSQL {rate:,.0f} decisions/s ({other:.2f} ms each): {rate / file:.2f} of SQLite (bar .6)")
        return
    first = 0.0
    for deciders in asked.jobs:
        road = Proxy(postgres.fresh())
        road.commit_delay = asked.slow / 1000
        rate, own = measure(road.address, deciders, asked)
        road.close()
        first = first or rate / deciders
        share = rate / first / deciders
        print(f"{deciders} deciders: {rate:,.0f} decisions/s ({own:.2f} ms each), {share:.2f} N (bar .8)", flush=True)


if __name__ == "__main__":
    main()
