"""Webhooks from a real server to a receiver that fails, is slow or redirects, and over a killed server."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from tests.server.receivers import NEXT_SECRET, SECRET, Receiver, receiving, write_webhooks
from tests.server.server_helpers import NAME, learned, played, serve_problem, soon, user
from tests.server.test_drifting_limits import PROBLEM as DRIFTING
from tests.server.test_serving_cli import PROBLEM

import stagewise as sw
from stagewise.cli.server_startup import build_offline_log
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.webhooks import sender
from stagewise.server.webhooks.endpoints import load_endpoints


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "DELAYS", (0.05, 0.05, 0.2))
    monkeypatch.setattr(sender, "POLL_INTERVAL", 0.01)


def serving(folder: Path, receiver: Receiver, more: str = "", **settings: Any) -> Any:
    """Serve with a webhook."""
    return serve_problem(
        folder, webhooks=load_endpoints(write_webhooks(folder, receiver.url + "/hook", more)), **settings
    )


@played
async def test_every_change_is_told_once_signed_and_in_order(tmp_path: Path) -> None:
    with receiving() as receiver:
        async with serving(tmp_path, receiver) as server:
            await server.set_mode(NAME, "canary", 0.25, "ada", "a quarter")
            await server.kill(NAME, "ada", "complaints doubled")
            await server.resume(NAME, "ada", "a false alarm")
            await server.kill(None, "bob", "a drill")
            changed = server.experiment(NAME).problem.to_dict() | {
                "action_names": ["nothing", "digest", "offer", "sale"]
            }
            await server.new_version(NAME, changed, "ada", "a sale")
            expected = ["version", "mode", "mode", "stop", "resume", "version"]
            await soon(lambda: len(receiver.calls) == len(expected) + 1)
            await server.set_mode(NAME, "live", None, "ada", "all")
            await soon(lambda: len(receiver.calls) == len(expected) + 2)
        events = sorted((call.event["data"]["number"], call.event) for call in receiver.calls)
        assert [one["type"] for _, one in events if one["data"]["experiment"] == NAME] == [*expected, "mode"]
        assert [one["type"] for _, one in events if one["data"]["experiment"] is None] == ["stop"]
        assert len({call.id for call in receiver.calls}) == len(receiver.calls)
        assert all(call.verify(SECRET) and not call.verify(NEXT_SECRET) for call in receiver.calls)
        assert {call.path for call in receiver.calls} == {"/hook"}
        stop = next(one for _, one in events if one["type"] == "stop")
        assert stop["data"]["details"] == {"actor": "ada", "note": "complaints doubled"}
        assert "complaints doubled" in stop["data"]["message"]
        assert (stop["data"]["reason"], stop["data"]["actor"]) == (sw.FallbackReason.KILLED, "ada")


@played
async def test_an_alert_and_its_stop_are_told_and_once_more_after_an_acknowledgement(tmp_path: Path) -> None:
    served = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.001)},
    )  # fmt: skip
    more = 'events = ["alert", "stop", "acknowledge"]'
    with receiving() as receiver:
        async with serving(tmp_path, receiver, more, served=served) as server:
            await lived_badly(server)
            await soon(lambda: len(receiver.calls) >= 2)
            alert = next(call.event for call in receiver.calls if call.event["type"] == "alert")
            assert alert["data"]["reason"] == sw.FallbackReason.ASSUMPTION_CONTRADICTED
            assert alert["data"]["stops"]
            stop = next(call.event for call in receiver.calls if call.event["type"] == "stop")
            assert stop["data"]["reason"] == sw.FallbackReason.TRIPPED
            told = len(receiver.calls)
            for name in list(server.experiment(NAME).alerts):
                await server.acknowledge(NAME, name, "ada", "known")
            await learned(server)
            await soon(lambda: receiver.events[told:])
            assert {type_ for type_, _ in receiver.events[told:]} == {"acknowledge"}
        told = len(receiver.calls)
        async with serving(tmp_path, receiver, more, served=served) as server:  # nothing is told twice
            await server.kill(NAME, "ada", "the end")
            await soon(lambda: len(receiver.calls) > told)
        assert receiver.events[told:] == [("stop", NAME)]


async def lived_badly(server: Any) -> None:
    """The safe action costs what it must not."""
    for i in range(400):
        await server.decide(NAME, bare_user(i))
        await server.learn(NAME, OutcomeUpdate(f"d{i}", {"click": 0.0, "opt_out": 1.0}))
    await learned(server)


def bare_user(i: int) -> Any:
    request = user(f"d{i}")
    request.context = {}
    return request


@played
async def test_an_alert_is_told_though_it_is_acknowledged_and_the_server_gone_before_it_is_delivered(
    tmp_path: Path,
) -> None:
    served = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.001)},
    )  # fmt: skip
    with receiving(*[500] * 10_000) as receiver:
        async with serving(tmp_path, receiver, 'events = ["alert"]', served=served) as server:
            await lived_badly(server)
            await soon(lambda: receiver.calls)
            for name in list(server.experiment(NAME).alerts):
                await server.acknowledge(NAME, name, "ada", "known")
            await learned(server)
            await soon(lambda: not server.experiment(NAME).alerts)
        receiver.answers.clear()
        ids = {call.id for call in receiver.calls}
        async with serving(tmp_path, receiver, 'events = ["alert"]', served=served) as server:
            await soon(lambda: server.counters.webhooks["chat", sender.DELIVERED] == len(ids))
        assert {call.id for call in receiver.calls} == ids


@played
async def test_a_jump_is_told(tmp_path: Path) -> None:
    with receiving() as receiver:
        async with serving(tmp_path, receiver, 'events = ["jump"]', served=DRIFTING) as server:
            rows, rng = 4000, np.random.default_rng(0)
            log = {
                "action": ["offer"] * rows,
                "click": [1.0] * rows,
                "opt_out": (rng.random(rows) < np.where(np.arange(rows) < 2000, 0.01, 0.6)).astype(float),
            }
            at = server.store.now() / 1e6 - 20 * DAY + np.arange(rows) * 20 * DAY / rows
            whole = build_offline_log(DRIFTING, {**log, "at": at}, {})
            await server.learned(NAME, (await server.learn_log(NAME, whole, "ada", "last month")).row)
            await soon(lambda: receiver.calls)
        (call,) = receiver.calls
        assert (call.event["type"], call.event["data"]["details"]["action"]) == ("jump", repr("offer"))
        assert not call.event["data"]["stops"]


@played
async def test_a_receiver_that_fails_or_redirects_gets_the_same_event_again(tmp_path: Path) -> None:
    with receiving() as elsewhere, receiving(500, elsewhere.url + "/stolen", 404) as receiver:
        async with serving(tmp_path, receiver, 'events = ["stop"]') as server:
            await server.kill(NAME, "ada", "a drill")
            await soon(lambda: server.counters.webhooks["chat", sender.DELIVERED])
            assert server.counters.webhooks["chat", sender.FAILED] == 3
            assert server.webhooks.count_pending() == {"chat": 0}
        assert len(receiver.calls) == 4
        assert len({(call.id, call.body) for call in receiver.calls}) == 1
        assert all(call.verify(SECRET) for call in receiver.calls)
        assert not elsewhere.calls


@played
async def test_no_decision_waits_for_a_receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "TIMEOUT", 0.5)
    released = threading.Event()
    with receiving(lambda: released.wait(30.0) and 204) as receiver:
        async with serving(tmp_path, receiver, 'events = ["mode"]') as server:
            await soon(lambda: receiver.calls)
            for i in range(50):
                assert (await server.decide(NAME, user(f"d{i}"))).logged
            assert not released.is_set()
            await soon(lambda: server.counters.webhooks["chat", sender.FAILED])  # it took too long
            await soon(lambda: server.counters.webhooks["chat", sender.DELIVERED])
            released.set()
        assert len({call.id for call in receiver.calls}) == 1


@played
async def test_secrets_rotate_while_the_server_runs(tmp_path: Path) -> None:
    with receiving() as receiver:
        async with serving(tmp_path, receiver, 'events = ["stop"]') as server:
            for lines in (SECRET, f"{NEXT_SECRET}\n{SECRET}", NEXT_SECRET):
                (tmp_path / "chat.secret").write_text(lines)
                count = len(receiver.calls)
                await server.kill(NAME, "ada", "a drill")
                await soon(lambda count=count: len(receiver.calls) > count)
    signed = [(call.verify(SECRET), call.verify(NEXT_SECRET)) for call in receiver.calls]
    assert signed == [(True, False), (True, True), (False, True)]


@played
async def test_what_is_too_old_or_too_much_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MAX_AGE", 0.0)
    with receiving(500) as receiver:
        async with serving(tmp_path, receiver, 'events = ["stop"]') as server:
            await server.kill(NAME, "ada", "a drill")
            await soon(lambda: server.counters.webhooks["chat", sender.DROPPED])
            await server.kill(NAME, "ada", "another")
            await soon(lambda: server.counters.webhooks["chat", sender.DELIVERED])
    assert len(receiver.calls) == 2


@pytest.mark.long
@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_a_server_that_is_killed_after_a_stop_tells_it_after_its_next_start(tmp_path: Path, delay: float) -> None:
    """The receiver fails until the server is killed, so that the event is between its row and its delivery."""
    (tmp_path / "mail.toml").write_text(PROBLEM)
    down = threading.Event()
    with receiving(*[lambda: 204 if down.is_set() else 503] * 1000) as receiver:
        path = write_webhooks(tmp_path, receiver.url, 'events = ["stop"]')
        process = start(tmp_path, path)
        request_stop(tmp_path)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        down.set()
        before = len(receiver.calls)
        process = start(tmp_path, path)
        end = time.monotonic() + 60.0
        while len(receiver.calls) == before and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert receiver.events[before:] == [("stop", "mail")]
    assert len({(call.id, call.body) for call in receiver.calls}) == 1


def start(folder: Path, webhooks: Path) -> "subprocess.Popen[bytes]":
    """Serve in another process until it is ready."""
    words = ["mail.toml", "--port", "0", "--quiet", "--keys", "keys.txt", "--webhooks", str(webhooks)]
    said = folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "stagewise", "serve", *words], cwd=folder, stdout=out, stderr=out,
        )  # fmt: skip
    end = time.monotonic() + 60.0
    while "Serving" not in said.read_text():
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


def request_stop(folder: Path) -> None:
    """Turn the kill switch on over HTTP."""
    address = re.search(r"(http://[\d.]+:\d+)", (folder / "said.txt").read_text())
    assert address is not None
    key = (folder / "keys.txt").read_text().split()[0]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = json.dumps({"reason": "a drill"}).encode()
    with urlopen(Request(f"{address[1]}/v1/mail/kill", body, headers), timeout=30.0) as answer:
        assert json.load(answer)["killed"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ('url = "http://example.com/hook"', ErrorCode.INVALID_ADDRESS),
        ('url = "https://ada:pass@example.com/"', ErrorCode.INVALID_ADDRESS),
        ('url = "file:///etc/passwd"', ErrorCode.INVALID_ADDRESS),
        ('url = "https://example.com/\\r\\nx: y"', ErrorCode.INVALID_ADDRESS),
        ('events = ["stopp"]', ErrorCode.INVALID_CHOICE),
        ('events = "stop"', ErrorCode.WRONG_TYPE),
        ('allow_http = "yes"', ErrorCode.WRONG_TYPE),
        ('secret = "whsec_x"', ErrorCode.UNKNOWN_SETTING),
        ('secrets = "none.secret"', ErrorCode.FILE_NOT_FOUND),
        ('secrets = "webhooks.toml"', ErrorCode.FILE_INVALID),
        ('name = ""', ErrorCode.INVALID_NAME),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anything_starts(tmp_path: Path, change: str, code: ErrorCode) -> None:
    path = write_webhooks(tmp_path, "https://example.com/hook")
    lines = [line for line in path.read_text().splitlines() if line.split(" =")[0] != change.split(" =")[0]]
    path.write_text("\n".join([*lines, change]))
    with pytest.raises(sw.InvalidFile) as error:
        load_endpoints(path)
    assert error.value.details["error"].code == code
    assert "whsec" not in str(error.value).replace('"whsec_"', "")


def test_plain_http_must_be_allowed(tmp_path: Path) -> None:
    (endpoint,) = load_endpoints(write_webhooks(tmp_path, "http://hooks.internal:80/", "allow_http = true"))
    assert not endpoint.is_loopback_only
