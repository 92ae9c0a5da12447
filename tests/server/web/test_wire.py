"""Connections that never end a request take a place from everybody else, and need no key."""

import json
import re
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.web.live import Live, live

from stagewise.server.web import http_server

TIMEOUT = 0.2
HEAD = b"POST /v1/demo/decisions HTTP/1.1\r\nHost: a\r\n"


def opened(desk: Live) -> socket.socket:
    host, port = desk.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def request(id_: str, key: str) -> bytes:
    body = json.dumps({"context": {"age": 34}, "decision_id": id_}).encode()
    said = b"Authorization: Bearer %b\r\nContent-Type: application/json\r\n" % key.encode()
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (HEAD, said, len(body), body)


def statuses(connection: socket.socket, content: bytes, count: int) -> list[int]:
    """Return the statuses of what is answered, until there are so many or the desk hangs up."""
    connection.sendall(content)
    told = b""
    while len(found := re.findall(rb"HTTP/1\.1 ([2-5]\d\d)", told)) < count:
        part = connection.recv(65536)
        if not part:
            break
        told += part
    return [int(status) for status in found]


def ended(one: socket.socket, seconds: float, drip: bytes) -> bool:
    """Say whether the desk hangs up on somebody who says a little now and then."""
    until = time.monotonic() + seconds
    one.settimeout(0.02)
    while time.monotonic() < until:
        try:
            one.sendall(drip)
            if one.recv(4096) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize(
    ("begun", "drip"),
    [
        (b"", b""),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\n", b"x: y\r\n"),
        (b"POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
         b"Content-Length: 9999\r\n\r\n", b"a"),
        (HEAD + b"Content-Length: 9999\r\n\r\n", b"a"),
    ],
    ids=["silent", "head", "form", "no key"],
)  # fmt: skip
def test_who_never_ends_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes, drip: bytes
) -> None:
    """Such a connection costs its owner nothing, takes no key, and would take a place from everybody else."""
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", TIMEOUT)
    with live(tmp_path) as desk, closing(opened(desk)) as one:
        one.sendall(begun)
        assert ended(one, 100 * TIMEOUT, drip)


def test_who_asks_now_and_then_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", TIMEOUT)
    with live(tmp_path) as desk, closing(opened(desk)) as one:
        assert statuses(one, request("a-0", desk.writer), 1) == [200]
        with closing(opened(desk)) as other:  # whose requests all go the short way
            for i in range(1, 6):
                assert statuses(other, request(f"a-{i}", desk.writer), 1) == [200]
                time.sleep(0.7 * TIMEOUT)
            time.sleep(3 * TIMEOUT)
            assert statuses(other, request("a-6", desk.writer), 1) == [200]
        assert statuses(one, request("a-7", desk.writer), 1) == [200]
