"""Many small campaigns against a running server: users who answer late, never, or by what they saw before."""

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.server.server_helpers import played

import stagewise as sw
from stagewise.server.decision_server import DecisionServer, warm_up
from stagewise.server.messages import DecisionRequest, OutcomeUpdate
from stagewise.server.store.base import Store
from stagewise.server.store.sqlite import SqliteStore

USERS, SIGNALS = 300, ("click", "opt_out", "complaint")
MEANS = {"nothing": (0.2, 0.05, 0.0), "digest": (0.5, 0.2, 0.1), "offer": (0.9, 0.6, 0.5)}
LIMITS = {"opt_out": 0.4, "complaint": 0.35}
LOST = 0.1  # of what users do is never told

pytestmark = pytest.mark.compiled


def problem() -> sw.Problem:
    limits = {
        "opt_out": sw.Limit(LIMITS["opt_out"], safe_bound=0.06, window="15m", model="rates"),
        "complaint": sw.Limit(LIMITS["complaint"], safe_bound=0.01, window="15m", by="country"),
    }
    told: Any = {"action_names": list(MEANS), "safe_name": "nothing", "context": ["age"]}
    return sw.Problem(**told, reward=sw.Reward("click", window="15m"), limits=limits, delta=0.1)


def over(probabilities: dict[str, float], told: float) -> bool:
    """Say whether a mixture's expected costs, as far as they are told, are above a limit."""
    costs = [sum(share * MEANS[name][1 + j] for name, share in probabilities.items()) for j in range(2)]
    return any(told * cost > limit for cost, limit in zip(costs, LIMITS.values(), strict=True))


class Clock:
    """Time that passes by a minute a user, so that windows of a quarter of an hour close."""

    def __init__(self, campaigns: int) -> None:
        self.minutes, self.campaigns = 0, campaigns

    def __call__(self) -> int:
        return 60_000_000 * (self.minutes // self.campaigns)


async def campaign(servers: list[DecisionServer], clock: Clock, name: str, seed: int, silent: bool) -> bool:
    """Play one campaign; say whether any decision was over a limit. Silent: who opts out never says so.

    Users come to the servers by turns, and what they do is told to another one.
    """
    rng, late, broken, last = np.random.default_rng(seed), deque[OutcomeUpdate](), False, np.zeros(3)
    for user in range(USERS):
        only = ["digest", "offer"] if last[1] else None  # what is offered reacts to what nobody has learned yet
        asked = DecisionRequest(
            {"age": float(rng.uniform(-1, 1)), "country": str(rng.integers(2))}, only, f"{name}-{user}"
        )
        made = await servers[user % len(servers)].decide(name, asked)
        clock.minutes += 1
        broken |= over(made.probabilities, 1.0)
        last = (rng.random(3) < MEANS[made.action]).astype(float)
        values = dict(zip(SIGNALS, last.tolist(), strict=True))
        if silent:
            values["opt_out"] = values["complaint"] = 0.0
        if rng.random() > LOST:
            late.append(OutcomeUpdate(asked.decision_id or "", values))
        while late and rng.random() < 0.7:
            late.rotate(int(rng.integers(len(late))))
            await servers[(user + 1) % len(servers)].learn(name, late.pop())
    return broken


async def broken_campaigns(place: Path | str, count: int, silent: bool = False, deciders: int = 1) -> int:
    """Play so many campaigns at once; return how many broke a limit."""
    clock, alone = Clock(count), deciders == 1
    servers = [DecisionServer(opened(place, clock), alone=alone) for _ in range(deciders)]
    for server in servers:
        await server.start()
        server_trips_nothing(server)
    try:
        names = [f"campaign {i}" for i in range(count)]
        for name in names:
            await servers[0].open(name, problem(), "ada", "a test")
        warm_up(servers[0].experiment(names[0]).current)  # a learner that compiles is behind a short campaign
        for server in servers[1:]:
            server.refresh()
        told = await asyncio.gather(*(campaign(servers, clock, name, i, silent) for i, name in enumerate(names)))
        folds = [fold for server in servers for fold in server.learner.folds.values()]
        assert np.mean([fold.learned.update_count for fold in folds]) > USERS
        assert all(server.experiment(name).snapshot > USERS for server in servers for name in names)
    finally:
        for server in servers:
            await server.stop()
    return sum(told)


def opened(place: Path | str, clock: Clock) -> Store:
    if isinstance(place, Path):
        return SqliteStore(place / "server.db", clock=clock)
    from stagewise.server.store.postgres import PostgresStore

    return PostgresStore(place, clock=clock)


def server_trips_nothing(server: DecisionServer) -> None:
    """Let the policy alone keep the limits: the test that stops a server would hide what it does."""
    server.learner.append_ticks_and_stops = lambda *_: None  # type: ignore[method-assign]


@pytest.mark.parametrize("size", [12, pytest.param(60, marks=pytest.mark.slow)])
@played
async def test_campaigns_keep_their_limits(tmp_path: Path, size: int) -> None:
    assert await broken_campaigns(tmp_path, size) <= allowed(size, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("deciders", [2, 3])
@played
async def test_campaigns_of_several_deciders_keep_their_limits(postgres: str, deciders: int) -> None:
    """One of them learns; the others decide by what they were told half a second ago."""
    assert await broken_campaigns(postgres, 60, deciders=deciders) <= allowed(60, 0.1)


@played
async def test_where_costs_are_hidden_campaigns_break_them(tmp_path: Path) -> None:
    """The control: it shows that these campaigns are long enough to break a limit."""
    assert await broken_campaigns(tmp_path, 12, silent=True) >= 8
