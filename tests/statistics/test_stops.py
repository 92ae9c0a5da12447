"""How soon stops come, and how seldom without cause; the large sizes print their figures (`-s`).

What they are held against knows the rate: Wald's likelihood ratio of three times the limit against the limit, at the
same level, fed with every outcome when its decision is made.
"""

import heapq
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.chance import allowed
from tests.server.logs import Log
from tests.sizes import sized

import stagewise as sw
from stagewise.agent.e_process import EProcess
from stagewise.server.state_fold import StateFold

pytestmark = pytest.mark.compiled
LIMIT, DELTA, FEW = 0.02, 0.05, 1e-6  # FEW: the level of what an agent holds against the data
MINUTE = 60 * 10**6
LAG = 20.0  # minutes, on average, until an event is told; there is a decision a minute


def stop(costs: np.ndarray, level: float) -> int | None:
    """Return after how many decisions the automatic stop comes, where each cost is told at once."""
    test = EProcess(level)

    def rows(start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        return costs[start:end], np.full(end - start, LIMIT)

    for i in np.flatnonzero(costs):
        test.raise_values(int(i), int(i) + 1, float(costs[i]))
        if test.check(rows, int(i) + 1):
            return int(i) + 1
        test.settle(rows, int(i), int(i) + 1)
    return None


def oracle(events: np.ndarray, level: float) -> int | None:
    """Return after how many decisions the likelihood ratio that knows the rate has reached 1/level."""
    steps = np.where(events, math.log(3.0), math.log((1.0 - 3.0 * LIMIT) / (1.0 - LIMIT)))
    over = np.flatnonzero(np.cumsum(steps) >= -math.log(level))
    return int(over[0]) + 1 if over.size else None


@sized(12, 400)
def test_it_stops_soon_after_a_quiet_stretch(size: int) -> None:
    rng, quiet, later = np.random.default_rng(20), 20_000, 3_000
    rates = np.repeat([0.2 * LIMIT, 3.0 * LIMIT], [quiet, later])
    stops = [stop((rng.random(rates.size) < rates).astype(float), DELTA) for _ in range(size)]
    assert all(found is None or found > quiet for found in stops)
    delays = [math.inf if found is None else found - quiet for found in stops]
    started = [stop((rng.random(later) < 3.0 * LIMIT).astype(float), DELTA) or math.inf for _ in range(size)]
    print(f"\nafter {quiet:,} quiet decisions: median {np.median(delays):.0f}, 90 % {np.quantile(delays, 0.9):.0f}")
    print(f"from the start: median {np.median(started):.0f}, 90 % {np.quantile(started, 0.9):.0f}; {size} runs each")
    assert np.median(delays) <= 600
    assert np.median(started) <= 200


@sized((20, 3_000), (400, 30_000))
def test_costs_at_their_limit_stop_it_no_more_often_than_its_level_says(size: tuple[int, int]) -> None:
    (runs, length), rng = size, np.random.default_rng(21)
    for kind in ("events", "parts"):
        stopped = 0
        for _ in range(runs):
            events, parts = (rng.random(length) < LIMIT).astype(float), rng.beta(0.2, 0.2 / LIMIT - 0.2, length)
            stopped += stop(events if kind == "events" else parts, 0.2) is not None
        print(f"\n{kind} at the limit, level .2: {stopped} of {runs} runs of {length:,} decisions stop")
        assert stopped <= allowed(runs, 0.2)


def problem() -> sw.Problem:
    """Return one whose opt-outs have seven days, so that nothing is learned while these campaigns last."""
    return sw.Problem(
        action_names=["plain", "offer"],
        safe_name="plain",
        reward=sw.Reward("click", window="1h"),
        limits={"opt_out": sw.Limit(LIMIT, safe_bound=LIMIT / 2, window="7d", model="rates")},
        delta=DELTA,
    )


def served(events: np.ndarray, rng: np.random.Generator) -> int | None:
    """Return after how many decisions a desk stops by itself that is told events some minutes after they happen."""
    log, fold, coming = Log(), StateFold(problem(), 1), list[tuple[float, int]]()
    for i, event in enumerate(events):
        while coming and coming[0][0] <= i:
            log.tell(heapq.heappop(coming)[1], i * MINUTE, opt_out=1.0)
        log.decide("offer", i * MINUTE)
        if event:
            heapq.heappush(coming, (i + rng.exponential(LAG), i))
        fold.take(log.events[fold.seq :])
        if fold.circuit_breaker.find_breach() is not None:
            return i + 1
    return None


def agreed(events: np.ndarray, rng: np.random.Generator) -> int | None:
    """Return the same for an agent, whose safe action is declared to cost as much as the limit of the others here."""
    limit = sw.Limit(3.5 * LIMIT, safe_bound=LIMIT, window="7d", model="rates")
    agent, coming = sw.Agent(replace(problem(), limits={"opt_out": limit}), seed=1), list[tuple[float, str]]()
    for i, event in enumerate(events):
        now = 60.0 * i
        while coming and coming[0][0] <= i:
            agent.learn(heapq.heappop(coming)[1], opt_out=True, now=now)
        decision = agent.decide({}, now=now)
        while decision.action != "plain" and decision.message is None:  # what is counted is the safe action
            agent.cancel(decision)
            decision = agent.decide({}, now=now)
        if decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED:
            assert decision.reason_details is not None
            assert decision.reason_details.details["found"] == "safe_cost_so_far"
            assert agent.health()["safe cost of opt_out"].verdict == "contradicted"
            return i
        if event:
            heapq.heappush(coming, (i + rng.exponential(LAG), decision.id))
    return None


@pytest.mark.parametrize("which", ["desk", "agent"])
@sized((10, 30), (200, 1_000))
def test_events_that_are_told_early_stop_a_campaign_nearly_as_soon_as_who_knows_all(
    which: str, size: tuple[int, int]
) -> None:
    (campaigns, honest), rng = size, np.random.default_rng(22)
    run, level, length = (served, DELTA, 1_200) if which == "desk" else (agreed, FEW, 2_400)
    stops, known = list[float](), list[float]()
    for _ in range(campaigns):
        events = rng.random(length) < 3.0 * LIMIT
        stops.append(run(events, rng) or math.inf)
        known.append(oracle(events, level) or math.inf)
    ratios = np.array(stops) / np.array(known)
    settings = (
        f"stops after {np.median(stops):.0f} decisions, 90 % {np.quantile(stops, 0.9):.0f}; who knows the rate after "
    )
    print(
        f"\n{which}: {settings}{np.median(known):.0f}, "
        f"90 % {np.quantile(known, 0.9):.0f}; ratio {np.median(ratios):.2f}"
    )
    assert np.median(stops) <= 3.0 * np.median(known)
    assert np.quantile(stops, 0.9) <= 3.0 * np.quantile(known, 0.9)
    false = sum(run(rng.random(600) < LIMIT, rng) is not None for _ in range(honest))
    print(f"{which}: {false} of {honest:,} honest campaigns of 600 decisions stop, at level {level:g}")
    assert false <= allowed(honest, level)
