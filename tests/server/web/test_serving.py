"""A desk on a port: it stops well, and hangs up on what never ends."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.web.live import Live, live
from tests.server.web.real import Real

from stagewise.problem.errors import ErrorCode
from stagewise.server.store.migrate import open_store
from stagewise.server.web.http_server import MAX_HEAD_BYTES, ServerStartError, open_listener, serve

ROOT = Path(__file__).parents[3]


class Busy(threading.Thread):
    """Asks for decisions until nobody answers; remembers those that were acknowledged."""

    def __init__(self, address: str, key: str, name: str) -> None:
        super().__init__()
        self.place, self.key, self.told, self.made = address.removeprefix("http://"), key, name, list[str]()
        self.failed: list[int] = []

    def run(self) -> None:
        """Ask."""
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        with closing(http.client.HTTPConnection(self.place, timeout=20)) as connection:
            self.ask(connection, headers)

    def ask(self, connection: http.client.HTTPConnection, headers: dict[str, str]) -> None:
        """Ask again and again."""
        for number in range(10**6):
            body = json.dumps({"context": {"age": 34}, "decision_id": f"{self.told}-{number}"})
            try:
                connection.request("POST", "/v1/demo/decisions", body, headers)
                answer = connection.getresponse()
                told = json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                return
            if answer.status == 200:
                self.made.append(told["decision_id"])
            else:
                self.failed.append(answer.status)


def test_it_stops_well_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-m", "tests.server.web.served", str(tmp_path)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )  # fmt: skip
    assert begun.stdout is not None
    address, key = begun.stdout.readline().split()
    clients = [Busy(address, key, f"c{i}") for i in range(4)]
    for client in clients:
        client.start()
    while min(len(client.made) for client in clients) < 5:
        time.sleep(0.01)
    begun.send_signal(signal.SIGTERM)
    for client in clients:
        client.join()
    out, errors = begun.communicate(timeout=30)
    assert (begun.returncode, out, errors) == (0, "stopped well\n", "")
    assert set().union(*(client.failed for client in clients)) <= {503}
    store = open_store(str(tmp_path / "desk.db"))
    rows = {event.key for event in store.events("demo") if event.kind == "decision"}
    store.close()
    assert {id_ for client in clients for id_ in client.made} <= rows


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A desk on a port."""
    with live(tmp_path_factory.mktemp("desk")) as there:
        yield there


def said(desk: Live, content: bytes) -> bytes:
    """Return all that a desk says to some bytes until it hangs up."""
    host, port = desk.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        try:
            connection.sendall(content)
        except OSError:
            return b""
        told = b""
        while not told.endswith(b"}"):
            try:
                part = connection.recv(65536)
            except ConnectionError:
                break
            if not part:
                break
            told += part
    return told


def test_headers_that_never_end_are_hung_up_on(desk: Live) -> None:
    assert b" 200 " in said(desk, b"GET /livez HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 1000 + b"\r\n\r\n")
    assert b" 200 " not in said(desk, b"GET /livez HTTP/1.1\r\nhost: a\r\nx: " + b"y" * (64 * MAX_HEAD_BYTES))


@pytest.mark.parametrize("cut", [1, 60, -3])
def test_a_head_that_the_network_cuts_is_read_with_its_body(desk: Live, cut: int) -> None:
    """The rest of a head may come with a body that is larger than any head."""
    body = json.dumps([{"context": {"age": 34}, "decision_id": f"{cut}-{i}-{'x' * 90}"} for i in range(900)]).encode()
    assert len(body) > MAX_HEAD_BYTES
    head = f"POST /v1/demo/decisions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {desk.writer}\r\n".encode()
    head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    talk = [head[:cut], head[cut:] + body]
    assert in_pieces(desk, talk, 1) == 1


def test_requests_that_come_together_are_answered_wherever_the_network_cuts_them(desk: Live) -> None:
    """What follows a head in the same piece may be the next request, and not the rest of this one."""
    body = b'{"context":{"age":34}}'
    one = f"POST /v1/demo/decisions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {desk.writer}\r\n".encode()
    one += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    count = 3 * MAX_HEAD_BYTES // len(one)
    many = one * count
    cut = count // 3 * len(one) + 20  # within a head, after which more comes at once than a head may have
    assert len(many) - cut > MAX_HEAD_BYTES
    assert in_pieces(desk, [many[:cut], many[cut:]], count) == count


def in_pieces(desk: Live, pieces: list[bytes], wanted: int) -> int:
    """Send pieces of which each is read by itself; return how many answers with 200 came."""
    host, port = desk.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        told = b""
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.1)
        while told.count(b"HTTP/1.1 200") < wanted or not told.endswith((b"}", b"]")):
            try:
                part = connection.recv(1 << 16)
            except ConnectionError:
                break
            if not part:
                break
            told += part
    return told.count(b"HTTP/1.1 200")


def test_a_port_that_is_taken_and_a_desk_that_does_not_start_are_said(tmp_path: Path) -> None:
    there = Real(tmp_path)
    with open_listener("127.0.0.1", 0) as taken, pytest.raises(ServerStartError) as error:
        serve(there.desk, "127.0.0.1", taken.getsockname()[1], keys=there.keys)

    assert error.value.code is ErrorCode.SERVER_NOT_STARTED

    async def failing() -> None:
        raise ValueError("no problem of that name")

    with pytest.raises(ServerStartError) as error:
        serve(there.desk, "127.0.0.1", 0, keys=there.keys, prepare=failing)
    assert error.value.code is ErrorCode.SERVER_NOT_STARTED
    assert "no problem of that name" in error.value.details["problem"]


def test_a_slash_within_a_name_comes_through(desk: Live) -> None:
    connection = http.client.HTTPConnection(desk.address.removeprefix("http://"), timeout=20)
    headers = {"authorization": f"Bearer {desk.writer}", "content-type": "application/json"}
    body = json.dumps({"context": {"age": 34}, "decision_id": "a/b"})
    connection.request("POST", "/v1/demo/decisions", body, headers)
    assert json.loads(connection.getresponse().read())["decision_id"] == "a/b"
    connection.request("GET", "/v1/demo/decisions/a%2Fb", headers=headers)
    assert json.loads(connection.getresponse().read())["decision_id"] == "a/b"
    connection.close()
