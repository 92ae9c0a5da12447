"""Numbers with a declared noise: their ends by R, what drifts, what is refused, and a noise that is declared wrong."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.adversaries import NEAR_BOUND, NO_AGE, PROVED, SAW, count_misses
from tests.chance import allowed
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.models.epochs import compute_log_share
from stagewise.problem.errors import ErrorCode
from stagewise.problem.timing import DAY

START, R, RANGE, DELTA, SEED = 1.7e9, 3.0, 60.0, 0.2, 8
SHARE = 0.8 * 0.1 * 0.9 * 0.95  # of δ = .1: upper ends of the cost; the declared safe action has little


def build(drift: Any = None, **settings: Any) -> sw.Problem:
    declared = {"low": 0.0, "high": RANGE, "safe_bound": 20.0, "noise": R, "drift": drift} | settings
    limits = {"minutes": sw.Limit(30.0, **declared)}
    return sw.Problem(action_names=["van", "bike"], safe_name="van", reward=sw.Reward("kept"), limits=limits, delta=0.1)


def make_log(rows: int = 320, per_day: float = 40.0) -> dict[str, Any]:
    minutes = np.random.default_rng(5).normal(25.0, R, rows)
    at = START + np.arange(rows) * DAY / per_day
    return {"action": ["bike"] * rows, "kept": [1.0] * rows, "minutes": minutes, "at": at}


def read_bound(agent: sw.Agent, now: float) -> float:
    """Return the upper bound of the bike's minutes."""
    (bound,) = [one.bound for one in agent.report().drifting if one.action == "bike"]
    assert now == START + 319 * DAY / 40
    return bound


def compute_radius(pulls: int, confidence: float) -> float:
    return R * math.sqrt((1 + 1 / pulls) * (math.log1p(pulls) + 2 * confidence) / pulls)


def test_a_constant_mean_has_the_interval_of_its_noise() -> None:
    agent, log = sw.Agent(build(), seed=1), make_log()
    agent.learn_log_frame({name: log[name] for name in ("action", "kept", "minutes")})
    expected = log["minutes"].mean() + compute_radius(320, -math.log(SHARE))
    decision = agent.decide(propose="bike")
    assert decision.action == "bike"
    assert decision.pessimistic_cost[0] == pytest.approx(expected, abs=1e-9)


def test_a_mean_that_drifts_has_the_least_end_of_its_epochs() -> None:
    """Theorem 1': S/n + R h(n) at an epoch's share of δ, and the mean age times the slope."""
    agent, log = sw.Agent(build("1.5/30d"), seed=1), make_log()
    agent.learn_log_frame(log)
    now, ends = float(log["at"][-1]), []
    step = 30.0 / (1.5 / (30 * DAY)) / 48
    assert step > 3 * DAY  # the longest step is three days
    for epoch in (1, 2, 3):
        since = log["at"] >= START + (epoch - 1) * 3 * DAY
        pulls, age = int(since.sum()), now - log["at"][since].mean()
        confidence = -math.log(SHARE) + compute_log_share(epoch)
        ends.append(log["minutes"][since].mean() + compute_radius(pulls, confidence) + 1.5 / 30 / DAY * age)
    assert read_bound(agent, now) == pytest.approx(min(ends), abs=1e-9)


def test_a_noise_that_is_too_small_is_found() -> None:
    agent, log = sw.Agent(build(noise=1.0), seed=1), make_log()
    agent.learn_log_frame({name: log[name] for name in ("action", "kept", "minutes")})
    found = agent.health()["noise of minutes"]
    assert found.verdict == "contradicted"
    assert found.details["declared"] == pytest.approx(1.0)
    assert 2.0 < found.details["needed"] < R
    assert agent.decide().reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    kept = sw.Agent(build(), seed=1)
    kept.learn_log_frame({name: log[name] for name in ("action", "kept", "minutes")})
    assert kept.health()["noise of minutes"].verdict == "fine"


@pytest.mark.parametrize("settings", [
    {"drift": "jumps"}, {"model": "linear"}, {"model": "logistic"}, {"score": "risk"},
])  # fmt: skip
def test_what_has_no_noise_is_refused(settings: dict[str, Any]) -> None:
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        build(**settings)


@pytest.mark.parametrize("noise", [0.0, 30.0, -1.0])
def test_a_noise_that_says_nothing_is_refused(noise: float) -> None:
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        build(noise=noise)


def simulate(drift: Any, backend: str) -> Any:
    cost = {"minutes": [[0.3], [0.4], [0.55]]}
    noise = {"reward": 1.0, "minutes": 0.1}  # minutes are 0.05-sub-Gaussian
    still = sw.ContextWorld(reward=[[0.05], [0.1], [0.2]], cost=cost, noise=noise, outcomes="shrunk", features="plain")
    moves = [
        sw.Move(kind="slope", signal="minutes", action=1, amount=0.2, start="10d", length="60d"),
        sw.Move(kind="slope", signal="minutes", action=2, amount=-0.2, start="10d", length="60d"),
    ]
    world = sw.MovingWorld(still, moves=moves, per_day=50, lag="2d")
    limit = sw.Limit(0.5, safe_bound=0.3, noise=0.05, drift=drift)
    limits, reward = {"minutes": limit}, sw.Reward("kept")
    problem = sw.Problem(action_names=["a", "b", "c"], safe_name="a", reward=reward, limits=limits)
    return sw.simulate(problem, world, rounds=50 * 60, runs=1, seed=1, backend=backend)


@pytest.mark.compiled
def test_worlds_that_move_play_the_same_compiled_and_interpreted() -> None:
    one, other = (simulate("0.1/30d", backend) for backend in ("auto", "python"))
    assert one.violations.tolist() == [0]
    assert np.array_equal(one.max_cost, other.max_cost)
    assert np.array_equal(one.regret, other.regret)


def test_a_table_and_single_decisions_have_the_same_bounds() -> None:
    agent, log = sw.Agent(build("1.5/30d"), seed=1), make_log()
    agent.learn_log_frame(log)
    now = START + 10 * DAY
    table = sw.decide_frame(agent.replica_snapshot(), {"user_id": [1]}, run="night", now=now)
    alone = agent.decide(now=now, id="night:1")
    assert table["limit.minutes.pessimistic_cost"].tolist() == [alone.pessimistic_cost[0]]
    assert table["probability.bike"].tolist() == [alone.probabilities["bike"]]


@pytest.mark.compiled
@pytest.mark.parametrize("strategy", [NEAR_BOUND, SAW])
def test_who_knows_data_and_bounds_breaks_them_without_ages_alone(strategy: int) -> None:
    """A noise of .05 and a slope of 4·10⁻⁵ a round."""
    given = strategy, 4e-5, 10_000, DELTA, 200.0, SEED, 0
    assert count_misses(60, PROVED, *given, 0.05) <= allowed(60, DELTA)
    assert count_misses(6, NO_AGE, *given, 0.05) > allowed(6, DELTA)
