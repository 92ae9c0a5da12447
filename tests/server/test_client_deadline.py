"""The client's timeout is one deadline for all of an exchange, whatever a peer does with its time."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.server.scripted import desk, scripted, waited

from stagewise.server.client import Client

START = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
PAUSE, MOST = 0.02, 400  # seconds between two pieces, each well within the timeout; pieces until a peer gives up

Gives = Callable[[int], bytes]


class Peer:
    """Sends piece after piece until the client hangs up, or all are sent; `ends` says which, by connection."""

    def __init__(self, gives: Gives) -> None:
        self.gives, self.ends = gives, list[str]()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self.listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(1 << 16)
                for turn in range(MOST):
                    connection.sendall(self.gives(turn))
                    time.sleep(PAUSE)
                self.ends.append("sent all")
            except OSError:
                self.ends.append("hung up on")


@contextmanager
def peer(gives: Gives) -> Iterator[Peer]:
    made = Peer(gives)
    try:
        yield made
    finally:
        made.listening.close()


def bytes_of(text: bytes, then: bytes) -> Gives:
    """Give a text byte by byte, and then something again and again."""
    return lambda turn: text[turn : turn + 1] or then


@pytest.mark.parametrize(
    "gives",
    [
        bytes_of(b"HTTP/1.1 200 OK\r\nx: ", b"a"),
        bytes_of(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        lambda turn: b" " if turn else START + b"content-length: 100000\r\n\r\n",
        lambda turn: b"1\r\n \r\n" if turn else START + b"transfer-encoding: chunked\r\n\r\n",
        lambda turn: b" " if turn else START + b"\r\n",
    ],
    ids=["head", "continue", "body", "chunks", "until closed"],
)
def test_a_peer_that_drips_is_hung_up_on(gives: Gives) -> None:
    with peer(gives) as slow, Client(slow.url, "k", "messages", safe="nothing", timeout=0.3) as client:
        decision = client.decide({"age": 34})
        assert (decision.action, decision.logged) == ("nothing", False)
        assert "did not answer in time" in str(decision.message)
        assert "sent all" not in slow.ends
        assert waited(lambda: "hung up on" in slow.ends)


def test_every_address_of_a_host_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        closed = place.getsockname()
    with scripted(desk) as server:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        found: list[Any] = [(*kind, closed), (*kind, server.server_address)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with Client("http://desk.example", "k", "messages", safe="nothing", timeout=5.0, max_attempts=1) as client:
            assert client.decide({}).action == "offer"


def test_an_answer_that_is_no_json_is_none() -> None:
    said = b'{"decision_id":"x","action":"offer","probabilities":NaN,"logged":true}'
    with scripted(lambda *_: (200, said)) as server, Client(server.url, "k", "messages", safe="nothing") as client:
        decision = client.decide({})
    assert (decision.action, decision.logged) == ("nothing", False)
