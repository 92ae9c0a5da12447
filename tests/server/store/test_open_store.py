"""Which store an address means."""

import os
import stat
from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.store.append_requests import decision, sealed, sound

from stagewise import InvalidFile
from stagewise.problem.errors import ErrorCode
from stagewise.server.store.base import StoreUnavailable
from stagewise.server.store.migrate import open_store
from stagewise.server.store.sqlite import SqliteStore


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}"])
def test_a_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a server é.db"
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
    store = open_store(str(tmp_path / "server.db"))
    store.append([decision("a")])
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert found == dict.fromkeys(["server.db", "server.db-wal", "server.db-shm"], 0o600)


def test_a_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///server.db").close()
    open_store("sub.db").close()
    assert {path.name for path in tmp_path.glob("*.db")} == {"server.db", "sub.db"}


def test_a_server(postgres: str) -> None:
    store = open_store(postgres)
    store.append([decision("a")])
    sealed(store)
    reader = open_store(postgres.replace("postgresql:", "postgres:"), read_only=True)
    assert sound(reader) == 1
    reader.close()
    store.close()


@pytest.mark.parametrize("address", ["mysql://here/server", "http://x", ""])
def test_other_addresses(address: str) -> None:
    with refused(InvalidFile):
        open_store(address)


def test_what_cannot_be_reached(tmp_path: Path) -> None:
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        open_store(str(tmp_path / "nowhere" / "server.db"))
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE, tmp_path.name):
        open_store(str(tmp_path))
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        open_store("postgresql://anna:hunter2@127.0.0.1:1/server")
    with pytest.raises(StoreUnavailable) as caught:
        open_store("postgresql://anna:hunter2@127.0.0.1:1/server")
    assert "hunter2" not in str(caught.value)
    with refused(StoreUnavailable, ErrorCode.INVALID_ADDRESS):
        open_store("postgresql://anna@127.0.0.1/server?nonsense=1")
