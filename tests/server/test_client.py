"""The client: it always has an answer, a retry never redraws, and nothing is learned of what was not shown."""

import json
import pickle
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from tests.server.scripted import decided, desk, scripted, waited

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.server import client as client_module
from stagewise.server.client import (
    Client,
    DecisionRequest,
    ErrorResponse,
    OutcomeResponse,
    RequestRejected,
    ServerUnavailable,
)


def client_of(url: str, **settings: Any) -> Client:
    return Client(url, "k.secret", "messages", safe="nothing", **{"timeout": 2.0, "retry_delay": 0.001, **settings})


def test_importing_it_loads_the_standard_library_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); from stagewise.server.client import Client; "
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.strip() == "['stagewise']"


def test_a_decision_and_its_outcomes() -> None:
    with scripted(desk) as server, client_of(server.url + "/") as client:
        decision = client.decide({"age": 34}, only=["offer"])
        assert decision.action == "offer"
        assert decision.probabilities == {"nothing": 0.25, "offer": 0.75}
        assert (decision.logged, decision.message, decision.limits["opt_out"]["threshold"]) == (True, None, 0.02)
        assert client.learn(decision.decision_id, click=True) == OutcomeResponse(decision.decision_id, ("click",))
        assert client.learn(decision, opt_out=0.0, outcome_id="o1").accepted == ("opt_out", "outcome_id")
        assert client.cancel(decision).accepted == ("shown",)
    paths = [path for path, _ in server.seen]
    assert paths == ["/v1/messages/decisions", *3 * ["/v1/messages/outcomes"]]
    assert server.seen[0][1] == {"context": {"age": 34}, "only": ["offer"], "decision_id": decision.decision_id}
    assert server.seen[3][1] == {"decision_id": decision.decision_id, "shown": False}
    assert server.keys == {"Bearer k.secret"}
    assert server.opened == 1  # one connection, kept open


def test_the_name_at_the_front_door() -> None:
    assert sw.Client is Client


def test_names_of_experiments_are_part_of_a_path_and_no_more() -> None:
    with scripted(desk) as server, Client(server.url + "/desk", "k", "a/b ?ö", safe="nothing") as client:
        client.decide({})
    assert server.seen[0][0] == "/desk/v1/a%2Fb%20%3F%C3%B6/decisions"


def test_a_retry_asks_for_the_same_decision() -> None:
    answers = iter(
        [
            (503, {"code": "store_unavailable", "message": "the store is away"}),
            None,
            (429, {"code": "rate_limited", "message": "slower"}),
        ]
    )
    with scripted(lambda path, body: next(answers, desk(path, body))) as server, client_of(server.url) as client:
        decision = client.decide({"age": 34})
    assert decision.action == "offer"
    assert len(server.seen) == 4
    assert {body["decision_id"] for _, body in server.seen} == {decision.decision_id}


