"""A desk that says what it is told to say: for what a client does when a desk does not do what it should."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Said = tuple[int, Any]
Script = Callable[[str, Any], Said | None]


class Scripted(ThreadingHTTPServer):
    """Answers with what the script returns for (path, body); None: cuts the connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script: Script) -> None:
        self.script, self.seen, self.keys, self.opened = script, [], set(), 0
        super().__init__(("127.0.0.1", 0), Handler)

    seen: list[tuple[str, Any]]
    keys: set[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Scripted

    def setup(self) -> None:
        super().setup()
        self.server.opened += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.add(self.headers["Authorization"])
        self.server.seen.append((self.path, body))
        said = self.server.script(self.path, body)
        if said is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, content = said
        told = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with suppress(OSError):  # the client was tired of waiting
            super().handle()


@contextmanager
def scripted(script: Script) -> Iterator[Scripted]:
    """Serve a script."""
    with Scripted(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def decided(asked: dict[str, Any], action: str = "offer") -> dict[str, Any]:
    """Return a desk's answer."""
    return {
        "decision_id": asked["decision_id"],
        "action": action,
        "probabilities": {"nothing": 0.25, "offer": 0.75},
        "mode": "live",
        "version": 1,
        "snapshot": 7,
        "limits": {"opt_out": {"estimate": None, "pessimistic_cost": 0.015, "threshold": 0.02}},
        "reason": None,
        "message": None,
        "logged": True,
    }


def desk(path: str, body: Any) -> Said:
    """Answer as a desk does."""
    rows = body if isinstance(body, list) else [body]
    if path.endswith("/decisions"):
        told = [decided(row) for row in rows]
    else:
        told = [
            {"decision_id": r["decision_id"], "accepted": sorted(set(r) - {"decision_id"}), "duplicate": []}
            for r in rows
        ]
    return 200, told if isinstance(body, list) else told[0]


def waited(until: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until something is so; say whether it is."""
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end:
        time.sleep(0.005)
    return until()
