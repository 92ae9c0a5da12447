"""A standby that lags takes over: a new term, and what was learned of lost rows counts no more."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from tests.server.server_helpers import NAME, learned, played, serve_problem, soon, user
from tests.server.servers import SETTINGS, Server
from tests.server.store.append_requests import sealed

from stagewise.server.audit.verify import verify_store
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.seals import TERM_BITS
from stagewise.server.store.base import StoreUnavailable

pytest.importorskip("psycopg")


@pytest.fixture
def primary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose folder can be copied as a standby that has not got the last rows."""
    monkeypatch.setitem(SETTINGS, "full_page_writes", "on")
    server = Server()
    yield server
    server.remove()


@played
async def test_a_standby_that_lacks_acknowledged_rows(primary: Server) -> None:
    """The standby has the log up to some commit; the primary is lost with what came after it, and was answered."""
    address = primary.fresh()
    async with serve_problem(address, alone=False) as server:
        for i in range(5):
            await server.decide(NAME, user(f"kept-{i}"))
        await learned(server)
        primary.stop()  # the standby was cut off here
        subprocess.run(["cp", "-a", primary.folder / "data", primary.folder / "standby"], check=True)  # with its owner
        primary.start()
        lost = []
        while len(lost) < 5:
            made = await server.decide(NAME, user(f"lost-{len(lost)}"))
            lost += [made] if made.logged else []
        await soon(lambda: server.learner.down is None)
        await learned(server)
        before = server.experiment(NAME).snapshot
        primary.stop("immediate")
        shutil.rmtree(primary.folder / "data")
        shutil.move(primary.folder / "standby", primary.folder / "data")
        (primary.folder / "data" / "standby.signal").touch()
        primary.start()
        primary._run("pg_ctl", "-D", "data", "-w", "promote")
        made = None
        for n in range(500):
            try:
                made = await server.decide(NAME, user(f"after-{n}"))
            except StoreUnavailable:
                continue
            if made.logged:
                break
        assert made is not None
        assert int(str(made.receipt).split(":")[0]) >> TERM_BITS == 1, "the numbers of a new term"
        await soon(lambda: server.store.losses == 1 and server.learner.down is None and not server.learner.failures)
        await learned(server, 30.0)
        assert server.experiment(NAME).snapshot < before
        assert all(server.store.find(NAME, "decision", one.decision_id) is None for one in lost)
        for i in range(5):
            await server.learn(NAME, OutcomeUpdate(f"kept-{i}", {"click": 1}))
        await learned(server, 30.0)
        assert verify_store(sealed(server.store)).faults == []
