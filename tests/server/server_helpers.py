"""Servers in the process of the tests, and what tests wait for."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.server.logs import problem

import stagewise as sw
from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import DecisionRequest
from stagewise.server.snapshots import SnapshotSigner
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store
from stagewise.server.store.migrate import open_store

NAME = "mail"


@asynccontextmanager
async def serve_problem(
    address: Path | str, served: sw.Problem | None = None, mode: str = "live", **settings: Any
) -> AsyncIterator[DecisionServer]:
    """Yield a server that serves one experiment; stop it at the end."""
    url = str(address / "server.db") if isinstance(address, Path) else address
    server = DecisionServer(open_store(url), **settings)
    await server.start()
    try:
        await server.open(NAME, problem() if served is None else served, "ada", "a test", mode)
        yield server
    finally:
        await server.stop()


def played(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that awaits."""

    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    run.__wrapped__ = test  # type: ignore[attr-defined]  # pytest reads the fixtures from it
    return run


def user(id_: str | None = None, **changes: Any) -> DecisionRequest:
    """Return a request for a user."""
    only, dry = changes.pop("only", None), changes.pop("dry_run", False)
    return DecisionRequest({"age": 40.0, "tenure": 0.25, "country": "NZ", **changes}, only, id_, dry)


async def soon(what: Callable[[], Any]) -> None:
    """Wait until something is true."""
    for _ in range(6000):
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


async def learned(server: DecisionServer, seconds: float = 60.0) -> None:
    """Wait until everything in the log is learned."""
    for _ in range(int(seconds * 100)):
        if all(server.experiment(name).snapshot == server.store.head(name).seq for name in server.experiments()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"the learner is behind: {server.learner.failed}")


def drop_snapshots(store: Store) -> None:
    """Delete every snapshot: the log alone must be enough."""
    store._change(("DELETE FROM snapshots", ()))


def check_fold(store: Store) -> None:
    """A learner that goes on from the last snapshot ends where one that reads the whole log does, to the bit."""
    events, stored = store.events(NAME, limit=10**7), store.get_latest_snapshot(NAME, 1, with_learner_state=True)
    assert stored is not None
    full, restored = StateFold(problem(), 1), StateFold(problem(), 1)
    full.take(events)
    restored.restore(SnapshotSigner(store).open(stored, "learner_state"))
    restored.take(events[restored.seq :])
    assert restored.encode() == full.encode()
