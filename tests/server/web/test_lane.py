"""The short way of single decisions and outcomes: it says what the long way says, or leaves it to that."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.server.web.live import Live, live
from tests.server.web.real import real

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.web.connection import BODY_WAIT
from stagewise.server.web.fast_path import CachedHead, WaitingRequest
from stagewise.server.web.rate_limit import RateLimit, RateLimiter


class Talk:
    """A connection, and how many requests of it went the short way."""

    def __init__(self, desk: Live) -> None:
        host, port = desk.address.removeprefix("http://").split(":")
        self.socket, self.desk = socket.create_connection((host, int(port)), timeout=20), desk
        self.got, self.short = b"", 0
        lane = desk.desk.app.fast_path
        take = type(lane).take

        def counting(*told: Any) -> bool:
            taken = take(lane, *told)
            self.short += taken
            return taken

        lane.take = counting  # type: ignore[method-assign]

    def request(self, body: dict[str, Any], path: str = "/v1/demo/decisions", key: str = "") -> bytes:
        """Return a request."""
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key or self.desk.writer}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content

    def answer(self) -> tuple[int, set[str], Any]:
        """Return the next answer: status, names of headers, content."""
        while b"\r\n\r\n" not in self.got:
            self.more()
        head, _, rest = self.got.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        size = int(headers["content-length"])
        while len(rest) < size:
            self.more()
            rest = self.got.partition(b"\r\n\r\n")[2]
        self.got = rest[size:]
        return int(lines[0].split()[1]), set(headers), json.loads(rest[:size])

    def more(self) -> None:
        part = self.socket.recv(65536)
        assert part, "the desk hung up"
        self.got += part

    def ask(self, id_: str, age: int = 34, **more: Any) -> tuple[int, set[str], Any]:
        """Ask for a decision."""
        self.socket.sendall(self.request({"context": {"age": age}, "decision_id": id_, **more}))
        return self.answer()

    def tell(self, id_: str, **signals: Any) -> tuple[int, set[str], Any]:
        """Tell an outcome."""
        self.socket.sendall(self.request({"decision_id": id_, **signals}, "/v1/demo/outcomes"))
        return self.answer()


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A connection to a desk of its own, that has met the heads of its requests."""
    with live(tmp_path) as desk:
        talk = Talk(desk)
        with closing(talk.socket):
            talk.ask("a-0")
            yield talk


def test_both_ways_say_the_same(talk: Talk) -> None:
    assert talk.short == 0  # the first of its kind
    short, long = talk.ask("a-1"), talk.ask("a-20")
    assert (short[0], talk.short) == (200, 1)  # the second has another length, so another head
    assert short[1] == long[1]
    assert {**short[2], "decision_id": "", "snapshot": 0} == {**long[2], "decision_id": "", "snapshot": 0}
    row = talk.desk.desk.store.find("demo", "decision", "a-1")
    assert row is not None
    assert json.loads(row.body)["probabilities"] == short[2]["probabilities"]


def test_a_retry_has_the_same_answer_and_another_question_is_refused(talk: Talk) -> None:
    first = talk.ask("a-1")
    assert talk.ask("a-1")[2] == first[2]
    assert talk.ask("a-1", age=35)[0] == 409
    assert talk.short == 3
    assert talk.desk.desk.store.head("demo").decision_count == 2


def test_what_makes_no_sense_is_refused_in_a_sentence(talk: Talk) -> None:
    for body in ({"context": {"age": "x"}, "decision_id": "b"}, {"contexts": {"age": 1}}, [], [1], "x"):
        for _ in range(2):
            talk.socket.sendall(talk.request(body))  # type: ignore[arg-type]
            status, _, told = talk.answer()
            assert status in (200, 422)
            assert told == [] or "message" in (told[0] if isinstance(told, list) else told)
    assert talk.desk.desk.store.head("demo").decision_count == 1


