"""The server from the command line: it starts, serves, stops, and whatever is wrong is said in one line."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.cli.commands import called
from tests.server.audited import lived
from tests.server.server_helpers import NAME

import stagewise as sw
from stagewise.cli.server_startup import deliver_keys
from stagewise.server.client import Client
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import AppendRequest
from stagewise.server.experiments import encode_problem_row
from stagewise.server.store.migrate import open_store

ROOT = Path(__file__).parents[2]
PROBLEM = """
action_names = ["nothing", "digest", "offer"]
safe_name = "nothing"
context = { age = [18, 99] }
[reward]
name = "click"
[limits.opt_out]
at_most = 0.02
safe_bound = 0.001
window = "1h"
model = "rates"
"""


@contextmanager
def served(folder: Path, *words: str, source: Path | None = None) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Serve in another process, by the code of another folder if one is given; stop it as Ctrl+C does."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", **({} if source is None else {"PYTHONPATH": str(source)})}
    said = folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "stagewise.cli.main", "serve", *words, "--port", "0", "--quiet"],
            cwd=folder, stdout=out, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
    try:
        end = time.monotonic() + 60.0
        while not (found := re.search(r"(http://[\d.]+:\d+)", said.read_text())):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end
            time.sleep(0.02)
        yield found[1], process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, said.read_text()


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "messages.toml"
    path.write_text(PROBLEM)
    return path


def test_a_server_from_its_first_start_to_its_audit(tmp_path: Path, problem: Path) -> None:
    with served(tmp_path, str(problem), "--keys", "keys.txt", "--mode", "canary", "--share", "0.5") as (address, _):
        admin, writer, reader = (tmp_path / "keys.txt").read_text().split()
        assert [key.split("_")[1] for key in (admin, writer, reader)] == ["admin", "app", "viewer"]
        assert oct((tmp_path / "keys.txt").stat().st_mode & 0o777) == "0o600"
        with Client(address, writer, "messages", safe="nothing", timeout=30.0) as client:
            decisions = [client.decide({"age": 40.0}, decision_id=f"d-{i}") for i in range(20)]
            assert all(decision.logged and decision.mode == "canary" for decision in decisions)
            assert client.learn("d-0", click=True).accepted == ("click",)
            assert client.cancel("d-1").accepted == ("shown",)
        code, said = called("serve", problem, "--store", tmp_path / "server.db", "--port", "0")
        assert (code, "another server has" in said) == (2, True)
        code, said = called("audit", "verify", tmp_path / "server.db")  # while it runs
        assert (code, "'messages'" in said) == (0, True)
    with served(tmp_path, str(problem), "--keys", "none.txt") as (address, _):
        assert not (tmp_path / "none.txt").exists()  # keys are made once
        with Client(address, writer, "messages", safe="nothing", timeout=30.0) as client:
            again = client.decide({"age": 40.0}, decision_id="d-3")
            assert again == decisions[3]
            assert client.decide({"age": 40.0}).mode == "canary"  # as it was last
    store = tmp_path / "server.db"
    code, said = called("audit", "replay", store, "messages")
    assert (code, "21 of 21 decisions of 'messages'" in said) == (0, True), said
    code, said = called("audit", "explain", store, "messages", "d-1")
    assert (code, "it was not shown" in said) == (0, True)
    assert called("audit", "export", store, "messages", tmp_path / "log.parquet")[0] == 0
    assert (tmp_path / "log.parquet").read_bytes()[:4] == b"PAR1"


def test_how_old_what_was_learned_may_be(tmp_path: Path, problem: Path) -> None:
    with served(tmp_path, str(problem), "--keys", "keys.txt", "--max-age", "7.5") as (address, _):
        reader = (tmp_path / "keys.txt").read_text().split()[2]
        asked = Request(f"{address}/v1/messages/figures", headers={"Authorization": f"Bearer {reader}"})
        with urlopen(asked, timeout=30.0) as answer:
            assert json.load(answer)["max_age_s"] == 7.5


def test_several_files_are_several_experiments(tmp_path: Path, problem: Path) -> None:
    other = tmp_path / "letters.toml"
    table = re.sub(r"^\[", "[problem.", PROBLEM, flags=re.MULTILINE)
    other.write_text(f"[problem]\n{table}")
    with served(tmp_path, str(problem), str(other), "--mode", "shadow") as (address, _):
        said = (tmp_path / "said.txt").read_text()
        keys = re.findall(r"^  (sw_\S+)$", said, re.MULTILINE)
        assert len(keys) == 3
        assert re.findall(r"^(\w+): shadow, version 1, 3 actions$", said, re.MULTILINE) == ["letters", "messages"]
        with Client(address, keys[1], "letters", safe="nothing", timeout=30.0) as client:
            assert client.decide({"age": 20}).mode == "shadow"
    problem.write_text(PROBLEM.replace("0.02", "0.03").replace('"offer"', '"offer", "sale"'))
    with served(tmp_path, str(problem)):
        said = (tmp_path / "said.txt").read_text()
        assert "messages: shadow, version 2, 4 actions" in said
        assert "sw_" not in said
    with served(tmp_path):  # what the store has
        assert "messages: shadow, version 2, 4 actions" in (tmp_path / "said.txt").read_text()
    problem.write_text(PROBLEM.replace("[18, 99]", "[18, 120]"))
    refused = subprocess.run(
        [sys.executable, "-m", "stagewise.cli.main", "serve", str(problem), "--port", "0"], cwd=tmp_path,
        capture_output=True, text=True, check=False, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr
    assert "voids the guarantee" in refused.stderr


def test_simulated_users_ask_and_tell(tmp_path: Path) -> None:
    with served(tmp_path, str(ROOT / "examples" / "notifications.toml"), "--demo") as (_, process):
        store, end = open_store(str(tmp_path / "server.db"), read_only=True), time.monotonic() + 60.0
        try:
            while not store.events_of_kind("notifications", "outcome"):
                assert process.poll() is None
                assert time.monotonic() < end, "nobody told an outcome"
                time.sleep(0.1)
            keys = store.keys()
            assert "simulated users" in {row.note for row in keys}
            assert store.events_of_kind("notifications", "decision")
        finally:
            store.close()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["serve", "nowhere.toml"], ["nowhere.toml"]),
        (["serve", "p.toml", "p.toml"], ["'p'"]),
        (["serve", "p.toml", "q.toml", "--name", "x"], ["--name", "'x'"]),
        (["serve", "p.toml", "--name", ".."], ["'..'"]),
        (["serve", "p.toml", "--mode", "slow"], ["mode", "'slow'", "shadow"]),
        (["serve", "p.toml", "--mode", "canary"], ["canary", "share"]),
        (["serve", "p.toml", "--share", "0.1"], ["canary", "share"]),
        (["serve", "p.toml", "--store", "mysql://x"], ["mysql://x", "postgresql://"]),
        (["serve", "p.toml", "--host", "203.0.113.7"], ["203.0.113.7"]),
        (["serve", "bad.toml"], ["bad.toml", "TOML"]),
        (["serve", "limit.toml"], ["limit.toml: ", "did you mean 'limits'"]),
        (["serve"], ["no problem"]),
        (["serve", "p.toml", "--feedback-timeout", "0"], ["--feedback-timeout"]),
        (["serve", "p.toml", "--max-age", "0"], ["--max-age"]),
        (["serve", "policy.toml"], ["policy.toml", "[problem]"]),
        (["audit", "verify", "nowhere.db"], ["nowhere.db does not exist"]),
        (["audit", "verify", "p.toml"], ["p.toml cannot be opened"]),
        (["audit", "copy", "nowhere.db", "new.db"], ["nowhere.db does not exist"]),
        (["keys", "add", "nowhere.db", "bob"], ["nowhere.db does not exist"]),
        (["keys", "list", "nowhere.db"], ["nowhere.db does not exist"]),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    words: list[str], parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("p.toml", "q.toml"):
        Path(name).write_text(PROBLEM)
    Path("bad.toml").write_text("actions = [")
    Path("limit.toml").write_text(PROBLEM.replace("[limits.", "[limit."))
    Path("policy.toml").write_text('[policy]\nkind = "OPB"\n')
    code, said = called(*words)
    assert (code, said.count("\n"), said.startswith("stagewise: ")) == (2, 1, True), said
    if words[0] == "serve" and "--host" not in words and len(words) > 1:
        assert not Path("server.db").exists(), "nothing is written for what is refused"
    assert [part for part in parts if part not in said] == []
    assert not Path("nowhere.db").exists()
    assert not Path("new.db").exists()


def test_an_experiment_that_is_there_is_served_whatever_it_is_called(
    problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log cannot be renamed; what is new can."""
    monkeypatch.chdir(tmp_path)
    row = {"version": 1, "problem": sw.Problem.load(problem).to_dict(), "actor": "ada", "reason": "long ago"}
    store = open_store("server.db")
    store.append([AppendRequest("a/../b", "problem", "1", encode_problem_row(row))])
    store.close()
    with served(tmp_path, str(problem), "--name", "a/../b"):
        assert "a/../b: " in (tmp_path / "said.txt").read_text()
    code, said = called("serve", str(problem), "--name", "c/../d")
    assert (code, "called 'c/../d'" in said) == (2, True)


