"""A bare echo by HTTP, on each server and each layer that the server could stand on: `python benchmarks/echo.py`.

Prints requests a second and the 50th and 99th percentile of the answer's time, with 32 keep-alive clients on the same
machine: the median of a few rounds that take turns, so that whatever else the machine does meets all of them.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from typing import Any, NamedTuple

import msgspec
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PORT, CLIENTS, SECONDS, ROUNDS = 18_080, 32, 3.0, 5
BODY = msgspec.json.encode({"context": {"age": 34, "tenure": 2.5, "opens_7d": 3}, "decision_id": "a" * 24})
LAYERS = ("raw", "framework")
SERVERS = {
    "uvicorn": [
        "uvicorn",
        "--http=httptools",
        "--loop=uvloop",
        "--no-access-log",
        "--log-level=error",
        f"--port={PORT}",
    ],
    "granian": ["granian", "--interface=asgi", "--loop=uvloop", "--no-log", f"--port={PORT}"],
}


async def raw(scope: Any, receive: Any, send: Any) -> None:
    """Echo JSON, straight on ASGI."""
    if scope["type"] == "http":
        message = await receive()
        body = msgspec.json.encode(msgspec.json.decode(message["body"]))
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def echo(request: Request) -> Response:
    """Echo JSON, by Starlette."""
    return Response(msgspec.json.encode(msgspec.json.decode(await request.body())), media_type="application/json")


framework = Starlette(routes=[Route("/v1/{experiment}/decisions", echo, methods=["POST"])])


class Seen(NamedTuple):
    """What a round saw."""

    rate: float
    middle: float
    slow: float


class Client(asyncio.Protocol):
    """Sends one request after another on one connection."""

    def __init__(self, until: float, times: list[float], done: asyncio.Future[None]) -> None:
        self.until, self.times, self.done = until, times, done
        self.request = b"POST /v1/demo/decisions HTTP/1.1\r\nhost: server\r\ncontent-type: application/json\r\n"
        self.request += b"content-length: %d\r\n\r\n%s" % (len(BODY), BODY)

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self.transport, self.read = transport, b""
        self.ask()

    def ask(self) -> None:
        """Send a request."""
        self.began = time.perf_counter()
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Take the answer, and send the next request."""
        self.read += data
        if not self.read.endswith(BODY):
            return
        now, self.read = time.perf_counter(), b""
        self.times.append(now - self.began)
        if now < self.until:
            self.ask()
        else:
            self.transport.close()
            self.done.set_result(None)


async def measured() -> Seen:
    """Return what one round sees."""
    loop, times = asyncio.get_running_loop(), list[float]()
    began = time.perf_counter()
    ends = [loop.create_future() for _ in range(CLIENTS)]
    for done in ends:
        await loop.create_connection(lambda done=done: Client(began + SECONDS, times, done), "127.0.0.1", PORT)
    await asyncio.gather(*ends)
    cuts = statistics.quantiles(times, n=100)
    return Seen(len(times) / (time.perf_counter() - began), cuts[49] * 1e3, cuts[98] * 1e3)


def played(server: str, layer: str) -> Seen:
    """Start a server, measure a round, stop it."""
    running = subprocess.Popen([sys.executable, "-m", *SERVERS[server], f"echo:{layer}"], cwd=sys.path[0])
    try:
        return uvloop.run(once_there())
    finally:
        running.terminate()
        running.wait()


async def once_there() -> Seen:
    """Wait for the server, then measure."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        except ConnectionError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return await measured()


if __name__ == "__main__":
    observed: dict[tuple[str, str], list[Seen]] = {}
    for _ in range(ROUNDS):
        for key in [(server, layer) for server in SERVERS for layer in LAYERS]:
            observed.setdefault(key, []).append(played(*key))
    for (server, layer), rounds in observed.items():
        rate, middle, slow = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{server:8} {layer:10} {rate:8,.0f} requests/s   p50 {middle:5.2f} ms   p99 {slow:5.2f} ms")
