"""Which store an address means."""

import os
import stat
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.service.store.asks import decision, sound

from stagewise import InvalidFile
from stagewise.service.store.opened import open_store
from stagewise.service.store.sqlite import SqliteStore
from stagewise.service.store.store import StoreDown


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}"])
def test_a_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a desk é.db"
    store = open_store(form.format(path=path))
    assert isinstance(store, SqliteStore)
    store.append([decision("a")])
    reader = open_store(form.format(path=path), read_only=True)
    assert sound(reader) == 1
    reader.close()
    store.close()
    assert path.exists()


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions")
def test_what_draws_and_sessions_are_made_with_is_for_the_owner_alone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "desk.db"))
    store.append([decision("a")])
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.suffix != ".lock"}
    store.close()
    assert found == dict.fromkeys(["desk.db", "desk.db-wal", "desk.db-shm"], 0o600)


def test_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///desk.db").close()
    open_store("sub.db").close()
    assert {path.name for path in tmp_path.glob("*.db")} == {"desk.db", "sub.db"}


def test_a_server(postgres: str) -> None:
    store = open_store(postgres)
    store.append([decision("a")])
    reader = open_store(postgres.replace("postgresql:", "postgres:"), read_only=True)
    assert sound(reader) == 1
    reader.close()
    store.close()


@pytest.mark.parametrize("address", ["mysql://here/desk", "http://x", ""])
def test_other_addresses(address: str) -> None:
    with refused(InvalidFile, "the store"):
        open_store(address)


def test_what_cannot_be_reached(tmp_path: Path) -> None:
    with refused(StoreDown, "desk.db"):
        open_store(str(tmp_path / "nowhere" / "desk.db"))
    with refused(StoreDown, tmp_path.name):
        open_store(str(tmp_path))
    with refused(StoreDown, "127.0.0.1", "'desk'"):
        open_store("postgresql://anna:hunter2@127.0.0.1:1/desk")
    with pytest.raises(StoreDown) as caught:
        open_store("postgresql://anna:hunter2@127.0.0.1:1/desk")
    assert "hunter2" not in str(caught.value)
    with refused(StoreDown, "address"):
        open_store("postgresql://anna@127.0.0.1/desk?nonsense=1")
