"""Keys: whose they are, what they may, and when they stop."""

import asyncio

import pytest
from tests.service.web.fake import FakeStore

from stagewise.service.errors import Conflict
from stagewise.service.keys import ROLES, Holder, InvalidKey, Keys, UnknownKey


def test_the_first_keys_are_shown_once_and_are_nowhere_after() -> None:
    store = FakeStore()
    keys = Keys(store)  # type: ignore[arg-type]
    first = keys.first()
    assert [keys.holder(key) for key in first] == [
        Holder("admin", "admin"),
        Holder("app", "writer"),
        Holder("viewer", "reader"),
    ]
    assert keys.first() == []
    for key in first:
        secret = key.rpartition("_")[2]
        assert len(bytes.fromhex(secret)) == 32
        assert secret not in repr(store.rows)
        assert bytes.fromhex(secret) not in [row.digest for row in store.rows.values()]


def test_what_is_no_key_opens_nothing() -> None:
    keys = Keys(FakeStore())  # type: ignore[arg-type]
    key = keys.first()[0]
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
    assert [[Holder("x", role).may(other) for other in ROLES] for role in ROLES] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


@pytest.mark.parametrize("name", ["", "a_b", "a b", "<b>", "-a", "a" * 41, "a\n"])
def test_names_are_plain(name: str) -> None:
    keys = Keys(FakeStore())  # type: ignore[arg-type]
    with pytest.raises(InvalidKey, match="letters, digits and hyphens"):
        keys.add(name, "reader")
    with pytest.raises(InvalidKey, match="is no role"):
        keys.add("fine", "owner")


def test_a_name_is_given_once() -> None:
    keys = Keys(FakeStore())  # type: ignore[arg-type]
    keys.add("app", "writer")
    keys.revoke("app")
    with pytest.raises(Conflict, match="names stay"):
        keys.add("app", "writer")


def test_the_last_admin_stays_and_a_lost_one_is_replaced() -> None:
    store = FakeStore()
    keys = Keys(store)  # type: ignore[arg-type]
    keys.first()
    with pytest.raises(Conflict, match="only admin"):
        keys.revoke("admin")
    with pytest.raises(UnknownKey):
        keys.revoke("nobody")
    store.revoke_key("admin", 1)
    again = Keys(store)  # type: ignore[arg-type]
    (key,) = again.first()
    assert again.holder(key) == Holder("admin-2", "admin")


def test_what_is_revoked_in_one_process_is_refused_in_another_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeStore()
    here, there = Keys(store), Keys(store)  # type: ignore[arg-type]
    key = here.add("app", "writer")

    async def known(expected: Holder | None) -> None:
        async with asyncio.timeout(1.0):
            while there.holder(key) != expected:
                await asyncio.sleep(0.02)

    async def play() -> None:
        watching = asyncio.create_task(there.watch())
        await known(Holder("app", "writer"))
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

    asyncio.run(play())
