"""The server under load, compared with two bare echo servers: requests per second, latencies and start-up time.

    python benchmarks/server.py                                     # SQLite, 32 clients, a log of 10^6 decisions
    python benchmarks/server.py --postgres postgresql://user@host/empty_database
    python benchmarks/server.py --seconds 3 --turns 1 --decisions 10_000

Everything runs on this machine's loopback and stops by itself. The clients are one process with one loop of epoll and
ready-made requests, since they share the cores with what they measure.
"""

import argparse
import asyncio
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stagewise.server.messages import DecisionRequest, DecisionResponse, LimitStatus
from stagewise.server.web.http_server import HttpServer, open_listener

sys.path.insert(0, str(Path(__file__).parent))

import server_store

PROBLEM = {
    "action_names": ["nothing", "digest", "offer"],
    "safe_name": "nothing",
    "context": {"age": [18, 99], "opens": [0, 7]},
    "reward": {"name": "click", "window": "1d"},
    "limits": {"opt_out": {"at_most": 0.02, "safe_bound": 0.001, "window": "7d", "model": "rates"}},
}
NAME = "load"
ASKED, ANSWER = msgspec.json.Decoder(DecisionRequest).decode, msgspec.json.Encoder().encode
OUTCOMES = 0.5  # the share of decisions that are told a click


class Measured(NamedTuple):
    """What the clients saw."""

    rate: float
    """Requests a second."""
    p50: float
    """Milliseconds."""
    p99: float
    cpu: float
    """Microseconds of processors for a request, by the servers: it hardly depends on what else the machine does."""
    clients: float
    """The same, by the clients."""
    others: float
    """And by all else on the machine: a PostgreSQL, and whatever has nothing to do with this."""
    cores: float
    """How many processors were busy."""


class Running(NamedTuple):
    """A server."""

    port: int
    key: str
    process: int

    def spent(self) -> float:
        """Return the seconds that it has spent on processors."""
        told = Path(f"/proc/{self.process}/stat").read_text().rpartition(") ")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def busy() -> float:
    """Return the seconds that all processors of the machine were busy since it started."""
    told = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
    return (sum(told) - told[3] - told[4]) / os.sysconf("SC_CLK_TCK")


# Clients