def test_a_server_with_nothing_to_serve_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for store in ("new.db", "sqlite:///other.db"):
        code, said = called("serve", "--store", store)
        assert (code, "holds no experiment" in said) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived(tmp_path_factory.mktemp("lived"))


def test_a_log_that_was_changed_leaves_with_one(made: Path, tmp_path: Path) -> None:
    import shutil
    import sqlite3

    code, said = called("audit", "verify", made)
    assert code == 0
    receipt = said.splitlines()[-2].split("; ")[-1]
    assert receipt.startswith("seal:")
    assert called("audit", "verify", made, "--receipt", receipt)[0] == 0
    code, said = called("audit", "verify", made, "--receipt", receipt[:-4] + "0000")
    assert (code, "does not contain the receipt" in said) == (1, True)
    assert called("audit", "verify", made, "--receipt", "x")[0] == 2
    changed = shutil.copy(made, tmp_path / "server.db")
    connection = sqlite3.connect(changed)
    body = "CAST(replace(body, '\"snapshot\":', '\"snapshot\":1') AS BLOB)"
    connection.execute(f"UPDATE events SET body = {body} WHERE kind = 'decision'")
    connection.commit()
    connection.close()
    code, said = called("audit", "verify", changed)
    assert (code, "(decision 'live-0') was changed" in said) == (1, True)
    code, said = called("audit", "replay", changed, NAME)
    assert (code, "is decision 'live-0'" in said) == (1, True)


