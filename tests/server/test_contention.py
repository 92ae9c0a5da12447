"""Sixty-four clients at once, with retries, conflicts, late and unknown outcomes: the log explains every answer."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.server.contending.clients import Said, client, operator
from tests.server.contending.explained import explain, read
from tests.server.contending.line import Line
from tests.server.web.live import Live, live

import stagewise as sw
from stagewise.server.audit.replay import Replay
from stagewise.server.decision_server import warm_up

CLIENTS = 64


def played_problem() -> sw.Problem:
    """Return a problem whose windows close while it is played, and which a fair coin does not contradict."""
    limits, window = {"opt_out": sw.Limit(0.9, safe_bound=0.5, window="1s", model="rates")}, {"window": "1s"}
    told: Any = {"action_names": ["nothing", "digest", "offer"], "safe_name": "nothing", "context": {"age": (18, 99)}}
    return sw.Problem(**told, reward=sw.Reward("click", **window), limits=limits)


async def play(server: Live, seconds: float) -> list[Said]:
    """Have everybody talk at once."""
    said, clock, over = list[Said](), server.desk.store.now, asyncio.Event()
    lines = [Line(server.address, server.writer) for _ in range(CLIENTS)]
    await asyncio.gather(
        operator(Line(server.address, server.admin), seconds, over),
        *(client(number, line, clock, over, said) for number, line in enumerate(lines)),
    )
    return said


def contended(place: Path | str, seconds: float) -> None:
    """Play, and hold the answers against the log."""
    with live(place, played_problem()) as server:
        warm_up(server.desk.desk.experiment("demo").current)  # where kernels are compiled, nobody waits for that
        said = asyncio.run(play(server, seconds))
        store = server.desk.store
        log = read(store.events("demo", limit=10**7), store.events("", limit=10**6))
        again = Replay(store, "demo").run()
        assert server.desk.desk.learner.failed is None
    assert (again.matching, again.failed, again.first_difference) == (len(log.decisions), 0, None)
    explain(said, log)
    kinds = Counter((one.path, one.status) for one in said)
    met = {("decisions", 200), ("decisions", 409), ("decisions", 422), ("outcomes", 200), ("outcomes", 404)}
    assert {*met, ("outcomes", 409), ("outcomes", 0), ("decisions", 0)} == kinds.keys(), kinds
    modes = {body["mode"] for _, body in log.decisions.values()}
    assert modes == {"killed", "off", "shadow", "canary", "live"}
    assert any(one.late for signals in log.signals.values() for one in signals.values())


def test_every_answer_is_explained_by_the_log_on_sqlite(tmp_path: Path) -> None:
    contended(tmp_path, 8.0)


@pytest.mark.slow
def test_ten_minutes_of_it(tmp_path: Path, postgres: str) -> None:
    contended(tmp_path, 400.0)
    contended(postgres, 200.0)
