"""OpenFeature clients against the real server, which is killed and starts again in between."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.track import TrackingEventDetails
from tests.clients.history import check_history
from tests.server.web.live import Live, live

import stagewise as sw
from stagewise.server.openfeature import StagewiseProvider

ROOT = Path(__file__).parents[2]
NODE_CLIENT = ROOT / "clients" / "typescript"
PROBLEM = """
action_names = ["nothing", "digest", "offer"]
safe_name = "nothing"
context = { age = [18, 99] }
[reward]
name = "click"
window = "15m"
[limits.opt_out]
at_most = 0.2
safe_bound = 0.0
window = "15m"
model = "rates"
"""


class Service:
    """A server process on a port and a store that stay the same."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "server.db"
        (folder / "demo.toml").write_text(PROBLEM)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and return when it is ready."""
        words = ["demo.toml", "--port", str(self.port), "--quiet", "--keys", "keys.txt", "--store", str(self.store)]
        with (self.folder / "said.txt").open("a") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "stagewise", "serve", *words],
                cwd=self.folder, stdout=said, stderr=said, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            )  # fmt: skip
        for _ in range(400):
            assert self.process.poll() is None, (self.folder / "said.txt").read_text()
            try:
                key = (self.folder / "keys.txt").read_text().split()[2]
                ask = urllib.request.Request(self.url + "/readyz", headers={"Authorization": f"Bearer {key}"})
                with urllib.request.urlopen(ask):
                    return
            except (OSError, IndexError):
                time.sleep(0.1)
        raise AssertionError("it was never ready")

    def stop(self, how: signal.Signals) -> None:
        """Stop, and wait."""
        self.process.send_signal(how)
        self.process.wait(60)


def play_history(folder: Path, command: Sequence[str], count: int) -> int:
    """Run a client while the server is killed and started again; return how many decisions are not logged."""
    service, out = Service(folder), folder / "history.jsonl"
    service.start()
    try:
        key = (folder / "keys.txt").read_text().split()[1]
        words = [*command, service.url, key, str(count), str(out)]
        with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as client:
            while not out.exists() or out.read_text().count("\n") < count // 4:
                assert client.poll() is None, client.stderr and client.stderr.read()
                time.sleep(0.01)
            service.stop(signal.SIGKILL)
            service.start()
            assert client.wait(600) == 0, client.stderr and client.stderr.read()
    finally:
        service.stop(signal.SIGINT)
    history = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(history) >= count
    return check_history(history, service.store)


def test_a_history_of_the_python_provider_agrees_with_the_log(tmp_path: Path) -> None:
    unlogged = play_history(tmp_path, [sys.executable, "-m", "tests.clients.history"], 400)
    assert unlogged > 0, "it was killed within the history"


@pytest.mark.skipif(not (NODE_CLIENT / "dist").exists() or not shutil.which("node"), reason="make clients builds it")
def test_a_history_of_the_node_provider_agrees_with_the_log(tmp_path: Path) -> None:
    unlogged = play_history(tmp_path, ["node", str(NODE_CLIENT / "test" / "history.mjs")], 400)
    assert unlogged > 0, "it was killed within the history"


@pytest.mark.slow
@pytest.mark.parametrize("client", ["python", "node"])
def test_a_long_history_agrees_with_the_log(tmp_path: Path, client: str) -> None:
    node = ["node", str(NODE_CLIENT / "test" / "history.mjs")]
    command = node if client == "node" else [sys.executable, "-m", "tests.clients.history"]
    unlogged = play_history(tmp_path, command, 10_000)
    assert unlogged > 0


def test_a_flag_is_an_experiment_and_its_errors_serve_the_safe_action(tmp_path: Path) -> None:
    limits = {"opt_out": sw.Limit(0.2, safe_bound=0.0, model="rates")}
    told = {"action_names": ["nothing", "digest"], "safe_name": "nothing", "context": {"age": (18, 99)}}
    problem = sw.Problem(**told, reward=sw.Reward("click"), limits=limits)  # type: ignore[arg-type]
    numbers = {"nothing": 0, "digest": 5}
    with live(tmp_path, problem) as server:
        safe = {"demo": "nothing", "gone": "nothing"}
        provider = StagewiseProvider(server.address, server.writer, {"demo": "nothing"}, values={"demo": numbers})
        api.set_provider_and_wait(provider, "numbers")
        api.set_provider_and_wait(StagewiseProvider(server.address, server.writer, {"demo": "nothing"}), "names")
        flags, names = api.get_client("numbers"), api.get_client("names")
        user = EvaluationContext("ada", {"age": 40, "decision_id": "d-1", "session": "s"})
        found = flags.get_integer_details("demo", 0, user)
        assert (found.value, found.error_code) == (numbers[str(found.variant)], None)
        assert found.flag_metadata["decision_id"] == "d-1"
        assert found.flag_metadata["limits.opt_out.threshold"] == 0.2
        flags.track("demo.click", user, TrackingEventDetails(1.0))
        flags.track("demo", user, TrackingEventDetails(attributes={"click": object()}))  # type: ignore[dict-item]
        flags.track("demo.opt_out", user, TrackingEventDetails(0.0))  # is not lost with the one before it
        young = EvaluationContext("eve", {"age": 17})
        assert names.get_string_details("demo", "nothing", young).error_code == ErrorCode.INVALID_CONTEXT
        unsafe = names.get_string_details("demo", "digest", young)
        assert (unsafe.value, unsafe.reason) == ("nothing", "ERROR"), "the default is not safe"
        assert names.get_boolean_details("demo", False, user).error_code == ErrorCode.TYPE_MISMATCH
        assert names.get_string_details("other", "x", user).error_code == ErrorCode.FLAG_NOT_FOUND
        with pytest.raises(Exception, match="gone"):
            api.set_provider_and_wait(StagewiseProvider(server.address, server.writer, safe), "gone")
        with pytest.raises(Exception, match="digest"):
            api.set_provider_and_wait(StagewiseProvider(server.address, server.writer, {"demo": "digest"}), "unsafe")
        api.shutdown()
        log = server.desk.store.events("demo", limit=100)
        assert [event.kind for event in log if event.kind in ("decision", "outcome")] == [
            "decision",
            "outcome",
            "outcome",
        ]


def test_events_wait_while_the_key_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A gateway refuses the key for a while; then it is revoked, and what waits then is told at the end."""
    with live(tmp_path) as server:
        provider = StagewiseProvider(server.address, server.writer, {"demo": "nothing"})
        api.set_provider_and_wait(provider)
        flags, keys, user = api.get_client(), server.desk.keys, EvaluationContext("ada", {"age": 40})
        ids = [flags.get_string_details("demo", "nothing", user).flag_metadata["decision_id"] for _ in range(6)]
        known = keys.authenticate
        keys.authenticate = lambda _: None  # type: ignore[method-assign]
        for id_ in ids[:5]:
            flags.track("demo.click", user, TrackingEventDetails(1.0, {"decision_id": id_}))
        while not caplog.records:
            time.sleep(0.01)
        assert count_outcomes(server) == 0
        keys.authenticate = known  # type: ignore[method-assign]
        for _ in range(1000):
            if count_outcomes(server) == 5:
                break
            time.sleep(0.01)
        assert count_outcomes(server) == 5
        keys.revoke("app")
        keys.refresh()
        caplog.clear()
        flags.track("demo.click", user, TrackingEventDetails(1.0, {"decision_id": ids[5]}))
        api.shutdown()
        assert caplog.records
        assert count_outcomes(server) == 5


def count_outcomes(server: Live) -> int:
    return sum(event.kind == "outcome" for event in server.desk.store.events("demo", limit=100))
