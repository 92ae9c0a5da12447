"""A store that is restored from a backup: draws are not repeated, and receipts of lost rows are recognised."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import called
from tests.lacking import lacking
from tests.server.server_helpers import NAME, learned, played, serve_problem, user
from tests.server.servers import server as postgres_server

from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import Receipt, verify_store
from stagewise.server.decide import compute_draw, derive_draws_key
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import TERM_BITS
from stagewise.server.messages import OutcomeUpdate, UnknownDecision
from stagewise.server.store.migrate import open_store


def back_up_file(address: str, folder: Path) -> str:
    copy = folder / "copy.db"
    with closing(sqlite3.connect(f"file:{address}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", (str(copy),))
    return str(copy)


def back_up_database(address: str, folder: Path) -> str:
    programs = (postgres_server().programs / "initdb").resolve().parent
    if not (programs / "pg_dump").exists():
        lacking("there is no pg_dump", excused=True)
    dump, target = folder / "server.dump", postgres_server().fresh()
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", address], check=True)
    subprocess.run([programs / "pg_restore", f"--dbname={target}", dump], check=True)
    return target


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_restored_store_begins_a_new_term(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    address = str(tmp_path / "first" / "server.db") if kind == "sqlite" else request.getfixturevalue("postgres")

    @played
    async def live() -> tuple[str, list[Any]]:
        async with serve_problem(address) as server:
            await play(server, "kept")
            copy = (back_up_file if kind == "sqlite" else back_up_database)(address, tmp_path)
            return copy, await play(server, "lost")

    async def play(server: DecisionServer, name: str) -> list[Any]:
        made = []
        for i in range(12):
            made.append(await server.decide(NAME, user(f"{name}-{i}")))
            await server.learn(NAME, OutcomeUpdate(f"{name}-{i}", {"click": i % 2, "opt_out": 0, "complaint": 0}))
        await learned(server)
        return made

    found = dict[str, Any]()

    async def both() -> None:
        found["copy"], found["lost"] = await live.__wrapped__()  # type: ignore[attr-defined]

    played(both)()
    copy, lost = found["copy"], found["lost"]
    status, told = called("store", "restored", copy, "--reason", "the disk was lost")
    assert status == 0, told

    async def go_on() -> None:
        server = DecisionServer(open_store(copy))
        await server.start()
        with pytest.raises(UnknownDecision):
            await server.learn(NAME, OutcomeUpdate("lost-3", {"opt_out": 1}))
        again = [await server.decide(NAME, user(f"lost-{i}")) for i in range(12)]
        assert all(int(made.receipt.split(":")[0]) >= 1 << TERM_BITS for made in again if made.receipt)
        assert (await server.decide(NAME, user("kept-1"))).receipt in {
            event.receipt for event in server.store.events(NAME)
        }
        key, control = server.experiment(NAME).key, server.everywhere.row
        draws = [compute_draw(derive_draws_key(key, row), "lost-1") for row in (0, control)]
        assert draws[0] != draws[1]
        await learned(server)
        await server.stop()

    played(go_on)()
    with closing(open_store(copy)) as store:
        assert verify_store(store).faults == []
        assert store.last_seal().term == 1
        for made in lost[:3]:
            faults = verify_store(store, [Receipt.of(made.receipt)]).faults
            assert [fault.code for fault in faults] == [FindingCode.RECEIPT_LOST]
        replayed = Replay(store, NAME).run()
        assert replayed.matching == replayed.decisions == 24
    shutil.rmtree(tmp_path / "first", ignore_errors=True)
