"""A file that cannot be written for a while: nothing acknowledged is lost, and it goes on when the cause is gone."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.servers import small_disk
from tests.server.store.append_requests import decision, log_of, outcome, sound

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import AppendRequest, encode_canonical
from stagewise.server.store.base import StoreUnavailable, wall_clock
from stagewise.server.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "server.db")
    store.append([decision("before"), outcome("before", click=1.0)])
    yield store
    store.close()
    again = SqliteStore(tmp_path / "server.db")
    sound(again)
    again.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    with small_disk(tmp_path / "disk", "4m") as place:
        yield place


def large(key: str) -> AppendRequest:
    return AppendRequest("mail", "decision", key, encode_canonical({"filling": "x" * 50_000}))


def until_down(store: SqliteStore, message: str) -> list[str]:
    """Append until the store is down; return what it acknowledged."""
    taken: list[str] = []
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE, message):
        for n in range(1000):
            assert store.append([large(f"d{n}")])[0].status == "new"
            taken.append(f"d{n}")
    return taken


def goes_on(store: SqliteStore, taken: list[str]) -> None:
    """Hold the store to having exactly what it acknowledged, and to taking the rest now."""
    assert [row.key for row in store.events_of_kind("mail", "decision")] == ["before", *taken]
    keys = [*taken, f"d{len(taken)}"]
    assert [each.status for each in store.append([large(key) for key in keys])] == ["duplicate"] * len(taken) + ["new"]
    sound(store)


def test_a_full_disk(disk: Path) -> None:
    store = SqliteStore(disk / "server.db")
    store.append([decision("before")])
    (disk / "filling").write_bytes(bytes(1_500_000))
    taken = until_down(store, "full")
    assert taken
    for _ in range(3):
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            store.append([large("more"), large("and more")])
    assert len(log_of(store, "mail")) == len(taken) + 1, "reading goes on"
    (disk / "filling").unlink()
    goes_on(store, taken)
    store.close()


def test_a_disk_for_reading_only(disk: Path) -> None:
    store = SqliteStore(disk / "server.db")
    store.append([decision("a")])
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        SqliteStore(disk / "server.db")
    reader = SqliteStore(disk / "server.db", read_only=True)
    assert sound(reader) == 1
    reader.close()
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    SqliteStore(disk / "server.db").close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything; the read-only disk is tested instead")
def test_a_file_for_reading_only(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "server.db")
    store.append([decision("a")])
    store.close()
    (tmp_path / "server.db").chmod(0o444)
    with refused(StoreUnavailable, "server.db", "Permission denied"):
        SqliteStore(tmp_path / "server.db")
    reader = SqliteStore(tmp_path / "server.db", read_only=True)
    assert sound(reader) == 1
    reader.close()


def test_a_connection_that_may_not_write(store: SqliteStore) -> None:
    """Whatever makes SQLite say that it is read-only, it is said, and the next connection is a new one."""
    assert store._writer is not None
    store._writer.execute("PRAGMA query_only = on")
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        store.append([decision("a")])
    assert store.append([decision("a")])[0].status == "new"


def test_a_file_that_somebody_else_locks(store: SqliteStore) -> None:
    store.timeout = 0.05
    store._writer = None
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        store.append([decision("a")])
    assert store.find("mail", "decision", "before") is not None, "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    assert store.append([decision("a")])[0].status == "new"


def test_a_file_that_goes_away_and_comes_back(store: SqliteStore, tmp_path: Path) -> None:
    away = tmp_path / "away"
    store.path.rename(away)
    for _ in range(2):
        with refused(StoreUnavailable, ErrorCode.FILE_CHANGED):
            store.append([decision("a")])
    away.rename(store.path)
    assert store.append([decision("a")])[0].status == "new"


def test_a_file_that_is_replaced(tmp_path: Path) -> None:
    """Rows would go into a file that no name leads to."""
    store = SqliteStore(tmp_path / "server.db")
    store.append([decision("a")])
    shutil.copy(tmp_path / "server.db", tmp_path / "copy")
    os.replace(tmp_path / "copy", tmp_path / "server.db")
    with refused(StoreUnavailable, ErrorCode.FILE_CHANGED):
        store.append([decision("b")])
    store.close()


def test_two_servers_on_one_file(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(store.path)
    for path in (store.path, tmp_path / "link.db"):
        with refused(StoreUnavailable, ErrorCode.STORE_LOCKED):
            SqliteStore(path)
    assert store.append([decision("a")])[0].status == "new"
    assert store.try_lead()


OPEN = """
import sys
from pathlib import Path
from stagewise.server.store.sqlite import SqliteStore
try:
    SqliteStore(Path(sys.argv[1]))
