"""Clients that ask for the same decisions and tell of them at once, and an operator who changes things meanwhile."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.server.contending.line import Line

PATH = "/v1/demo"
SIGNALS = ("click", "opt_out")
IDS = 150  # of decisions, in a second
BEAT = 0.06  # seconds: all ask at once, then the processor is anybody's
AGO = 2  # seconds: windows of decisions of then are closed
CHANGES: list[tuple[str, dict[str, Any]]] = [
    (f"{PATH}/kill", {}),
    (f"{PATH}/resume", {}),
    (f"{PATH}/mode", {"mode": "canary", "share": 0.5}),
    (f"{PATH}/mode", {"mode": "live"}),
    ("/v1/kill", {}),
    ("/v1/resume", {}),
    (f"{PATH}/mode", {"mode": "shadow"}),
    (f"{PATH}/mode", {"mode": "live"}),
    (f"{PATH}/mode", {"mode": "off"}),
    (f"{PATH}/mode", {"mode": "live"}),
]
"""In turn; each second one is how things are for most of the time."""
HUNG_UP = 0


class Said(NamedTuple):
    """What was sent, what was answered, and when, by the store's clock."""

    path: str
    sent: dict[str, Any]
    status: int
    """HUNG_UP: nobody waited for the answer."""
    answer: Any
    began: int
    ended: int

    @property
    def values(self) -> dict[str, float]:
        """The signals of an outcome."""
        return {name: float(self.sent[name]) for name in (*SIGNALS, "shown") if name in self.sent}


def decision(chance: random.Random, second: int) -> tuple[str, dict[str, Any]]:
    """Return what is asked: of one of the ids of this second, mostly by the same user, and sometimes without sense."""
    number = chance.randrange(IDS)
    age: Any = 30.0 + number % 2 if chance.random() < 0.9 else chance.choice([30.0, 31.0, "old"])
    return "decisions", {"context": {"age": age}, "decision_id": f"{second:05}-{number:03}"}


def outcome(chance: random.Random, second: int) -> tuple[str, dict[str, Any]]:
    """Return what is told: in time or late, of somebody or nobody, mostly what was told before if it has an id."""
    told: dict[str, Any] = {}
    if chance.random() < 0.3:
        told["outcome_id"] = f"o-{second:05}-{chance.randrange(60):02}"
        if chance.random() < 0.7:
            chance = random.Random(told["outcome_id"])
    then = second - AGO if chance.random() < 0.2 and second >= AGO else second
    told["decision_id"] = f"{then:05}-{chance.randrange(IDS if chance.random() < 0.95 else 1000):03}"
    told |= {name: chance.randrange(2) for name in chance.sample(SIGNALS, chance.randrange(1, 3))}
    if chance.random() < 0.05:
        told["shown"] = chance.random() < 0.5
    return "outcomes", told


async def client(number: int, line: Line, clock: Callable[[], int], over: asyncio.Event, said: list[Said]) -> None:
    """Ask and tell at every beat; now and then hang up, and say the same again."""
    chance, start = random.Random(number), time.monotonic()
    while not over.is_set():
        path, sent = (decision if chance.random() < 0.5 else outcome)(chance, int(time.monotonic() - start))
        if chance.random() < 0.01:
            began = clock()
            await line.send_and_hang_up(f"{PATH}/{path}", sent)
            said.append(Said(path, sent, HUNG_UP, None, began, began))
        began = clock()
        status, answer = await line.post(f"{PATH}/{path}", sent)
        said.append(Said(path, sent, status, answer, began, clock()))
        await until_beat(start)
    line.hang_up()


async def until_beat(start: float) -> None:
    """Wait until all ask again."""
    await asyncio.sleep(BEAT - (time.monotonic() - start) % BEAT)


async def operator(line: Line, seconds: float, over: asyncio.Event) -> None:
    """Make all the changes in turn, each just as all ask, for so long; then say that it is over."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        for turn, (path, body) in enumerate(CHANGES):
            await asyncio.sleep(0.65 if turn % 2 == 0 else 0.15)
            await until_beat(start)
            status, answer = await line.post(path, {**body, "reason": "a drill"})
            assert status == 200, answer
    over.set()
    line.hang_up()
