"""A receiver of webhooks on this machine, which verifies signatures by itself."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
NEXT_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()


class Call(NamedTuple):
    """A request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    def verify(self, secret: str) -> bool:
        """Return whether one of the signatures is by this secret, and the time is now."""
        content = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        code = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256).digest()
        signed = "v1," + base64.b64encode(code).decode() in self.headers["webhook-signature"].split()
        return signed and abs(time.time() - int(self.headers["webhook-timestamp"])) < 300


class Receiver:
    """What arrived, and how it is answered: by a status, a location to redirect to, or what a function returns."""

    def __init__(self, answers: Sequence[int | str | Callable[[], int]] = ()) -> None:
        self.calls, self.answers = list[Call](), list(answers)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers["content-length"]))
                receiver.calls.append(Call(self.path, headers, body))
                answer: Any = receiver.answers.pop(0) if receiver.answers else 204
                status = answer() if callable(answer) else 302 if isinstance(answer, str) else answer
                self.send_response(status)
                if isinstance(answer, str):
                    self.send_header("location", answer)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    @property
    def events(self) -> list[tuple[str, str | None]]:
        """Types and experiments of what arrived."""
        return [(call.event["type"], call.event["data"]["experiment"]) for call in self.calls]


@contextmanager
def receiving(*answers: int | str | Callable[[], int]) -> Iterator[Receiver]:
    """Receive until the end."""
    receiver = Receiver(answers)
    thread = threading.Thread(target=receiver.http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.http.shutdown()
        thread.join()
        receiver.http.server_close()


def write_webhooks(folder: Path, url: str, more: str = "") -> Path:
    """Write the file of one webhook, with its secret."""
    (folder / "chat.secret").write_text(SECRET + "\n")
    path = folder / "webhooks.toml"
    path.write_text(f'[[webhook]]\nname = "chat"\nurl = "{url}"\nsecrets = "chat.secret"\n{more}\n')
    return path
