"""Processor time of a decision over HTTP without OpenTelemetry, with its API alone, and with its SDK.

The application is called in this process, so that no socket is measured. One store; the ways take turns, and each way's
smallest round counts.

python benchmarks/telemetry.py
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import stagewise as sw
from stagewise.server.access_keys import AccessKeys
from stagewise.server.decision_server import DecisionServer
from stagewise.server.store.migrate import open_store
from stagewise.server.web.app import App, HttpSettings
from stagewise.server.web.telemetry import Telemetry

PROBLEM = sw.Problem(
    action_names=["nothing", "digest", "offer"],
    safe_name="nothing",
    context={"age": (18, 99)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, window="7d", model="rates")},
)
TRACEPARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def decide(app: App, key: str, count: int) -> float:
    """Return the processor time of so many decisions, 64 at once, in microseconds each."""
    body = msgspec.json.encode({"context": {"age": 34}})
    headers = [
        (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
        (b"authorization", f"Bearer {key}".encode()), (b"traceparent", TRACEPARENT),
    ]  # fmt: skip
    path = "/v1/demo/decisions"
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "scheme": "http", "headers": headers,
    }  # fmt: skip
    statuses = list[int]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    start = time.process_time()
    for _ in range(count // 64):
        await asyncio.gather(*[app(dict(scope), receive, send) for _ in range(64)])
    spent = time.process_time() - start
    assert set(statuses) == {200}
    return 1e6 * spent / len(statuses)


async def measure(count: int, rounds: int) -> None:
    """Print the time of each way."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "server.db"))
        server = DecisionServer(store)
        await server.start()
        await server.open("demo", PROBLEM, "ada", "a benchmark")
        keys = AccessKeys(store)
        key = keys.add("app", "writer", "")
        app = App(server, keys, HttpSettings(log=False))
        traces, logs = TracerProvider(), LoggerProvider()
        traces.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
        logs.add_log_record_processor(BatchLogRecordProcessor(InMemoryLogRecordExporter()))
        ways = {
            "without": None,
            "API alone": Telemetry(server),
            "SDK, all recorded": Telemetry(server, tracer_provider=traces, logger_provider=logs),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds + 1):
            for name, app.telemetry in ways.items():
                times[name].append(await decide(app, key, count))
        for name, spent in times.items():
            print(f"{name}: {min(spent[1:]):.0f} us of processor time for a decision")
        traces.shutdown()
        logs.shutdown()
        await server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=6400)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    asyncio.run(measure(given.count, given.rounds))