def test_a_refused_request_is_no_trouble_of_the_desk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who names no segment is told so and counted; the log of failures is for failures."""
    limit = sw.Limit(0.3, safe=0.001, by="country")
    played = sw.Problem(actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("R"), limits={"opt_out": limit})
    with live(tmp_path, played) as desk:
        talk = Talk(desk)
        with closing(talk.socket):
            for number, country in enumerate(("NZ", "NZ", 1.25, "NZ")):
                talk.socket.sendall(talk.request({"context": {"country": country}, "decision_id": f"a{number}"}))
                assert talk.answer()[0] == (422 if country == 1.25 else 200)
        assert talk.short > 2  # it was asked for on the short way
        assert desk.desk.desk.counters.refused == {("/v1/{experiment}/decisions", 422): 1}
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_outcomes_take_it_too(talk: Talk) -> None:
    names = list(talk.desk.desk.desk.experiment("demo").problem.signals)
    for i in range(3):
        assert talk.ask(f"b-{i}")[0] == 200
    before = talk.short
    assert [talk.tell(f"b-{i}", **{names[0]: 1})[2]["accepted"] for i in range(3)] == [[names[0]]] * 3
    assert talk.short == before + 2
    assert talk.tell("b-1", **{names[0]: 1})[2]["duplicate"] == [names[0]]
    assert talk.tell("b-1", **{names[0]: 0})[0] == 409
    assert talk.tell("c-1", **{names[0]: 0})[0] == 404


@pytest.mark.parametrize("pause", [0.0, 0.01, 3 * BODY_WAIT])
def test_a_body_that_comes_after_its_head(talk: Talk, pause: float) -> None:
    content = talk.request({"context": {"age": 34}, "decision_id": "a-1"})
    cut = content.index(b"\r\n\r\n") + 4
    for part in (content[:cut], content[cut : cut + 5], content[cut + 5 :]):
        talk.socket.sendall(part)
        time.sleep(pause)
    assert talk.answer()[2]["decision_id"] == "a-1"
    assert talk.ask("a-2")[2]["decision_id"] == "a-2"


def test_requests_that_do_not_wait_for_answers_are_answered_in_their_order(talk: Talk) -> None:
    ids = [f"a-{i}" for i in range(1, 9)]
    talk.socket.sendall(b"".join(talk.request({"context": {"age": 34}, "decision_id": id_}) for id_ in ids))
    assert [talk.answer()[2]["decision_id"] for _ in ids] == ids
    for id_ in ids:  # one by one, without waiting
        talk.socket.sendall(talk.request({"context": {"age": 34}, "decision_id": id_.replace("a", "b")}))
        time.sleep(0.002)
    assert [talk.answer()[2]["decision_id"] for _ in ids] == [id_.replace("a", "b") for id_ in ids]


def test_a_key_is_asked_for_each_time(talk: Talk) -> None:
    other = talk.desk.desk.keys.add("other", "writer")
    content = [talk.request({"context": {"age": 34}, "decision_id": f"k-{i}"}, key=other) for i in range(4)]
    for message in content[:3]:
        talk.socket.sendall(message)
        assert talk.answer()[0] == 200
    assert talk.short == 2
    talk.desk.desk.keys.revoke("other")
    talk.socket.sendall(content[3])
    assert talk.answer()[0] == 401
    reader = talk.request({"context": {"age": 34}, "decision_id": "k-9"}, key=talk.desk.reader)
    for _ in range(2):
        talk.socket.sendall(reader)
        assert talk.answer()[0] == 403


def test_a_key_that_asks_too_much_is_refused(talk: Talk) -> None:
    talk.desk.desk.app.rate_limiter = RateLimiter(RateLimit(1e-3, 3.0))
    assert [talk.ask(f"a-{i}")[0] for i in range(1, 6)] == [200, 200, 200, 429, 429]


def test_a_store_that_is_away_gives_the_safe_action(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: Any) -> Any:
        raise StoreUnavailable(ErrorCode.STORE_UNAVAILABLE, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(talk.desk.desk.store, "begin", lambda _: None)
        patched.setattr(talk.desk.desk.store, "append", away)
        status, headers, told = talk.ask("a-1")
        assert (status, told["logged"], told["decision_id"]) == (503, False, "a-1")
        assert "disk is full" in told["message"]
        assert "retry-after" in headers
        assert talk.short == 1
    assert talk.ask("a-1")[2]["logged"]


def test_a_kill_holds_at_once(talk: Talk) -> None:
    host, port = talk.desk.address.removeprefix("http://").split(":")
    content = talk.request({"reason": "a test"}, "/v1/demo/kill", key=talk.desk.admin)
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(content)
        assert b" 200 " in connection.recv(65536)
    assert talk.ask("a-1")[2]["mode"] == "killed"


def test_who_hangs_up_is_not_waited_for(talk: Talk) -> None:
    talk.socket.sendall(talk.request({"context": {"age": 34}, "decision_id": "a-1"}))
    talk.socket.close()
    other = Talk(talk.desk)
    with closing(other.socket):
        assert other.ask("a-2")[0] == 200
        assert other.ask("a-1")[0] == 200


@pytest.mark.parametrize("before", [b"\r\n", b"\r\n\r\n", b"\r\n\r\n\r\n"])
def test_what_stands_before_a_request_opens_no_door(talk: Talk, before: bytes) -> None:
    """A head is remembered with its key, or not at all."""
    content = talk.request({"context": {"age": 34}, "decision_id": "a-1"})
    talk.socket.sendall(before + content)
    assert talk.answer()[0] == 200
    body = content.partition(b"\r\n\r\n")[2]
    heads = talk.desk.desk.app.fast_path._heads
    assert heads
    assert all(talk.desk.writer.encode() in head and head.startswith(b"POST /v1/") for head in heads)
    other = Talk(talk.desk)
    with closing(other.socket):
        other.socket.sendall(before + body.replace(b"a-1", b"a-9"))
        assert b" 200 " not in other.socket.recv(65536)
    assert talk.desk.desk.store.find("demo", "decision", "a-9") is None


def test_a_head_that_comes_in_pieces_is_read_by_the_parser(talk: Talk) -> None:
    content = talk.request({"context": {"age": 34}, "decision_id": "a-1"}, "/v1/demo/decisions")
    for cut in (3, 20, content.index(b"\r\n\r\n") + 2):
        talk.socket.sendall(content[:cut])
        time.sleep(0.01)
        talk.socket.sendall(content[cut:])
        assert talk.answer()[2]["decision_id"] == "a-1"
    assert talk.short == 0


def test_what_goes_the_long_way_is_counted_once(talk: Talk) -> None:
    """A retry is answered by the long way, and takes no more of what a key may ask than a first try."""
    talk.desk.desk.app.rate_limiter = RateLimiter(RateLimit(1e-3, 6.0))
    before = talk.short
    assert [talk.ask("t-1")[0] for _ in range(7)] == [200] * 6 + [429]
    assert talk.short - before == 6, "each was on the short way first"


class Asking(WaitingRequest):
    """Who asks the lane, without a socket."""

    def __init__(self) -> None:
        self.status = 0

    def reply(self, head: bytes, body: bytes) -> None:
        self.status = int(head.split()[1])

    def fall_back(self) -> None:
        raise AssertionError("this is as simple as it gets")


def test_who_comes_while_others_come_shares_their_transaction(tmp_path: Path) -> None:
    """And who comes while that is written, the next one, whose rows follow in the log."""

    async def main() -> list[list[str]]:
        async with real(tmp_path) as there:
            lane, route = there.app.fast_path, there.app.router.find(b"/v1/demo/decisions")[0]["POST"]
            groups, append_soon = list[list[str]](), there.desk.writer.append_soon
            askers = [Asking() for _ in range(32)]

            def ask(number: int) -> None:
                body = json.dumps({"context": {"age": 34}, "decision_id": f"a-{number:02}"}).encode()
                head = CachedHead(route, ("demo",), there.writer.key.encode(), len(body))
                assert lane.take(head, body, askers[number])
                if number not in (15, 31):  # the next one comes with the next look at the sockets
                    asyncio.get_running_loop().call_soon(ask, number + 1)

            def writing(asks: Sequence[AppendRequest], tell: Any) -> None:
                groups.append([one.key for one in asks])
                append_soon(asks, tell)
                if len(groups) == 1:
                    ask(16)

            there.desk.writer.append_soon = writing  # type: ignore[method-assign]
            ask(0)
            while not all(one.status == 200 for one in askers):
                await asyncio.sleep(0.001)
            assert [row.key for row in there.store.events_of_kind("demo", "decision")] == [*chain(*groups)]
            return groups

    groups = asyncio.run(main())
    assert groups == [[f"a-{number:02}" for number in half] for half in (range(16), range(16, 32))]