class Lane:
    """A connection that is kept open, with one request under way."""

    def __init__(self, port: int, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.count, self.sent, self.got = number, 0, 0.0, b""

    def ask(self, make: Callable[["Lane"], bytes]) -> None:
        """Send the next request."""
        self.count += 1
        message = make(self)
        self.sent = time.perf_counter()
        self.socket.sendall(message)

    def whole(self) -> bool:
        """Take what came; say whether the answer is whole."""
        self.got += self.socket.recv(65536)
        if not self.got:
            raise SystemExit("the server hung up")
        head, mark, body = self.got.partition(b"\r\n\r\n")
        if not mark:
            return False
        at = head.lower().index(b"content-length: ") + 16
        if len(body) < int(head[at:].split(b"\r\n", 1)[0]):
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(self.got.decode(errors="replace"))
        self.got = b""
        return True


def load(servers: list[Running], seconds: float, clients: int, ids: str = "time") -> Measured:
    """Ask on many connections at once, each again as soon as it is answered."""
    ports, make = [server.port for server in servers], decisions(servers[0].key, ids)
    lanes = [Lane(ports[i % len(ports)], i) for i in range(clients)]
    poll, known = select.epoll(), {lane.socket.fileno(): lane for lane in lanes}
    for number in known:
        poll.register(number, select.EPOLLIN)
    took: list[float] = []
    asked, spent = 0, sum(server.spent() for server in servers)
    ours, all_, started = time.process_time(), busy(), time.perf_counter()
    for lane in lanes:
        lane.ask(make)
    begin = time.perf_counter() + min(1.0, seconds / 5)  # what comes before is not counted
    end = begin + seconds
    while (now := time.perf_counter()) < end:
        for number, _ in poll.poll(1.0):
            lane = known[number]
            if lane.whole():
                now = time.perf_counter()
                asked += 1
                if now >= begin:
                    took.append(now - lane.sent)
                lane.ask(make)
    for lane in lanes:
        lane.socket.close()
    poll.close()
    took.sort()
    spent, ours = sum(server.spent() for server in servers) - spent, time.process_time() - ours
    all_, passed = busy() - all_, time.perf_counter() - started
    each = [1e6 * part / asked for part in (spent, ours, all_ - spent - ours)]
    middle, late = took[len(took) // 2], took[len(took) * 99 // 100]
    return Measured(len(took) / seconds, middle * 1e3, late * 1e3, *each, all_ / passed)


def request(path: str, key: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    )
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def decisions(key: str, ids: str) -> Callable[[Lane], bytes]:
    """Return what makes requests for decisions, each with an id of its own: as our client sends them, or random."""
    ready = [
        request(f"/v1/{NAME}/decisions", key, json.dumps(
            {"context": {"age": 18 + i, "opens": i % 8}, "decision_id": "x" * 32}, separators=(",", ":")).encode())
        for i in range(64)
    ]  # fmt: skip
    halves = [message.split(b"x" * 32) for message in ready]
    begun = os.urandom(4).hex().encode()

    def make(lane: Lane) -> bytes:
        before, after = halves[(lane.count + lane.number) & 63]
        if ids == "random":
            return before + b"%032x" % random.getrandbits(128) + after
        return before + b"%012x%b%04x%08x" % (time.time_ns() // 1_000_000, begun, lane.number, lane.count) + after

    return make


# Servers, each in a separate process


@contextmanager
def running(*words: str) -> Iterator[Running]:
    """Run a server."""
    process = subprocess.Popen(
        [sys.executable, __file__, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        while line := process.stdout.readline():
            if found := re.match(r"ready (\d+) (\S+)", line):
                yield Running(int(found[1]), found[2], process.pid)
                break
        else:
            raise SystemExit(f"{' '.join(words)} did not start")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def echoed(body: bytes) -> bytes:
    """Return what a decision's answer looks like: JSON is parsed and written with the server's structs."""
    asked = ASKED(body)
    chances = {"nothing": 0.98, "digest": 0.0, "offer": 0.02}
    limits = {"opt_out": LimitStatus(0.012, 0.019, 0.02)}
    return ANSWER(DecisionResponse(asked.decision_id or "", "nothing", chances, "live", 1, 7, limits, None))


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Echo straight on ASGI: nothing between the server and the JSON."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    told = echoed(body)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(told))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": told})


async def by_route(request: Request) -> Response:
    """Echo by Starlette."""
    return Response(echoed(await request.body()), media_type="application/json")


ECHOES = {"bare ASGI": bare, "Starlette": Starlette(routes=[Route("/v1/{name}/decisions", by_route, methods=["POST"])])}
"""Two echo applications on the same HTTP server: plain ASGI, and Starlette with msgspec and uvicorn."""


def serve_echo(layer: str) -> None:
    """Serve an echo with the same HTTP server."""
    listening = open_listener("127.0.0.1", 0)
    on_start = lambda: print("ready", listening.getsockname()[1], "-", flush=True)  # noqa: E731
    server: Any = HttpServer(ECHOES[layer], on_start)  # type: ignore[arg-type]
    with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(server.serve([listening]))


def serve_decisions(address: str) -> None:
    """Serve decisions as `stagewise serve` does, without a request log."""
    from stagewise.policies.problem import Problem
    from stagewise.server.access_keys import AccessKeys
    from stagewise.server.decision_server import DecisionServer, warm_up
    from stagewise.server.store.migrate import open_store
    from stagewise.server.web.app import HttpSettings
    from stagewise.server.web.http_server import serve
    from stagewise.server.web.requests import RateLimit

    store = open_store(address)
    server, keys = DecisionServer(store, alone="://" not in address), AccessKeys(store)
    key = keys.add(f"load-{os.getpid()}", "writer")

    async def prepare() -> None:
        await server.open(NAME, Problem.from_dict(PROBLEM), "the benchmark", "load")
        await asyncio.to_thread(warm_up, server.experiment(NAME).current)

    settings = HttpSettings(rate=RateLimit(1e9, 1e9), log=False)
    on_start = lambda address: print("ready", address.rpartition(":")[2], key, flush=True)  # noqa: E731
    serve(server, "127.0.0.1", 0, keys=keys, settings=settings, prepare=prepare, on_start=on_start)


# Measurements


def under_load(title: str, servers: list[list[str]], asked: argparse.Namespace) -> Measured:
    """Measure some servers together, and say what came out."""
    with ExitStack() as stack:
        found = [stack.enter_context(running(*words)) for words in servers]
        one = load(found, asked.seconds, asked.clients, asked.ids)
    told = f"p50 {one.p50:7.2f} ms   p99 {one.p99:7.2f} ms   cpu {one.cpu:4.0f} µs"
    told += f" + clients {one.clients:3.0f} + others {one.others:3.0f}   {one.cores:.2f} cores busy"
    print(f"  {title:<18} {one.rate:>8,.0f}/s   {told}", flush=True)
    return one


def beside_echoes(title: str, words: list[str], asked: argparse.Namespace) -> None:
    """Measure the server and both echoes in turns, and compare."""
    turns = [
        (
            under_load(title, [words], asked),
            {layer: under_load(f"echo, {layer}", [["--serve", f"echo {layer}"]], asked) for layer in ECHOES},
        )
        for _ in range(asked.turns)
    ]
    for layer in ECHOES:
        pairs = [(measured, echoes[layer]) for measured, echoes in turns]
        rate = statistics.median(measured.rate / echo.rate for measured, echo in pairs)
        p99 = statistics.median(measured.p99 / echo.p99 for measured, echo in pairs)
        cpu = statistics.median(echo.cpu / measured.cpu for measured, echo in pairs)
        told = f"{rate:.2f} of its rate (bar 0.90), {p99:.2f} times its p99 (bar 3)"
        print(f"  {title} against the echo on {layer}: {told}, {cpu:.2f} of its requests for the same processor time")
    print(flush=True)


def scratch(where: Path) -> str:
    return str(where / f"{os.urandom(4).hex()}.db")


def measure(asked: argparse.Namespace) -> None:
    """Measure everything that was asked for."""
    where = Path(tempfile.mkdtemp(prefix="stagewise-load-"))
    try:
        told = f"each answered before it asks again; {asked.seconds:g} s a turn, {os.cpu_count()} cores"
        print(f"{asked.clients} clients, {told}")
        if "sqlite" in asked.only:
            print("Decisions that are durable before they are answered, SQLite:")
            beside_echoes("server, SQLite", ["--serve", scratch(where)], asked)
        if asked.postgres:
            print("The same on PostgreSQL:")
            words = ["--serve", asked.postgres]
            beside_echoes("server, PostgreSQL", words, asked)
            pairs = [(under_load("one decider", [words], asked), under_load("two deciders", [words, words], asked))
                     for _ in range(asked.turns)]  # fmt: skip
            ratio = statistics.median(two.rate / one.rate for one, two in pairs)
            print(f"  two deciders: {ratio:.2f} times one (bar 1.7, where the machine has the cores)\n")
        if "fold" in asked.only:
            print("A log and its state, SQLite:")
            address = scratch(where)
            server_store.grown(address, asked.decisions, 1.0, PROBLEM)
            server_store.folded(address, asked.decisions, PROBLEM)
    finally:
        shutil.rmtree(where)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each turn")
    parser.add_argument("--turns", type=int, default=3, help="of each pair")
    parser.add_argument("--clients", type=int, default=32)
    told = "our client's begin with the time; random ones each touch a page of the index of their own"
    parser.add_argument("--ids", default="time", choices=["time", "random"], help=told)
    parser.add_argument("--decisions", type=int, default=1_000_000, help="in the log that is folded")
    parser.add_argument("--postgres", default="", metavar="URL", help="an empty database, to measure that too")
    parser.add_argument("--only", nargs="*", default=["sqlite", "fold"], choices=["sqlite", "fold"])
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve.startswith("echo "):
        serve_echo(asked.serve.removeprefix("echo "))
    elif asked.serve:
        serve_decisions(asked.serve)
    else:
        measure(asked)


if __name__ == "__main__":
    main()
