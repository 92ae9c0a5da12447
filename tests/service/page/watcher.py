"""Another process at the same store: says when it sees an experiment stopped and started, and how much later."""

import asyncio
import sys

from stagewise.service.desk import Desk
from stagewise.service.store.opened import open_store


async def watch(place: str, name: str, changes: int) -> None:
    """Print a line for each change that is seen: what holds, and milliseconds since its row was written."""
    store = open_store(place, read_only=True)
    desk = Desk(store)
    await desk.start()
    print("ready", flush=True)
    before: str | None = None
    while changes:
        await asyncio.sleep(0.01)
        killed = desk.experiment(name).killed
        if killed != before:
            before, changes = killed, changes - 1
            row = store.of_kind(name, "control")[-1]
            print(f"{(store.now() - row.at) / 1e3:.0f} {killed}", flush=True)
    await desk.stop()


if __name__ == "__main__":
    asyncio.run(watch(sys.argv[1], sys.argv[2], int(sys.argv[3])))
