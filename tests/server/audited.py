"""A store with a log in which everything happened once, made by a server."""

import asyncio
from pathlib import Path

import msgspec
import numpy as np
from tests.server.logs import problem
from tests.server.server_helpers import NAME, learned, serve_problem, user

from stagewise.server.decision_server import DecisionServer
from stagewise.server.messages import OutcomeUpdate

PART = 25


def lived(folder: Path) -> Path:
    """Return a store in which an experiment was live, killed, in shadow, a canary, and played in two versions."""
    asyncio.run(live(folder))
    return folder / "server.db"


async def live(folder: Path) -> None:
    async with serve_problem(folder) as server:
        await part(server, "live")
        await server.kill(NAME, "ada", "complaints doubled")
        await part(server, "killed", 3)
        await server.resume(NAME, "bob", "it was a rumour")
        await server.set_mode(NAME, "shadow", None, "ada", "to look at it")
        await part(server, "shadow")
        await server.set_mode(NAME, "canary", 0.5, "ada", "carefully")
        await part(server, "canary")
        await server.set_mode(NAME, "live", None, "ada", "all is well")
        await server.new_version(NAME, problem(action_names=["nothing", "offer", "sale"]).to_dict(), "ada", "a sale")
        await server.decide(NAME, user("before it is learned"))
        await part(server, "sale")
        await server.kill(None, "eve", "the whole site is down")
        await part(server, "dark", 2)
        await server.decide(NAME, user("only", only=["offer"]))
        await server.decide(NAME, msgspec.structs.replace(user("later"), deferred=True))


async def part(server: DecisionServer, name: str, count: int = PART) -> None:
    """Decide for some users; outcomes come in parts, some late, some never, some for what was not shown."""
    rng = np.random.default_rng(len(name))
    for i in range(count):
        id_, country = f"{name}-{i}", "NZ" if i % 3 else "FR"
        await server.decide(NAME, user(id_, age=float(rng.integers(101)), country=country))
        if i % 10 == 9:
            await server.learn(NAME, OutcomeUpdate(id_, {"shown": False}))
            continue
        await server.learn(NAME, OutcomeUpdate(id_, {"click": bool(rng.random() < 0.3)}, outcome_id=f"o-{id_}"))
        if i % 2:
            await server.learn(NAME, OutcomeUpdate(id_, {"opt_out": 0, "complaint": 0}))
        if i % 5 == 0:
            await learned(server)
