"""A machine's clock that is set while a desk runs on a file: its time goes on, and no window closes before its time."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from tests.service.desks import NAME, desk_on, learned, played, user
from tests.service.logs import problem

import stagewise as sw
from stagewise.service.messages import Outcome

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
    limits = {name: sw.Limit(0.05, safe=0.001, window=WINDOW) for name in ("opt_out", "complaint")}
    told = problem(context={"age": (0, 100), "tenure": (-1, 1)}, limits=limits)
    asked = user("before")
    asked.context.pop("country")
    async with desk_on(tmp_path, told) as desk:
        await desk.decide(NAME, asked)
        before, passed = desk.store.now(), time.monotonic_ns()
        set_clock(monkeypatch, by)
        now, passed = desk.store.now(), time.monotonic_ns() - passed
        assert abs(now - before - passed // 1000) < 10**7, "the time is what has passed"
        asked.decision_id = "after"
        await desk.decide(NAME, asked)
        first, second = (row for row in desk.store.events(NAME) if row.kind == "decision")
        assert 0 <= second.at - first.at < 10**7
        answer = await desk.learn(NAME, Outcome("before", {"click": 1.0, "opt_out": 0.0}))
        assert (answer.taken, answer.late) == (["click", "opt_out"], [])
        await learned(desk)
        assert desk.figures(NAME)["waiting"] == 2  # of both something is still to come
