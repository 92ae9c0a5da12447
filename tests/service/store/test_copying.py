"""A store is copied whole into one that has nothing of its own."""

from pathlib import Path

import pytest
from tests.service.logs import problem
from tests.service.store.asks import outcome

from stagewise.problem.errors import InvalidFile
from stagewise.service.audit.copying import copied
from stagewise.service.keys import Keys
from stagewise.service.records import Ask, canonical
from stagewise.service.store.opened import open_store


def made(place: Path) -> list[str]:
    """Make a store with a log and keys; return the keys."""
    store = open_store(str(place))
    store.secret("draws of mail", b"s" * 32)
    version = Ask("mail", "problem", "1", canonical({"version": 1, "problem": problem().plain()}))
    made_by = {"action": "nothing", "problem": 1, "state": 0, "control": [1, 1]}
    store.append([version, Ask("mail", "decision", "a", canonical(made_by)), outcome("a", click=1.0)])
    keys = Keys(store).first()
    store.close()
    return keys


def test_keys_and_secrets_move_with_the_log(tmp_path: Path) -> None:
    keys = made(tmp_path / "a.db")
    assert {one.fault for one in copied(str(tmp_path / "a.db"), str(tmp_path / "b.db"))} == {None}
    store = open_store(str(tmp_path / "b.db"))
    assert all(Keys(store).holder(key) is not None for key in keys)
    assert store.secret("draws of mail", b"") == b"s" * 32
    store.close()


@pytest.mark.parametrize("what", ["key", "secret"])
def test_a_store_with_keys_or_secrets_of_its_own_is_refused_and_nothing_is_copied(tmp_path: Path, what: str) -> None:
    """As one on which a desk was started once: its keys have the same names, and those of the clients would be lost."""
    made(tmp_path / "a.db")
    there = open_store(str(tmp_path / "b.db"))
    if what == "key":
        Keys(there).first()
    else:
        there.secret("draws of mail", b"t" * 32)
    there.close()
    with pytest.raises(InvalidFile, match="has keys or controls already; take an empty one"):
        copied(str(tmp_path / "a.db"), str(tmp_path / "b.db"))
    there = open_store(str(tmp_path / "b.db"))
    assert there.logs() == [""]
    there.close()