def test_a_store_is_copied_with_everything(made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    code, said = called("audit", "copy", made, copy)
    assert (code, f"'{NAME}' is copied: " in said) == (0, True), said
    old, new = open_store(str(made), read_only=True), open_store(str(copy), read_only=True)
    try:
        assert new.head(NAME) == old.head(NAME)
        assert new.events(NAME) == old.events(NAME)
        assert new.keys() == old.keys()
        assert new.secret(f"draws of {NAME}", b"") == old.secret(f"draws of {NAME}", b"")
    finally:
        old.close()
        new.close()
    assert called("audit", "replay", copy, NAME)[0] == 0
    code, said = called("audit", "copy", made, copy)
    assert (code, f"'{NAME}'" in said) == (2, True)
    assert called("audit", "copy", made, made)[0] == 2


def test_a_file_is_copied_to_postgresql(made: Path, postgres: str) -> None:
    code, said = called("audit", "copy", made, postgres)
    assert (code, f"'{NAME}' is copied: " in said) == (0, True), said
    assert called("audit", "verify", postgres)[1] == called("audit", "verify", made)[1]
    told = [called("audit", "replay", store, NAME) for store in (made, postgres)]
    assert told[0] == told[1]
    assert "108 of 108 decisions" in told[0][1]
    assert [called("audit", "explain", store, NAME, "sale-3") for store in (made, postgres)][1][0] == 0
    code, said = called("audit", "copy", made, postgres)
    assert (code, f"'{NAME}'" in said) == (2, True)


def test_keys_are_shown_once_and_can_be_revoked(made: Path) -> None:
    code, key = called("keys", "add", made, "bob", "--role", "reader", "--note", "for the wall")
    assert (code, key.startswith("sw_bob_")) == (0, True)
    code, said = called("keys", "list", made)
    assert "bob" in said
    assert "for the wall" in said
    assert key.strip() not in said
    assert called("keys", "add", made, "bob")[0] == 2
    assert called("keys", "add", made, "eve", "--role", "queen")[0] == 2
    assert called("keys", "revoke", made, "bob") == (0, "the key 'bob' is revoked\n")
    assert called("keys", "revoke", made, "bob")[0] == 2
    assert "revoked" in called("keys", "list", made)[1]


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [("msgspec", ["serve", "p.toml"], "serve"), ("psycopg", ["audit", "verify", "postgresql://x"], "postgres")],
)
def test_an_extra_that_is_missing_is_named(package: str, words: list[str], extra: str, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(PROBLEM)
    code = f"import sys; sys.modules[{package!r}] = None; from stagewise.cli.main import app; app({words!r})"
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 2
    assert told.stderr.startswith(f"stagewise: the server needs {package}")
    assert told.stderr.endswith(f"pip install 'stagewise[{extra}]'\n")


@pytest.mark.parametrize("words", [[], ["serve"], ["audit"], ["keys"], ["audit", "verify"], ["keys", "add"]])
def test_help_needs_nothing_of_the_server(words: list[str]) -> None:
    code = (
        f"import sys; from stagewise.cli.main import app; app({[*words, '--help']!r}, standalone_mode=False); "
        "print([name for name in ('numpy', 'numba', 'msgspec', 'starlette', 'asyncio') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.splitlines()[-1] == "[]"
    assert "Usage: " in told


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
def test_keys_in_a_file_that_was_there_are_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("old")
    path.chmod(0o644)
    deliver_keys(["sw_admin_1"], path)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("sw_admin_1\n", 0o600)


def test_an_old_file_is_refused_in_a_sentence_and_served_where_it_is_meant(tmp_path: Path, problem: Path) -> None:
    """The limit was loosened by the file, and tightened since by somebody else: the file may not undo that."""

    async def tighten() -> None:
        server = DecisionServer(open_store(str(tmp_path / "server.db")))
        await server.start()
        for value in (0.2, 0.02):
            problem.write_text(PROBLEM.replace("at_most = 0.02", f"at_most = {value}"))
            await server.open("messages", sw.Problem.load(problem), "ada", "a test")
        await server.stop()

    asyncio.run(tighten())
    problem.write_text(PROBLEM.replace("at_most = 0.02", "at_most = 0.2"))
    code, said = called("serve", problem, "--store", tmp_path / "server.db", "--port", "0")
    assert code == 2
    assert "'opt_out' at most 0.2 where it is at most 0.02" in said
    assert "--revert" in said
    with served(tmp_path, str(problem), "--revert"):
        assert "messages: live, version 3" in (tmp_path / "said.txt").read_text()
    with served(tmp_path):
        assert "messages: live, version 3" in (tmp_path / "said.txt").read_text()


def test_workers_share_a_port(tmp_path: Path, problem: Path, postgres: str) -> None:
    """A connection may be taken by any of them; all end with the first."""
    code, said = called("serve", str(problem), "--store", str(tmp_path / "a.db"), "--workers", "2")
    assert (code, "--workers is 2" in said) == (2, True)
    with served(tmp_path, str(problem), "--store", postgres, "--workers", "2") as (address, first):
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
        if not children.exists():
            pytest.skip("this system does not tell the children of a process")
        end = time.monotonic() + 60.0
        while not children.read_text().split():
            assert time.monotonic() < end
            time.sleep(0.05)
        (child,) = children.read_text().split()
        assert all(urlopen(f"{address}/livez").status == 200 for _ in range(4))
    assert not Path(f"/proc/{child}").exists()


def test_a_server_is_told_how_long_rows_stay(tmp_path: Path, problem: Path) -> None:
    for age, word in (("soon", "--retention"), ("30m", "opt_out")):  # the window of opt_out is an hour
        code, said = called("serve", problem, "--store", tmp_path / "server.db", "--port", "0", "--retention", age)
        assert code == 2
        assert word in said
    with served(tmp_path, str(problem), "--keys", "keys.txt", "--retention", "2h") as (address, _):
        key = (tmp_path / "keys.txt").read_text().split()[0]
        asked = Request(f"{address}/metrics", headers={"authorization": f"Bearer {key}"})
        assert "\nstagewise_retention_failed 0.0\n" in urlopen(asked, timeout=30).read().decode()
