"""A store with a log in which everything happened once, made by a desk."""

import asyncio
from pathlib import Path

import msgspec
import numpy as np
from tests.service.desks import NAME, desk_on, learned, user
from tests.service.logs import problem

from stagewise.service.desk import Desk
from stagewise.service.messages import Outcome

PART = 25


def lived(folder: Path) -> Path:
    """Return a store in which an experiment was live, killed, in shadow, a canary, and played in two versions."""
    asyncio.run(live(folder))
    return folder / "desk.db"


async def live(folder: Path) -> None:
    async with desk_on(folder) as desk:
        await part(desk, "live")
        await desk.kill(NAME, "ada", "complaints doubled")
        await part(desk, "killed", 3)
        await desk.revive(NAME, "bob", "it was a rumour")
        await desk.set_mode(NAME, "shadow", None, "ada", "to look at it")
        await part(desk, "shadow")
        await desk.set_mode(NAME, "canary", 0.5, "ada", "carefully")
        await part(desk, "canary")
        await desk.set_mode(NAME, "live", None, "ada", "all is well")
        await desk.new_version(NAME, problem(actions=["nothing", "offer", "sale"]).plain(), "ada", "a sale")
        await desk.decide(NAME, user("before it is learned"))
        await part(desk, "sale")
        await desk.kill(None, "eve", "the whole site is down")
        await part(desk, "dark", 2)
        await desk.decide(NAME, user("only", only=["offer"]))
        await desk.decide(NAME, msgspec.structs.replace(user("later"), deferred=True))


async def part(desk: Desk, name: str, count: int = PART) -> None:
    """Decide for some users; outcomes come in parts, some late, some never, some for what was not shown."""
    rng = np.random.default_rng(len(name))
    for i in range(count):
        id_, country = f"{name}-{i}", "NZ" if i % 3 else "FR"
        await desk.decide(NAME, user(id_, age=float(rng.integers(101)), country=country))
        if i % 10 == 9:
            await desk.learn(NAME, Outcome(id_, {"shown": False}))
            continue
        await desk.learn(NAME, Outcome(id_, {"click": bool(rng.random() < 0.3)}, outcome_id=f"o-{id_}"))
        if i % 2:
            await desk.learn(NAME, Outcome(id_, {"opt_out": 0, "complaint": 0}))
        if i % 5 == 0:
            await learned(desk)
