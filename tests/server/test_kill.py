"""A server that is killed at any instant loses nothing that it acknowledged, and decides nothing twice."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.server_helpers import NAME, check_fold, learned, serve_problem

from stagewise.server.audit.verify import verify_store
from stagewise.server.store.base import Store
from stagewise.server.store.migrate import open_store

HERE = Path(__file__).parents[2]


def killed(address: str, count: int) -> list[list[Any]]:
    """Kill so many servers on one store; return what they had acknowledged."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.server.kill_servers", address, str(count), "7"],
        cwd=HERE, capture_output=True, text=True, timeout=6000, check=True,
    )  # fmt: skip
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sum(one[0] == "killed" for one in told) == count, ran.stderr[-2000:]
    assert sum(one[0] == "decision" for one in told) > count, "most had something to lose"
    return told


async def start(address: str) -> None:
    """Learn what is left."""
    async with serve_problem(address if "://" in address else Path(address).parent) as server:
        await learned(server, 60.0)


def check(address: str, told: list[list[Any]]) -> None:
    """Start once more, from what was kept; hold what was acknowledged against the log, and the log against itself."""
    asyncio.run(start(address))
    with closing(open_store(address)) as store:
        compare(store, told)


def compare(store: Store, told: list[list[Any]]) -> None:
    while store.seal():
        pass
    assert verify_store(store).faults == []
    events = store.events(NAME, limit=10**7)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    decisions = {event.key: msgspec.json.decode(event.body) for event in events if event.kind == "decision"}
    assert Counter(event.kind for event in events)["decision"] == len(decisions)
    answers: dict[tuple[str, str], float] = {}
    for event in events:
        if event.kind == "outcome":
            body = msgspec.json.decode(event.body)
            for name, value in body["values"].items():
                assert (body["decision_id"], name) not in answers
                answers[body["decision_id"], name] = value
    for kind, id_, *rest in told:
        if kind == "decision":
            assert [decisions[id_]["action"], decisions[id_]["probabilities"]] == rest
        elif kind == "outcome":
            assert answers[id_, rest[0]] == rest[1]
    for body in decisions.values():
        assert all(kept["pessimistic_cost"] <= kept["threshold"] for kept in body["limits"].values())
    check_fold(store)
    assert len(decisions) > 20


def test_a_killed_server_loses_nothing_on_sqlite(tmp_path: Path) -> None:
    told = killed(str(tmp_path / "server.db"), 10)
    check(str(tmp_path / "server.db"), told)


@pytest.mark.slow
def test_a_thousand_kills_on_sqlite(tmp_path: Path) -> None:
    told = killed(str(tmp_path / "server.db"), 1000)
    check(str(tmp_path / "server.db"), told)


def test_a_killed_server_loses_nothing_on_postgresql(postgres: str) -> None:
    check(postgres, killed(postgres, 8))


@pytest.mark.slow
def test_a_thousand_kills_on_postgresql(postgres: str) -> None:
    check(postgres, killed(postgres, 1000))
