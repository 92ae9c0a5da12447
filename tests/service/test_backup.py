"""The ways of docs/how-to/serve.md to back up a store while a desk runs: acknowledged rows are in the copy."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.lacking import lacking
from tests.service.desks import NAME, desk_on, played, user
from tests.service.servers import server

from stagewise.service.audit.replaying import Replay
from stagewise.service.audit.verifying import verify
from stagewise.service.messages import Outcome
from stagewise.service.store.opened import open_store


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
async def test_a_store_that_is_backed_up_while_a_desk_runs(
    tmp_path: Path, backup: Callable[[Path, Path], None]
) -> None:
    async with desk_on(tmp_path) as desk:
        done, made = asyncio.Event(), list[str]()

        async def ask() -> None:
            while not done.is_set():
                id_ = f"d{len(made)}"
                await desk.decide(NAME, user(id_))
                await desk.learn(NAME, Outcome(id_, {"click": True}))
                made.append(id_)

        asking = asyncio.create_task(ask())
        copies = []
        for n in range(3):
            while len(made) < 20 * (n + 1):
                await asyncio.sleep(0.01)
            before, copy = list(made), tmp_path / f"copy{n}.db"
            await asyncio.to_thread(backup, tmp_path / "desk.db", copy)
            copies.append((before, copy))
        done.set()
        await asking
    for before, copy in copies:
        store = open_store(str(copy), read_only=True)
        assert [one.fault for one in verify(store)] == [None, None]
        assert {*before} <= {row.key for row in store.of_kind(NAME, "decision")}
        assert Replay(store, NAME).run().first is None
        store.close()
    async with desk_on(str(copies[-1][1])) as desk:
        assert (await desk.decide(NAME, user("d0"))).decision_id == "d0"
        assert (await desk.decide(NAME, user("after"))).logged


@played
async def test_a_database_that_is_dumped_while_a_desk_runs(postgres: str, tmp_path: Path) -> None:
    programs = (server().programs / "initdb").resolve().parent
    dump, target = tmp_path / "desk.dump", server().fresh()
    if not (programs / "pg_dump").exists():
        lacking("there is no pg_dump", excused=True)
    async with desk_on(postgres) as desk:
        for n in range(20):
            await desk.decide(NAME, user(f"d{n}"))
        words = [programs / "pg_dump", "--format=custom", f"--file={dump}", postgres]
        dumping = asyncio.create_task(asyncio.to_thread(subprocess.run, words, check=True))
        while not dumping.done():
            await desk.decide(NAME, user())
        await dumping
    await asyncio.to_thread(subprocess.run, [programs / "pg_restore", f"--dbname={target}", dump], check=True)
    store = open_store(target, read_only=True)
    assert [one.fault for one in verify(store)] == [None, None]
    assert {f"d{n}" for n in range(20)} <= {row.key for row in store.of_kind(NAME, "decision")}
    store.close()