def test_what_was_asked_again_and_answered_is_not_reported_as_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outcomes would be refused."""
    monkeypatch.setattr(client_module, "NOT_SHOWN_DELAYS", (0.3,))
    answers = iter([(500, {"code": "internal_error", "message": "busy"})])
    with scripted(lambda path, body: next(answers, desk(path, body))) as server, client_of(server.url) as client:
        assert not client.decide({}, decision_id="mail-17").logged
        assert client.decide({}, decision_id="mail-17").logged
        client.learn("mail-17", opt_out=True)
        assert waited(lambda: client._thread is None)
    assert not any("shown" in str(body) for _, body in server.seen)


def test_ids_are_made_or_given() -> None:
    with scripted(desk) as server, client_of(server.url) as client:
        assert client.decide({}, decision_id="mail-17").decision_id == "mail-17"
        assert client.decide({}).decision_id != client.decide({}).decision_id


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ((500, {"code": "internal_error", "message": "something broke"}), "something broke"),
        ((502, b"<html>"), "status 502"),
        ((200, b"{"), "cannot be read"),
        ((200, [1]), "cannot be read"),
        ((200, {"decision_id": "x"}), "cannot be read"),
        ((200, {"action": 3, "decision_id": "x", "probabilities": {}}), "cannot be read"),
        ((301, b""), "status 301"),
        ((429, {"code": "rate_limited", "message": "slower"}), "slower"),
        ((503, {"logged": False, "action": "offer", "message": "the store is away"}), "the store is away"),
        ((200, {**decided({"decision_id": "x"}), "logged": False, "message": "the disk is full"}), "the disk is full"),
        (None, "cannot be reached"),
    ],
)
def test_whatever_a_desk_says_there_is_an_answer(said: Any, words: str) -> None:
    """The safe action, why, and nothing that outcomes could be told of; the desk hears that it was not shown."""

    def script(path: str, body: Any) -> Any:
        return said if path.endswith("/decisions") else desk(path, body)

    with scripted(script) as server, client_of(server.url) as client:
        decision = client.decide({"age": 34})
        assert (decision.action, decision.logged, decision.mode) == ("nothing", False, "away")
        assert decision.probabilities == {"nothing": 1.0}
        assert words in str(decision.message)
        asked = server.seen[0][1]["decision_id"]
        assert waited(lambda: server.seen[-1] == ("/v1/messages/outcomes", [{"decision_id": asked, "shown": False}]))
        count = len(server.seen)
        assert client.learn(decision.decision_id, click=True) == OutcomeResponse(
            decision.decision_id
        )  # nothing is sent
        assert client.learn_many([{"decision_id": decision.decision_id, "click": 1}]) == [
            OutcomeResponse(decision.decision_id)
        ]
        assert len(server.seen) == count


def test_where_nobody_listens_there_is_an_answer_at_once_and_nothing_to_report() -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    client = client_of(f"http://127.0.0.1:{port}")
    decision = client.decide({})
    assert (decision.action, decision.logged) == ("nothing", False)
    assert "Connection refused" in str(decision.message)
    assert len(client._not_shown) == 0
    with pytest.raises(ServerUnavailable) as error:
        client.learn("d1", click=True)
    assert (error.value.code, error.value.details["decision_id"]) == (ErrorCode.SERVER_UNAVAILABLE, "d1")
    assert "Connection refused" in error.value.details["problem"]


def test_a_desk_that_hangs_is_left_after_the_timeout() -> None:
    """And what it logs long after that is reported as not shown, though at first it does not know of it."""
    free, known = threading.Event(), set()

    def script(path: str, body: Any) -> Any:
        if path.endswith("/decisions"):
            free.wait(10)
            known.add(body["decision_id"])
            return desk(path, body)
        told = [{"decision_id": r["decision_id"], "accepted": ["shown"]} for r in body]
        return 200, [
            t if t["decision_id"] in known else {"code": "unknown_decision", "message": "unknown"} for t in told
        ]

    with scripted(script) as server, client_of(server.url, timeout=0.2) as client:
        started = time.monotonic()
        decision = client.decide({})
        assert time.monotonic() - started < 5.0
        assert (decision.action, decision.logged) == ("nothing", False)
        assert "did not answer in time" in str(decision.message)
        assert waited(lambda: any(path.endswith("/outcomes") for path, _ in server.seen))
        assert len(client._not_shown) == 1
        free.set()
        assert waited(lambda: len(client._not_shown) == 0)
    assert known == {server.seen[0][1]["decision_id"]}


def test_a_connection_that_hangs_leaves_time_for_another() -> None:
    free, count = threading.Event(), iter(range(100))

    def script(path: str, body: Any) -> Any:
        if next(count) == 0:
            free.wait(10)
        return desk(path, body)

    with scripted(script) as server, client_of(server.url, timeout=2.0) as client:
        decision = client.decide({})
        free.set()
    assert (decision.action, decision.logged) == ("offer", True)
    assert [body["decision_id"] for _, body in server.seen] == [decision.decision_id] * 2


def test_what_no_desk_ever_logged_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "NOT_SHOWN_DELAYS", (0.01, 0.01, 0.01))

    def script(path: str, body: Any) -> Any:
        if path.endswith("/decisions"):
            return 500, b""
        return 200, [{"code": "unknown_decision", "message": "unknown"} for _ in body]

    with scripted(script) as server, client_of(server.url) as client:
        client.decide({}, decision_id="a")
        assert waited(lambda: client._thread is None)
    assert server.seen[1:] == [("/v1/messages/outcomes", [{"decision_id": "a", "shown": False}])] * 3


@pytest.mark.parametrize(
    ("status", "content", "code"),
    [
        (400, {"code": "invalid_json"}, ErrorCode.INVALID_JSON),
        (401, {"code": "unauthorized"}, ErrorCode.UNAUTHORIZED),
        (403, {"code": "forbidden"}, ErrorCode.FORBIDDEN),
        (404, {"code": "unknown_experiment"}, ErrorCode.UNKNOWN_EXPERIMENT),
        (409, {"code": "conflict"}, ErrorCode.CONFLICT),
        (413, {"code": "body_too_large"}, ErrorCode.BODY_TOO_LARGE),
        (422, {"code": "context_out_of_range"}, ErrorCode.CONTEXT_OUT_OF_RANGE),
        (422, {"code": "a code of a later version"}, ErrorCode.INVALID_REQUEST),
        (422, {"code": ["conflict"]}, ErrorCode.INVALID_REQUEST),
        (400, {}, ErrorCode.INVALID_REQUEST),  # of a proxy
    ],
)
def test_a_rejection_has_the_code_of_the_answer(status: int, content: Any, code: ErrorCode) -> None:
    answer = (status, {**content, "message": f"the key is unknown{chr(10)}really"})
    with scripted(lambda path, body: answer) as server, client_of(server.url) as client:
        with pytest.raises(RequestRejected) as error:
            client.decide({})
        with pytest.raises(sw.StagewiseError):
            client.learn("d1", click=1)
    assert (error.value.status, error.value.code) == (status, code)
    assert error.value.details == {"problem": "the key is unknown really", "status": status}
    copy = pickle.loads(pickle.dumps(error.value))
    assert (copy.code, copy.status, copy.details) == (error.value.code, error.value.status, error.value.details)
    assert len(server.seen) == 2  # another try would not change it


def test_many_at_once() -> None:
    def script(path: str, body: Any) -> Any:
        status, told = desk(path, body)
        bad = {"code": "unknown_action", "message": "no such action", "decision_id": body[-1]["decision_id"]}
        return status, [*told[:-1], bad]

    with scripted(script) as server, client_of(server.url) as client:
        first, second, third = client.decide_many(
            [{"age": 1}, DecisionRequest(decision_id="mine"), DecisionRequest({"age": 2}, ["x"])]
        )
        assert (first.action, second.decision_id) == ("offer", "mine")
        assert third == ErrorResponse("unknown_action", "no such action", server.seen[0][1][2]["decision_id"])
        told = client.learn_many([{"decision_id": "a", "click": 1}, {"decision_id": "b"}])
        assert told == [OutcomeResponse("a", ("click",)), ErrorResponse("unknown_action", "no such action", "b")]
        assert client.decide_many([]) == []
        assert len(client.decide_many([{}] * 1001)) == 1001
    assert [len(body) for _, body in server.seen] == [3, 2, 1000, 1]


def test_some_of_a_batch_may_be_logged_and_others_not() -> None:
    """A desk answers 503 then; what is logged is logged, and only the rest is the safe action."""

    def script(path: str, body: Any) -> Any:
        if path.endswith("/outcomes"):
            return desk(path, body)
        return 503, [decided(body[0]), {**decided(body[1]), "logged": False, "message": "the disk is full"}]

    with scripted(script) as server, client_of(server.url, max_attempts=2) as client:
        first, second = client.decide_many([{}, {}])
        assert (first.action, first.logged, second.action, second.logged) == ("offer", True, "nothing", False)
        assert second.message == "the disk is full"
        assert waited(lambda: server.seen[-1][0].endswith("/outcomes"))
        assert server.seen[-1][1] == [{"decision_id": server.seen[0][1][1]["decision_id"], "shown": False}]


def test_connections_that_were_closed_meanwhile_are_opened_again() -> None:
    with scripted(desk) as server, client_of(server.url, max_attempts=1) as client:
        client.decide({})
        for connection in client._connections._free:
            connection.sock.shutdown(socket.SHUT_RDWR)
        assert client.decide({}).logged


def test_threads_share_a_client() -> None:
    with scripted(desk) as server, client_of(server.url, timeout=20.0) as client:
        found: dict[str, str] = {}

        def work(i: int) -> None:
            for j in range(20):
                name = f"{i}-{j}"
                found[name] = client.decide({}, decision_id=name).decision_id

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 160
    assert all(asked == answered for asked, answered in found.items())
    assert server.opened <= 8


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: Client("ftp://x", "k", "e", "s"), ErrorCode.INVALID_ADDRESS),
        (lambda: Client("http://a@b:80:1", "k", "e", "s"), ErrorCode.INVALID_ADDRESS),
        (lambda: Client("http://[::1", "k", "e", "s"), ErrorCode.INVALID_ADDRESS),
        (lambda: Client("http://x", "k", "e", ""), ErrorCode.MISSING_VALUE),
        (lambda: Client("http://x", "k", "", "s"), ErrorCode.INVALID_NAME),
        (lambda: Client("http://x", "k\nHost: y", "e", "s"), ErrorCode.UNAUTHORIZED),
        (lambda: Client("http://x", "k", "e", "s", timeout=0), ErrorCode.OUT_OF_RANGE),
        (lambda: client_of("http://127.0.0.1:9").decide({"age": float("inf")}), ErrorCode.NOT_SERIALIZABLE),
        (lambda: client_of("http://127.0.0.1:9").decide({"age": {1, 2}}), ErrorCode.NOT_SERIALIZABLE),
        (lambda: client_of("http://127.0.0.1:9").decide(5), ErrorCode.WRONG_TYPE),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments_are_rejected(call: Any, code: ErrorCode) -> None:
    with pytest.raises(sw.StagewiseError) as error:
        call()
    assert error.value.code is code


def test_numbers_of_numpy_are_numbers() -> None:
    import numpy as np

    with scripted(desk) as server, client_of(server.url) as client:
        client.decide({"age": np.float64(3.5), "premium": np.bool_(True)})
    assert json.dumps(server.seen[0][1]["context"]) == '{"age": 3.5, "premium": true}'
