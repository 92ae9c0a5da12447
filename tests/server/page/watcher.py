"""Another process at the same store: says when it sees an experiment stopped and started.

A file has one desk, so there it only reads; on PostgreSQL it is a second desk, which decides all the time.
"""

import asyncio
import sys

from tests.server.server_helpers import user

from stagewise.server.decision_server import DecisionServer
from stagewise.server.store.migrate import open_store


async def seen(desk: DecisionServer, name: str, serves: bool) -> str | None:
    """Return why the safe action is served here, where that is by a kill switch."""
    if not serves:
        killed = desk.experiment(name).killed
        return None if killed is None else killed.message
    made = await desk.decide(name, user())
    return made.message if made.mode == "killed" else None


async def watch(place: str, name: str, changes: int) -> None:
    """Print a line for each change that is seen: what holds."""
    serves = "://" in place
    store = open_store(place, read_only=not serves)
    desk = DecisionServer(store, alone=not serves)
    await desk.start()
    print("ready", flush=True)
    before: str | None = None
    while changes:
        await asyncio.sleep(0.01)
        killed = await seen(desk, name, serves)
        if killed != before:
            before, changes = killed, changes - 1
            print(killed, flush=True)
    await desk.stop()


if __name__ == "__main__":
    asyncio.run(watch(sys.argv[1], sys.argv[2], int(sys.argv[3])))
