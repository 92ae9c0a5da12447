"""Desks for tests, in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.service.logs import problem

import stagewise as sw
from stagewise.service.desk import Desk
from stagewise.service.fold import Fold
from stagewise.service.messages import Asked
from stagewise.service.snapshots import Seals
from stagewise.service.store.opened import open_store
from stagewise.service.store.store import Store

NAME = "mail"


@asynccontextmanager
async def desk_on(
    place: Path | str, told: sw.Problem | None = None, mode: str = "live", **settings: Any
) -> AsyncIterator[Desk]:
    """Yield a desk that serves one experiment, and stop it."""
    url = str(place / "desk.db") if isinstance(place, Path) else place
    desk = Desk(open_store(url), **settings)
    await desk.start()
    try:
        await desk.open(NAME, problem() if told is None else told, "ada", "a test", mode)
        yield desk
    finally:
        await desk.stop()


def played(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that awaits."""

    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    run.__wrapped__ = test  # type: ignore[attr-defined]  # pytest reads the fixtures from it
    return run


def user(id_: str | None = None, **changes: Any) -> Asked:
    """Return what is asked for a user."""
    only, dry = changes.pop("only", None), changes.pop("dry_run", False)
    return Asked({"age": 40.0, "tenure": 0.25, "country": "NZ", **changes}, only, id_, dry)


async def soon(what: Callable[[], Any]) -> None:
    """Wait until something is true."""
    for _ in range(1000):
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


async def learned(desk: Desk, seconds: float = 10.0) -> None:
    """Wait until everything in the log is learned."""
    for _ in range(int(seconds * 100)):
        if all(desk.experiment(name).state == desk.store.head(name).seq for name in desk.experiments()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"the learner is behind: {desk.learner.failed}")


def drop_snapshots(store: Store) -> None:
    """Delete every snapshot: the log alone must be enough."""
    store._change(("DELETE FROM snapshots", ()))


def check_fold(store: Store) -> None:
    """A learner that goes on from the last snapshot ends where one that reads the whole log does, to the bit."""
    events, kept = store.events(NAME, limit=10**7), store.latest(NAME, 1, whole=True)
    assert kept is not None
    whole, again = Fold(problem(), 1), Fold(problem(), 1)
    whole.take(events)
    again.restore(Seals(store).open(kept, "whole"))
    again.take(events[again.seq :])
    assert again.whole() == whole.whole()
