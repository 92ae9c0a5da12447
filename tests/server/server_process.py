"""A server of several on one store, until it is killed: python -m tests.server.server_process STORE NAME.

It prints a line for each second: whether it learns, up to which row, and how many decisions it made.
"""

import asyncio
import json
import os
import sys
import time

from tests.server.logs import problem
from tests.server.server_helpers import NAME, user

from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate
from stagewise.server.store.migrate import open_store


async def main(address: str, name: str) -> None:
    """Decide and learn for ever."""
    server = DecisionServer(open_store(address), alone=False)
    await server.start()
    await server.open(NAME, problem(), "ada", "a test")
    made, said = 0, 0.0
    while True:
        answer = await server.decide(NAME, user(f"{name}-{made}"))
        made += answer.logged
        await server.learn(NAME, OutcomeUpdate(f"{name}-{made - 1}", {"click": 0, "opt_out": 0, "complaint": 0}))
        if time.monotonic() - said > 0.1:
            said = time.monotonic()
            told = {
                "leads": server.learner.is_leader,
                "state": server.experiment(NAME).snapshot,
                "made": made,
                "pid": os.getpid(),
            }
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
