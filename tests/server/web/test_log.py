"""Whatever a desk says on standard error is a line of JSON, and holds nothing of what was sent."""

import http.client
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stagewise.server.web.requests import REQUEST_ID, format_error_location, log_as_json

ROOT = Path(__file__).parents[3]
SECRET = "ada@example.org"
FAILING = f"""
import logging, sys, threading
from pathlib import Path
import stagewise.server.decide as engine
from stagewise.server.decision_server import DecisionServer
from stagewise.server.web.app import HttpSettings
from stagewise.server.web.http_server import serve
from tests.server.web.real import Real

def failing(*args, **kwargs):
    raise ValueError("line one {SECRET}\\nline two {SECRET}")

engine.choose = failing
DecisionServer.explain = failing
there = Real(Path(sys.argv[1]), settings=HttpSettings(log=sys.argv[2] == "log"))
def on_start(address):
    print(address, there.writer.key, flush=True)
    logging.getLogger("asyncio").error("Task exception was never retrieved: {SECRET}")
    threading.Thread(target=failing).start()
settings = there.app.settings
serve(there.desk, "127.0.0.1", 0, keys=there.keys, settings=settings, prepare=there.prepare, on_start=on_start)
"""


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("kind", ["log", "quiet"])
def test_a_desk_that_fails_inside_says_so_in_lines_without_what_was_sent(tmp_path: Path, kind: str) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-c", FAILING, str(tmp_path), kind],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
    )  # fmt: skip
    assert begun.stdout is not None
    address, key = begun.stdout.readline().split()
    headers, ids = {"authorization": f"Bearer {key}", "content-type": "application/json"}, list[str]()
    with closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)) as connection:
        for method, path, body, status in (
            ("POST", "/v1/demo/decisions", {"context": {"age": 34}, "decision_id": f"1{SECRET}"}, 200),
            ("POST", "/v1/demo/decisions", {"context": {"age": 34}, "decision_id": f"2{SECRET}"}, 200),  # the short way
            ("POST", "/v1/demo/decisions", [{"context": {"age": 34}, "decision_id": f"3{SECRET}"}], 200),
            ("GET", f"/v1/demo/decisions/{SECRET}", None, 500),
        ):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            assert (answer.status, SECRET in answer.read().decode() and status == 500) == (status, False)
            ids.append(answer.headers["x-request-id"])
    begun.send_signal(signal.SIGTERM)
    _, said = begun.communicate(timeout=30)
    assert begun.returncode == 0
    assert (SECRET in said, key in said, "line one" in said) == (False, False, False)
    told = lines_of(said)
    troubles = [line for line in told if "message" in line]
    words = "deciding failed; the safe action is served"
    deciding = [line for line in troubles if line["message"] == words]
    assert [(line["id"], line["level"], line["error"][:21]) for line in deciding] == [
        (id_, "error", "ValueError at failing") for id_ in ids[:3]
    ]
    others = {line["message"] for line in troubles} - {words}
    assert others == {"a failure in asyncio", "a thread failed"}
    requests = [line for line in told if "route" in line]
    assert len(requests) == (4 if kind == "log" else 1)  # a request that failed is said in any case
    assert (requests[-1]["id"], requests[-1]["error"][:21]) == (ids[-1], "ValueError at failing")


def test_a_line_tells_the_request_and_no_words_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("stagewise.server")
    known = REQUEST_ID.set("4f-1")
    try:
        with log_as_json():
            try:
                raise KeyError(SECRET)
            except KeyError:
                log.exception("a snapshot of %r cannot be read", "mail")
            log.warning("two\nlines")
            others = logging.getLogger("psycopg.pool")
            others.warning("%s is away", SECRET)
            others.warning("connecting %s: %s", SECRET, ConnectionError(SECRET))
            others.warning("%(name)s: %(why)s", {"name": SECRET, "why": TimeoutError(SECRET)})
            others.warning("%s is away", SECRET, exc_info=OSError(SECRET))
            log.warning("left as it was: %s", ConnectionError())
    finally:
        REQUEST_ID.reset(known)
    log.warning("said after the desk has stopped")
    said = capsys.readouterr().err
    first, second, *others_said, last = lines_of(said)
    assert SECRET not in said
    place = "test_a_line_tells_the_request_and_no_words_of_an_error"
    assert first.pop("at") > 1.7e9
    assert first.pop("error").startswith(f"KeyError at {place}:")
    assert first == {"level": "error", "message": "a snapshot of 'mail' cannot be read", "id": "4f-1"}
    assert (second["level"], second["message"], "error" in second) == ("warning", "two\nlines", False)
    assert {line["message"] for line in others_said} == {"a failure in psycopg.pool"}
    kinds = [line["error"].partition(f" at test_log.{place}:") for line in others_said]
    assert [kind for kind, _, _ in kinds] == ["no exception", "ConnectionError", "TimeoutError", "OSError"]
    assert all(number.isdigit() for _, _, number in kinds)
    assert last["error"].startswith(f"ConnectionError at test_log.{place}:")


def test_threads_and_loggers_are_as_before_when_it_is_over() -> None:
    handlers, hook = list(logging.getLogger().handlers), threading.excepthook
    with log_as_json():
        assert threading.excepthook is not hook
    assert (logging.getLogger().handlers, threading.excepthook) == (handlers, hook)


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert format_error_location(ValueError(SECRET)) == "ValueError"
