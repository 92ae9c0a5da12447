"""What can be set of a server's HTTP side from the command line holds on its port."""

import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.cli.commands import called
from tests.server.test_serving_cli import PROBLEM, served


def asked(address: str, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, Any, str]:
    """Return status, headers and body of an answer."""
    with closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def sent(address: str, key: str, path: str, body: Any) -> tuple[int, str]:
    """Return status and body of what is answered to JSON."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    status, _, text = asked(address, "POST", path, json.dumps(body), headers)
    return status, text


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / name for name in ("messages.toml", "letters.toml")]
    for path in paths:
        path.write_text(PROBLEM)
    return [str(path) for path in paths]


def test_the_rate_and_the_address_of_the_page(tmp_path: Path, files: list[str]) -> None:
    options = ("--rate", "0.001", "--public-url", "https://server.example/")
    with served(tmp_path, *files, "--keys", "keys.txt", *options) as (address, _):
        admin, writer, _ = (tmp_path / "keys.txt").read_text().split()
        visit = {"context": {"age": 34}, "decision_id": "visit"}
        assert sent(address, writer, "/v1/letters/decisions", visit)[0] == 200
        assert sent(address, writer, "/v1/letters/outcomes", {"decision_id": "visit", "click": True})[0] == 200
        batch = [{"context": {"age": 30}}] * 998
        assert sent(address, writer, "/v1/messages/decisions", batch)[0] == 200
        status, text = sent(address, writer, "/v1/messages/decisions", {"context": {"age": 30}})
        assert (status, json.loads(text)["code"]) == (429, "rate_limited")
        form = {"content-type": "application/x-www-form-urlencoded"}
        for origin, come in (("https://server.example", 303), (address, 403), ("https://elsewhere", 403)):
            status, headers, _ = asked(address, "POST", "/login", urlencode({"key": admin}), {**form, "origin": origin})
            assert (status, str(headers["set-cookie"]).startswith("__Host-stagewise=")) == (come, come == 303)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--rate", "0"], ["--rate", "0"]),
        (["--rate", "nan"], ["--rate", "nan"]),
        (["--rate", "inf"], ["--rate", "inf"]),
        (["--public-url", "server.example"], ["'server.example'"]),
        (["--public-url", "https://ada:secret@server.example"], []),
    ],
)
def test_what_cannot_be_set_is_said_before_anything_is_written(
    words: list[str], parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(PROBLEM)
    code, said = called("serve", "p.toml", *words)
    assert (code, said.count("\n"), said.startswith("stagewise: ")) == (2, 1, True), said
    assert [part for part in parts if part not in said] == []
    assert "secret" not in said
    assert not Path("server.db").exists()
