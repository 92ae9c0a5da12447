"""Safety over users that change, per-signal models, segments, and outcomes that come apart and late."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_context_caps import COSTS, OFFSETS, SHARES, policy, users
from tests.chance import allowed
from tests.sizes import sized

import stagewise as sw

pytestmark = pytest.mark.compiled

DELTA = 0.1


@sized(200, 2_000)
@pytest.mark.parametrize(
    "settings",
    [
        {"segments": 1, "by": {"complaint": 0}},
        pytest.param({"cost_model": {"opt_out": "linear"}, "norm_bound": 0.5}, marks=pytest.mark.slow),
    ],
    ids=["segments", "linear costs"],
)
def test_a_limit_is_broken_in_no_more_runs_than_delta_allows(settings: dict[str, Any], size: int) -> None:
    built, world = policy(delta=DELTA, **settings), users("by" in settings)
    result = sw.simulate(built, world, rounds=600, runs=size, seed=5, audit=True, record_points=2, progress=False)
    assert (result.violations > 0).sum() <= allowed(size, DELTA)
    assert result.regret[:, -1].mean() < 0.9 * sw_safe_regret(world, built)  # it dares something


def sw_safe_regret(world: Any, built: Any) -> float:
    """Return the regret of always doing what is safe."""
    safe = sw.AlwaysSafe(safe_action=sw.SafeAction(cost=[0.06, 0.04]), threshold=built.threshold)
    return float(
        sw.simulate(safe, world, rounds=600, runs=20, seed=5, audit=True, record_points=2, progress=False)
        .regret[:, -1]
        .mean()
    )


def test_rates_that_ignore_what_a_cost_depends_on_break_it() -> None:
    """The negative control: complaints differ by segment, and are counted as if they did not."""
    offsets = OFFSETS.copy()
    offsets[2, 1:, 2] = 0.5
    world = sw.ContextWorld(
        reward=users(True).parameters[0].reshape(4, -1)[:, :3], cost=COSTS, features="plain", segments=SHARES,
        segment_offsets=offsets,
    )  # fmt: skip
    built = policy(delta=DELTA, segments=1, by={"opt_out": 0})
    result = sw.simulate(built, world, rounds=6_000, runs=20, seed=5, audit=True, record_points=2, progress=False)
    assert (result.violations > 0).sum() > allowed(20, DELTA)


def one_run(run: int, rounds: int) -> tuple[bool, bool]:
    """Play a run whose outcomes come apart and late, in any order; say whether it broke its limit, and if it dared.

    All of its limit may be used, so that one lower bound on a cost that lies too low breaks it.
    """
    chance = np.random.default_rng([7, run])
    clicks, costs = np.array([0.1, 0.5]), np.array([0.05, 0.3])
    options = {"threshold": {"opt_out": 0.2, "none": 0.5}, "delta": DELTA, "reward_model": "rates"}
    built = sw.SafeContextPosteriorSampling(
        actions=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=[0.06, 0.1]), **options
    )
    agent, waits, broken, dared = sw.Agent(built, seed=run), [], False, False
    for _ in range(rounds):
        decision = agent.decide(sw.ContextVector())
        broken |= bool(decision.probabilities[:2] @ costs > 0.2 + 1e-12)
        dared |= decision.action_index == 1
        observed = chance.random(2) < [clicks[decision.action_index], costs[decision.action_index]]
        waits.append((decision.round, *observed))
        chance.shuffle(waits)
        while len(waits) > 5:
            round_, click, left = waits.pop()
            agent.learn(round_, reward=click)
            agent.learn(round_, opt_out=left)
            agent.learn(round_, none=0.0)
    return broken, dared


@pytest.mark.parametrize(
    ("runs", "rounds"),
    [pytest.param(60, 120, id="few"), pytest.param(2_000, 300, id="many", marks=pytest.mark.slow)],
)
def test_outcomes_that_come_apart_and_late_break_nothing(runs: int, rounds: int) -> None:
    broken, dared = np.array([one_run(run, rounds) for run in range(runs)]).sum(axis=0)
    print(f"{broken} of {runs} runs break the limit, {allowed(runs, DELTA)} may; {dared} dare something")  # pytest -rP
    assert broken <= allowed(runs, DELTA)
    assert dared > 0.9 * runs
