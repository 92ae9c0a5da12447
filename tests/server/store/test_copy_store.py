"""A store is copied whole into one that has nothing of its own."""

from pathlib import Path

import pytest
from tests.problem.refusal import refused
from tests.server.logs import problem
from tests.server.store.append_requests import outcome

from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.server.access_keys import AccessKeys
from stagewise.server.audit.export import copy_and_verify
from stagewise.server.event_log import GLOBAL, AppendRequest, encode_canonical
from stagewise.server.store.migrate import open_store


def made(place: Path) -> list[str]:
    """Make a store with a log and keys; return the keys."""
    store = open_store(str(place))
    store.secret("draws of mail", b"s" * 32)
    version = AppendRequest("mail", "problem", "1", encode_canonical({"version": 1, "problem": problem().to_dict()}))
    store.append([version])
    controls = [store.last_control("mail"), store.last_control(GLOBAL)]
    made_by = {"action": "nothing", "problem": 1, "snapshot": 0, "control": controls}
    store.append([AppendRequest("mail", "decision", "a", encode_canonical(made_by)), outcome("a", click=1.0)])
    keys = AccessKeys(store).create_initial_keys()
    store.close()
    return keys


def test_keys_and_secrets_move_with_the_log(tmp_path: Path) -> None:
    keys = made(tmp_path / "a.db")
    assert copy_and_verify(str(tmp_path / "a.db"), str(tmp_path / "b.db")).faults == []
    store = open_store(str(tmp_path / "b.db"))
    assert all(AccessKeys(store).holder(key) is not None for key in keys)
    assert store.secret("draws of mail", b"") == b"s" * 32
    store.close()


@pytest.mark.parametrize("what", ["key", "secret"])
def test_a_store_with_keys_or_secrets_of_its_own_is_refused_and_nothing_is_copied(tmp_path: Path, what: str) -> None:
    """A store on which a server was started once: its keys have the same names, so the clients' would be lost."""
    made(tmp_path / "a.db")
    there = open_store(str(tmp_path / "b.db"))
    if what == "key":
        AccessKeys(there).create_initial_keys()
    else:
        there.secret("draws of mail", b"t" * 32)
    there.close()
    with refused(InvalidFile, ErrorCode.FILE_EXISTS):
        copy_and_verify(str(tmp_path / "a.db"), str(tmp_path / "b.db"))
    there = open_store(str(tmp_path / "b.db"))
    assert there.logs() == [""]
    there.close()