except ValueError as error:
    print(error)
"""


def opened_elsewhere(path: Path) -> str:
    """Return what another process says that opens a store to write it; empty: it could."""
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    told = [sys.executable, "-c", OPEN, str(path)]
    return subprocess.run(
        told, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, check=True
    ).stdout


def test_two_servers_on_one_file_by_a_hard_link(store: SqliteStore, tmp_path: Path) -> None:
    """Each would have a journal of its own, and neither would find what the other acknowledged."""
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "server.db"
    os.link(store.path, other)
    assert "another server has" in opened_elsewhere(other)
    with refused(StoreUnavailable, ErrorCode.STORE_LOCKED):
        SqliteStore(other)
    assert store.append([decision("a")])[0].status == "new"
    assert "another server has" in opened_elsewhere(other), "a refusal lets go of nothing"
    store.close()
    os.remove(other)
    assert opened_elsewhere(store.path) == ""


KILLED = """
import os, signal, sys
from pathlib import Path
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.sqlite import SqliteStore
from tests.server.store.append_requests import decision
store = SqliteStore(Path(sys.argv[1]))
assert store.append([decision(f"before{n}") for n in range(20)])[-1].status == "new"
Path(sys.argv[1] + "-wal").unlink()
for ask in (lambda: store.append([decision("after")]), store.test_write):
    try:
        ask()
    except StoreUnavailable as error:
        print(error.code)
assert len(store.events("mail")) == 20
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_journal_that_is_removed_takes_nothing_acknowledged_with_it(tmp_path: Path) -> None:
    """`rm server.db-wal` under a running server, which writes nothing more then, and `kill -9` after that."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    told = [sys.executable, "-c", KILLED, str(tmp_path / "server.db")]
    done = subprocess.run(told, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.stdout in ("file_changed\n" * 2, ""), done.stderr
    store = SqliteStore(tmp_path / "server.db")
    assert [row.key for row in store.events_of_kind("mail", "decision")] == [f"before{n}" for n in range(20)]
    assert store.append([decision("after")])[0].status == "new"
    sound(store)
    store.close()


def test_a_journal_that_is_removed_during_a_commit(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there when the transaction begins and gone when it ends: the row is in the file, and not acknowledged."""
    journal = store.path.with_name(store.path.name + "-wal")

    def remove() -> int:
        journal.unlink()
        return wall_clock()

    with monkeypatch.context() as patch, refused(StoreUnavailable, ErrorCode.FILE_CHANGED):
        patch.setattr(store, "clock", remove)
        store.append([decision("a")])
    store.close()
    store.__init__(store.path)  # type: ignore[misc]
    assert store.append([decision("a"), decision("b")])[0].status == "duplicate"


def test_a_journal_that_is_replaced_is_not_read(store: SqliteStore, tmp_path: Path) -> None:
    """Nothing goes on beside a journal of somebody else; what was acknowledged is in the file."""
    journal = store.path.with_name(store.path.name + "-wal")
    (tmp_path / "foreign").write_bytes(journal.read_bytes())
    store.append([decision("a")])
    os.replace(tmp_path / "foreign", journal)
    for _ in range(2):
        with refused(StoreUnavailable, ErrorCode.FILE_CHANGED):
            store.append([decision("b")])
    shutil.copy(store.path, tmp_path / "alone.db")
    alone = SqliteStore(tmp_path / "alone.db", read_only=True)
    assert [row.key for row in alone.events_of_kind("mail", "decision")] == ["before", "a"]
    alone.close()
    journal.unlink()


def test_every_commit_is_flushed(store: SqliteStore) -> None:
    store.append([decision("a")])
    assert store._writer is not None
    told: Callable[[str], int] = lambda name: store._writer.execute(f"PRAGMA {name}").fetchone()[0]  # noqa: E731
    assert told("synchronous") == 2
    assert told("journal_mode") == "wal"


def test_a_mistake_within_a_batch_changes_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is none of the file's: it is raised as it is, and the next batch begins anew."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "clock", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            store.append([decision("a")])
    assert store.append([decision("a")])[0].status == "new"
