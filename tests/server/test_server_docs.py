"""The page on the server: what it tells people to type is typed here, in its order, against a server that runs."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.cli.commands import called
from tests.server.test_serving_cli import served

from stagewise.cli.main import app
from stagewise.server.messages import DecisionRequest, DecisionResponse, OutcomeResponse
from stagewise.server.web.openapi import get_error_statuses
from stagewise.server.web.routes import ROUTES

ROOT = Path(__file__).parents[2]
PAGES = (
    "how-to/serve.md",
    "how-to/run-several-servers.md",
    "how-to/audit-and-replay.md",
    "how-to/back-up-and-erase.md",
    "reference/http.md",
)
PAGE = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
COMPOSE = (ROOT / "examples" / "server" / "compose.yaml").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_what_the_page_says_is_typed_works(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The file, the start, curl, Python, the audit, and the move to PostgreSQL."""
    start, _, send, move, prove, back_up, restore = blocks("sh")
    (tmp_path / "messages.toml").write_text(blocks("toml")[0])
    monkeypatch.chdir(tmp_path)
    (words,) = [line.split() for line in start.splitlines() if line.startswith("stagewise")]
    assert words[:2] == ["stagewise", "serve"]
    with served(tmp_path, *words[2:]) as (address, _):
        key = re.findall(r"^  (sw_app_\S+)$", (tmp_path / "said.txt").read_text(), re.MULTILINE)[0]
        script = send.replace("http://127.0.0.1:8000", address).replace("sw_app_…", key)
        told = subprocess.run(["sh", "-e"], input=script, capture_output=True, text=True, check=True).stdout
        decision, outcome = re.findall(r"\{.*?\}(?=\{\"decision_id\"|$)", told.strip())
        assert json.loads(decision)["decision_id"] == "mail-17"
        assert json.loads(outcome)["accepted"] == ["click"]
        (code,) = blocks("python")
        known: dict[str, object] = {}
        exec(code.replace("http://127.0.0.1:8000", address).replace("sw_app_…", key), known)
        copies = [line for line in back_up.splitlines() if line.startswith("sqlite3") and shutil.which("sqlite3")]
        for line in copies:
            subprocess.run(shlex.split(line), check=True)
            (copied,) = re.findall(r"copy\d*\.db", line)
            assert called("audit", "verify", copied)[0] == 0
        if copies:
            assert called(*shlex.split(restore.splitlines()[0])[1:])[0] == 0
    for line in prove.splitlines():
        assert called(*shlex.split(line)[1:])[0] == 0, line
    (copy,) = [line for line in move.splitlines() if "audit copy" in line]
    assert called(*copy.replace("postgresql://stagewise@db.example/stagewise", postgres).split()[1:])[0] == 0
    with served(tmp_path, "--store", postgres):
        assert "messages: live, version 1, 3 actions" in (tmp_path / "said.txt").read_text()


def test_a_log_is_brought_into_the_server_as_the_page_says(tmp_path: Path) -> None:
    """The command, twice, as one types it who starts the server again."""
    (tmp_path / "messages.toml").write_text(blocks("toml")[0])
    write_parquet(tmp_path / "log.parquet")
    (words,) = [line.split() for line in blocks("sh")[1].splitlines()]
    assert words[:2] == ["stagewise", "serve"]
    for _ in range(2):
        with served(tmp_path, *words[2:]):
            said = (tmp_path / "said.txt").read_text()
            assert "messages: live, version 1, 3 actions, 3,000 rows of " in said
    code, said = called("audit", "verify", str(tmp_path / "server.db"))
    assert (code, "0 decisions" in said) == (0, True)


def write_parquet(path: Path) -> None:
    """Write a month of mails that agree with the page's problem."""
    from arro3.core import Array, DataType, Table
    from arro3.io import write_parquet as write

    rng, rows = np.random.default_rng(1), 3000
    actions = rng.integers(0, 3, rows)
    told = {
        "age": rng.integers(18, 100, rows).astype(float),
        "opens_7d": rng.integers(0, 8, rows).astype(float),
        "click": (rng.random(rows) < 0.02 + 0.04 * actions).astype(float),
        "opt_out": (rng.random(rows) < 0.008 * (actions > 0)).astype(float),
    }
    done = Array([("nothing", "digest", "offer")[i] for i in actions], DataType.string())
    write(
        Table.from_pydict({"action": done, **{name: Array.from_numpy(column) for name, column in told.items()}}), path
    )


def test_every_route_stands_on_the_page_as_it_is_served() -> None:
    rows = re.findall(r"^\| `((?:GET|POST|DELETE) \S+)` \| (\w+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(f"{route.method} {route.path}", route.role or "none", route.summary) for route in ROUTES]


@pytest.mark.parametrize("kind", [DecisionRequest, DecisionResponse, OutcomeResponse])
def test_every_field_stands_on_the_page(kind: type[msgspec.Struct]) -> None:
    assert [name for name in kind.__struct_fields__ if f"`{name}`" not in PAGE] == []


def test_every_status_stands_on_the_page() -> None:
    said = {
        int(status)
        for row in re.findall(r"^\| ((?:\d{3}(?:, )?)+) \|", PAGE, re.MULTILINE)
        for status in row.split(", ")
    }
    for route in ROUTES:
        assert {route.status, *get_error_statuses(route)} <= said


def test_every_command_and_option_of_the_server_stands_in_the_documents() -> None:
    import typer.main

    text = PAGE + (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    group = typer.main.get_command(app)
    for name in ("serve", "audit", "keys"):
        command = group.commands[name]  # type: ignore[attr-defined]
        for word, one in getattr(command, "commands", {"": command}).items():
            assert f"stagewise {name} {word}".strip() in text
            for option in [o for parameter in one.params for o in parameter.opts if o.startswith("--")]:
                assert option == "--help" or option in text, f"{name} {word} {option}"


def test_the_compose_file_types_what_there_is() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load(COMPOSE)["services"]
    assert set(services) == {"store", "first", "second"}
    for name in ("first", "second"):
        words = shlex.split(shlex.split(services[name]["command"])[2])
        typed = words[words.index("serve") + 1 :]
        code, said = called("serve", *typed, "--help")
        assert code == 0
        assert all(word.partition("=")[0] in said for word in typed if word.startswith("--"))
        assert services[name]["stop_grace_period"] == "40s"  # GRACE for requests, and the learner's last snapshot
        assert all(port.startswith("127.0.0.1:") for port in services[name]["ports"])  # keys travel unsealed
    assert "trust" not in COMPOSE
    assert (ROOT / "examples" / "templates.toml").exists()
