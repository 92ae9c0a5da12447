"""The backups of docs/how-to/back-up-and-erase.md while a server runs: acknowledged rows are in the copy."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.lacking import lacking
from tests.server.server_helpers import NAME, played, serve_problem, user
from tests.server.servers import server

from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import verify_store
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.store.migrate import open_store


def by_python(store: Path, copy: Path) -> None:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as source, closing(sqlite3.connect(copy)) as to:
        source.backup(to)


def by_vacuum(store: Path, copy: Path) -> None:
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", (str(copy),))


def by_shell(store: Path, copy: Path) -> None:
    if shutil.which("sqlite3") is None:
        lacking("there is no sqlite3 command; the same call is tested from Python", excused=True)
    subprocess.run(["sqlite3", store, f".backup '{copy}'"], check=True)


@pytest.mark.parametrize("backup", [by_python, by_vacuum, by_shell])
@played
async def test_a_store_that_is_backed_up_while_a_server_runs(
    tmp_path: Path, backup: Callable[[Path, Path], None]
) -> None:
    async with serve_problem(tmp_path) as decision_server:
        done, made = asyncio.Event(), list[str]()

        async def ask() -> None:
            while not done.is_set():
                id_ = f"d{len(made)}"
                await decision_server.decide(NAME, user(id_))
                await decision_server.learn(NAME, OutcomeUpdate(id_, {"click": True}))
                made.append(id_)

        asking = asyncio.create_task(ask())
        copies = []
        for n in range(3):
            while len(made) < 20 * (n + 1):
                await asyncio.sleep(0.01)
            before, copy = list(made), tmp_path / f"copy{n}.db"
            await asyncio.to_thread(backup, tmp_path / "server.db", copy)
            copies.append((before, copy))
        done.set()
        await asking
    for before, copy in copies:
        store = open_store(str(copy), read_only=True)
        assert verify_store(store).faults == []
        assert {*before} <= {row.key for row in store.events_of_kind(NAME, "decision")}
        assert Replay(store, NAME).run().first_difference is None
        store.close()
    async with serve_problem(str(copies[-1][1])) as decision_server:
        assert (await decision_server.decide(NAME, user("d0"))).decision_id == "d0"
        assert (await decision_server.decide(NAME, user("after"))).logged


@played
async def test_a_database_that_is_dumped_while_a_server_runs(postgres: str, tmp_path: Path) -> None:
    programs = (server().programs / "initdb").resolve().parent
    dump, target = tmp_path / "decision_server.dump", server().fresh()
    if not (programs / "pg_dump").exists():
        lacking("there is no pg_dump", excused=True)
    async with serve_problem(postgres) as decision_server:
        for n in range(20):
            await decision_server.decide(NAME, user(f"d{n}"))
        words = [programs / "pg_dump", "--format=custom", f"--file={dump}", postgres]
        dumping = asyncio.create_task(asyncio.to_thread(subprocess.run, words, check=True))
        while not dumping.done():
            await decision_server.decide(NAME, user())
        await dumping
    await asyncio.to_thread(subprocess.run, [programs / "pg_restore", f"--dbname={target}", dump], check=True)
    store = open_store(target, read_only=True)
    assert verify_store(store).faults == []
    assert {f"d{n}" for n in range(20)} <= {row.key for row in store.events_of_kind(NAME, "decision")}
    store.close()
