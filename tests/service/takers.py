"""A desk of several on one store, until it is killed: python -m tests.service.takers STORE NAME.

It prints a line for each second: whether it learns, up to which row, and how many decisions it made.
"""

import asyncio
import json
import os
import sys
import time

from tests.service.desks import NAME, user
from tests.service.logs import problem

from stagewise.service.desk import Desk
from stagewise.service.messages import Outcome
from stagewise.service.store.opened import open_store


async def main(address: str, name: str) -> None:
    """Decide and learn for ever."""
    desk = Desk(open_store(address), alone=False)
    await desk.start()
    await desk.open(NAME, problem(), "ada", "a test")
    made, said = 0, 0.0
    while True:
        answer = await desk.decide(NAME, user(f"{name}-{made}"))
        made += answer.logged
        await desk.learn(NAME, Outcome(f"{name}-{made - 1}", {"click": 0, "opt_out": 0, "complaint": 0}))
        if time.monotonic() - said > 0.1:
            said = time.monotonic()
            told = {"leads": desk.learner.leads, "state": desk.experiment(NAME).state, "made": made, "pid": os.getpid()}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
