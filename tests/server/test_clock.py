"""A clock that is set while a server runs on a file: its time goes on, and no window closes early."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.server.logs import problem
from tests.server.server_helpers import NAME, learned, played, serve_problem, user

import stagewise as sw
from stagewise.server.messages import OutcomeUpdate

WINDOW = "10s"
JUMPS = [timedelta(days=30), timedelta(hours=-1)]


def set_clock(patched: pytest.MonkeyPatch, by: timedelta) -> None:
    """Set the clock of this machine, as far as this process sees it."""
    seconds, clock, clock_ns = by.total_seconds(), time.time, time.time_ns
    patched.setattr(time, "time", lambda: clock() + seconds)
    patched.setattr(time, "time_ns", lambda: clock_ns() + int(seconds * 1e9))


@pytest.mark.parametrize("by", JUMPS, ids=str)
@played
async def test_a_clock_that_is_set_moves_neither_the_time_nor_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: timedelta
) -> None:
    limits = {name: sw.Limit(0.05, safe_bound=0.001, window=WINDOW, model="rates") for name in ("opt_out", "complaint")}
    told = problem(context={"age": (0, 100), "tenure": (-1, 1)}, limits=limits)
    asked = user("before")
    asked.context.pop("country")
    async with serve_problem(tmp_path, told) as server:
        await server.decide(NAME, asked)
        before, passed = server.store.now(), time.monotonic_ns()
        set_clock(monkeypatch, by)
        now, passed = server.store.now(), time.monotonic_ns() - passed
        assert abs(now - before - passed // 1000) < 10**7, "the time is what has passed"
        asked.decision_id = "after"
        await server.decide(NAME, asked)
        first, second = (row for row in server.store.events(NAME) if row.kind == "decision")
        assert 0 <= second.at - first.at < 10**7
        answer = await server.learn(NAME, OutcomeUpdate("before", {"click": 1.0, "opt_out": 0.0}))
        assert (answer.accepted, answer.late) == (["click", "opt_out"], [])
        await learned(server)
        assert server.figures(NAME)["pending_count"] == 2  # of both something is still to come
