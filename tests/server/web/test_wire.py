"""What an enemy can do with bytes alone: requests within requests, keys of others, connections that never end."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.web.live import Live, live

from stagewise.server.web import http_server

TIMEOUT = 0.2
HEAD = b"POST /v1/demo/decisions HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A desk on a port."""
    with live(tmp_path_factory.mktemp("desk")) as there:
        yield there


def opened(desk: Live) -> socket.socket:
    host, port = desk.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def request(id_: str, key: str, more: bytes = b"", length: int | None = None, head: bytes = HEAD) -> bytes:
    body = json.dumps({"context": {"age": 34}, "decision_id": id_}).encode()
    size = len(body) if length is None else length
    said = b"Authorization: Bearer %b\r\nContent-Type: application/json\r\n%b" % (key.encode(), more)
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (head, said, size, body)


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


def test_every_request_of_a_connection_has_a_key_of_its_own(desk: Live) -> None:
    guess = desk.writer[:-4] + "zzzz"
    keys = [desk.writer, guess, desk.reader, desk.writer, guess]
    with closing(opened(desk)) as one:
        statuses(one, request("k-00", desk.writer), 1)  # its head is met
        at_once = b"".join(request(f"k-1{i}", key) for i, key in enumerate(keys))
        assert statuses(one, at_once, 5) == [200, 401, 403, 200, 401]
        by_turns = [statuses(one, request(f"k-2{i}", key), 1) for i, key in enumerate(keys)]
        assert by_turns == [[200], [401], [403], [200], [401]]
    rows = {event.key for event in desk.desk.store.events("demo") if event.kind == "decision"}
    assert rows & {"k-11", "k-12", "k-14", "k-21", "k-22", "k-24"} == set()
    assert {"k-10", "k-13", "k-20", "k-23"} <= rows


@pytest.mark.parametrize(
    "more",
    [
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"X-A: b\r\n c\r\n",
        b"X-A: b\x00c\r\n",
        b"X-A: b\rAuthorization: Bearer x\r\n",
        b"X-A: b\nX-C: d\r\n",
    ],
    ids=repr,
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(desk: Live, more: bytes) -> None:
    for _ in range(2):
        with closing(opened(desk)) as one:
            assert statuses(one, request("s-1", desk.writer, more) + request("s-2", desk.writer), 2) == [400]
    assert desk.desk.store.find("demo", "decision", "s-1") is None
    assert desk.desk.store.find("demo", "decision", "s-2") is None


def test_what_follows_a_body_is_a_request_of_its_own(desk: Live) -> None:
    short = request("f-1", desk.writer, length=2)
    for _ in range(2):
        with closing(opened(desk)) as one:
            assert statuses(one, short, 2) == [400]
    with closing(opened(desk)) as one:
        old = HEAD.replace(b"1.1", b"1.0")
        assert statuses(one, request("f-2", desk.writer, head=old) + request("f-3", desk.writer), 2) == [200]
    assert desk.desk.store.find("demo", "decision", "f-1") is None
    assert desk.desk.store.find("demo", "decision", "f-3") is None


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
