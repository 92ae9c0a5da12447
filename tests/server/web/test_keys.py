"""Keys: whose they are, what they may, and when they stop."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.server_helpers import played
from tests.server.web.real import SwitchStore

from stagewise.problem.errors import ErrorCode
from stagewise.server import access_keys
from stagewise.server.access_keys import ROLES, AccessKeys, InvalidKey, KeyHolder, UnknownKey
from stagewise.server.messages import Conflict


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SwitchStore]:
    opened = SwitchStore(tmp_path / "keys.db")
    yield opened
    opened.close()


def test_the_first_keys_are_shown_once_and_are_nowhere_after(store: SwitchStore) -> None:
    keys = AccessKeys(store)
    first = keys.create_initial_keys()
    assert [keys.holder(key) for key in first] == [
        KeyHolder("admin", "admin"),
        KeyHolder("app", "writer"),
        KeyHolder("viewer", "reader"),
    ]
    assert keys.create_initial_keys() == []
    for key in first:
        secret = key.rpartition("_")[2]
        assert len(bytes.fromhex(secret)) == 32
        assert secret not in repr(store.events(""))
        assert bytes.fromhex(secret) not in [row.digest for row in AccessKeys(store).list_keys()]


def test_what_is_no_key_opens_nothing(store: SwitchStore) -> None:
    keys = AccessKeys(store)
    key = keys.create_initial_keys()[0]
    for wrong in (
        "",
        "sw_",
        "sw__",
        "sw_admin_",
        key[:-1],
        key + "0",
        key.upper(),
        key.replace("admin", "app"),
        "ü" * 9,
    ):
        assert keys.holder(wrong) is None


def test_a_role_may_what_the_lower_ones_may() -> None:
    assert [[KeyHolder("x", role).has_role(other) for other in ROLES] for role in ROLES] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


@pytest.mark.parametrize("name", ["", "a_b", "a b", "<b>", "-a", "a" * 41, "a\n"])
def test_names_are_plain(store: SwitchStore, name: str) -> None:
    keys = AccessKeys(store)
    with pytest.raises(InvalidKey) as error:
        keys.add(name, "reader")
    assert error.value.code is ErrorCode.INVALID_NAME
    with pytest.raises(InvalidKey) as error:
        keys.add("fine", "owner")
    assert error.value.code is ErrorCode.INVALID_CHOICE


def test_a_name_is_given_once(store: SwitchStore) -> None:
    keys = AccessKeys(store)
    keys.add("app", "writer")
    keys.revoke("app")
    with pytest.raises(Conflict) as error:
        keys.add("app", "writer")
    assert error.value.code is ErrorCode.DUPLICATE_NAME


def test_the_last_admin_stays_and_a_lost_one_is_replaced(store: SwitchStore) -> None:
    keys = AccessKeys(store)
    keys.create_initial_keys()
    with pytest.raises(Conflict) as error:
        keys.revoke("admin")
    assert error.value.code is ErrorCode.CONFLICT
    with pytest.raises(UnknownKey) as unknown:
        keys.revoke("nobody")
    assert unknown.value.code is ErrorCode.UNKNOWN_KEY
    store.revoke_key("admin", 1)
    again = AccessKeys(store)
    (key,) = again.create_initial_keys()
    assert again.holder(key) == KeyHolder("admin-2", "admin")


@played
async def test_what_is_revoked_in_one_process_is_refused_in_another_within_a_second(
    store: SwitchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = AccessKeys(store), AccessKeys(store)
    key = here.add("app", "writer")

    async def known(expected: KeyHolder | None) -> None:
        async with asyncio.timeout(60.0):
            while there.holder(key) != expected:
                await asyncio.sleep(0.02)

    watching = asyncio.create_task(there.watch())
    await known(KeyHolder("app", "writer"))
    store.down = True
    await asyncio.sleep(0.4)
    assert there.holder(key) is not None  # who was known stays known while the store is away
    monkeypatch.setattr(store, "keys", lambda: 1 / 0)
    await asyncio.sleep(0.4)
    assert there.holder(key) is not None  # nor does a mistake of ours end the watch
    monkeypatch.undo()
    store.down = False
    here.revoke("app")
    assert here.holder(key) is None
    await known(None)
    watching.cancel()
    assert 3 * access_keys.REFRESH_INTERVAL < 1.0
