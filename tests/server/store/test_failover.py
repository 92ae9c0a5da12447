"""A streaming standby takes over: a new term, and what was learned of lost rows counts no more."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.server.server_helpers import NAME, check_fold, learned, played, serve_problem, soon, user
from tests.server.servers import Server
from tests.server.store.append_requests import sealed
from tests.server.store.proxy import Proxy

from stagewise.server.audit.replay import Replay
from stagewise.server.audit.verify import verify_store
from stagewise.server.decision_server import DecisionServer
from stagewise.server.event_log import TERM_BITS
from stagewise.server.messages import DecisionResponse, OutcomeUpdate
from stagewise.server.store.base import StoreUnavailable

psycopg = pytest.importorskip("psycopg")
from stagewise.server.store.postgres import PostgresStore  # noqa: E402

pytestmark = pytest.mark.long


@pytest.fixture
def primary() -> Iterator[Server]:
    server = Server()
    yield server
    server.remove()


def stream(primary: Server) -> tuple[Server, Proxy]:
    """Return a standby of a server, and the link between them."""
    link = Proxy(primary.url("postgres"))
    return Server(link.address), link


def either(primary: Server, standby: Server, database: str) -> str:
    """Return the address of whichever of two takes writes."""
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"postgresql://server@{hosts}/{database}?target_session_attrs=read-write"


async def decide_some(server: DecisionServer, names: list[str]) -> list[DecisionResponse]:
    """Decide until each is in the log."""
    made = []
    for name in names:
        for _ in range(500):
            try:
                answer = await server.decide(NAME, user(name))
            except StoreUnavailable:
                continue
            if answer.logged:
                made.append(answer)
                break
            await asyncio.sleep(0.02)
    assert len(made) == len(names)
    return made


@played
async def test_a_standby_that_lacks_acknowledged_rows(primary: Server) -> None:
    """Its link is cut before the last rows; the primary is lost with them. The server that follows forgets them too."""
    database = primary.fresh().rpartition("/")[2]
    standby, link = stream(primary)
    address = either(primary, standby, database)
    async with serve_problem(address, alone=False) as leader, serve_problem(address, alone=False) as follower:
        servers = (leader, follower)
        await decide_some(leader, [f"kept-{i}" for i in range(5)])
        await learned(leader)
        with (
            psycopg.connect(primary.url(database), autocommit=True) as connection,
            closing(psycopg.connect(standby.url(database), autocommit=True)) as other,
        ):
            (written,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or ("",)
            reached = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            await soon(lambda: other.execute(reached, (written,)).fetchone() == (True,))
        link.close()
        lost = await decide_some(leader, [f"lost-{i}" for i in range(5)])
        await learned(leader)
        await soon(lambda: follower.experiment(NAME).snapshot == leader.experiment(NAME).snapshot)
        before = leader.experiment(NAME).snapshot
        primary.stop("immediate")
        standby.promote()
        for server, name in ((leader, "l"), (follower, "f")):
            (made,) = await decide_some(server, [f"after-{name}"])
            assert int(str(made.receipt).split(":")[0]) >> TERM_BITS == 1, "the numbers of a new term"
        await soon(lambda: all(server.store.losses == 1 and server.learner.down is None for server in servers))
        await soon(lambda: all(0 < server.experiment(NAME).snapshot < before for server in servers))
        assert all(leader.store.find(NAME, "decision", one.decision_id) is None for one in lost)
        for i in range(5):
            await leader.learn(NAME, OutcomeUpdate(f"kept-{i}", {"click": 1}))
        await decide_some(follower, ["lost-0"])  # its id is free again
    with closing(PostgresStore(standby.url(database))) as store:
        assert verify_store(sealed(store)).faults == []
        assert Replay(store, NAME).run().first_difference is None
        check_fold(store)
    standby.remove()


@played
async def test_a_synchronous_standby_has_all_acknowledged_rows(primary: Server) -> None:
    """A new term begins, and nothing is forgotten."""
    database = primary.fresh().rpartition("/")[2]
    standby, _ = stream(primary)
    with psycopg.connect(primary.url("postgres"), autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
    async with serve_problem(either(primary, standby, database), alone=False) as server:
        made = await decide_some(server, [f"kept-{i}" for i in range(20)])
        primary.stop("immediate")
        standby.promote()
        (after,) = await decide_some(server, ["after"])
        assert int(str(after.receipt).split(":")[0]) >> TERM_BITS == 1
        await learned(server, 30.0)
        assert server.store.losses == 0
        assert all(server.store.find(NAME, "decision", one.decision_id).receipt == one.receipt for one in made)
    standby.remove()
