"""Keys are rotated while servers run: no request fails, and an old key is worth nothing afterwards."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import called
from tests.server.server_helpers import NAME, learned, played, serve_problem, user

from stagewise.server.access_keys import AccessKeys
from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import verify_store
from stagewise.server.event_log import AppendRequest, WriterChain, encode_canonical
from stagewise.server.store.migrate import open_store


@played
async def test_the_secret_of_writers_is_rotated_while_two_servers_run(postgres: str) -> None:
    async with serve_problem(postgres, alone=False) as one, serve_problem(postgres, alone=False) as two:
        done, made = asyncio.Event(), list[Any]()

        async def ask(who: int) -> None:
            while not done.is_set():
                made.append(await (one, two)[who % 2].decide(NAME, user(f"{who}-{len(made)}")))

        asking = [asyncio.create_task(ask(who)) for who in range(4)]
        while len(made) < 40:
            await asyncio.sleep(0.01)
        old = one.store.read_writers_secrets()[0][1]
        status, told = await asyncio.to_thread(called, "keys", "rotate", postgres)
        assert status == 0, told
        before = len(made)
        while len(made) < before + 60:
            await asyncio.sleep(0.01)
        done.set()
        await asyncio.gather(*asking)
        assert all(decision.logged for decision in made)
        await learned(one)
    check_rotated(postgres, old)


def test_the_secret_of_writers_is_rotated_in_a_file(tmp_path: Path) -> None:
    address = str(tmp_path / "server.db")

    @played
    async def play(name: str) -> None:
        async with serve_problem(address) as server:
            for i in range(10):
                await server.decide(NAME, user(f"{name}-{i}"))

    play("before")
    with closing(open_store(address)) as store:
        old = store.read_writers_secrets()[0][1]
    assert called("keys", "rotate", address)[0] == 0
    play("after")
    check_rotated(address, old)


def check_rotated(address: str, old: bytes) -> None:
    """The log verifies; a row that somebody with the old secret appends does not."""
    with closing(open_store(address)) as store:
        assert len(store.read_writers_secrets()) == 2
        assert verify_store(store).faults == []
        assert Replay(store, NAME).run().first_difference is None
        forged: Any = store
        forged._renew_chain = lambda chain, control: WriterChain.begin(old)
        store.append([AppendRequest(NAME, "tick", "", encode_canonical({}))])
        while store.seal():
            pass
        assert [fault.code for fault in verify_store(store).faults] == [FindingCode.ROW_CHANGED]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_client_gets_a_new_key_before_the_old_one_is_revoked(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = str(tmp_path / "server.db") if kind == "sqlite" else request.getfixturevalue("postgres")
    with closing(open_store(address)) as store:
        servers = [AccessKeys(store), AccessKeys(store)]
        old = servers[0].add("app-1", "writer").encode()
        new = servers[0].add("app-2", "writer").encode()
        servers[1].refresh()
        assert [one.authenticate(key) is not None for one in servers for key in (old, new)] == [True] * 4
        servers[1].revoke("app-1")
        servers[0].refresh()
        assert [one.authenticate(key) is not None for one in servers for key in (old, new)] == [False, True] * 2
