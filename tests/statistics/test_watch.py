"""The watch over declared values: how often it is wrong at a level where that can be counted, and what it prevents."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import stagewise as sw
from stagewise.engine.workspace import ALARM
from stagewise.models.diagnostics import compute_least_noise, compute_max_deviation

pytestmark = pytest.mark.compiled

LEVEL, RUNS, ROUNDS = 0.1, 400, 300
ZERO = sw.SafeAction(features=[0.0, 0.0])
TARGETS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
MOST = int(binom.ppf(0.9999, RUNS, LEVEL))


def noises(kind: str, scale: float) -> np.ndarray:
    """Return 1-sub-Gaussian numbers (RUNS, ROUNDS), times a scale."""
    random = np.random.default_rng(7)
    if kind == "gaussian":
        return scale * random.normal(size=(RUNS, ROUNDS))
    return scale * random.choice([-1.0, 1.0], size=(RUNS, ROUNDS))


def noise_alarms(kind: str, scale: float) -> int:
    """Return in how many runs the squares contradict a declared noise of 1, in some round."""
    squares, alarm = np.cumsum(noises(kind, scale) ** 2, axis=1), math.log(1.0 / LEVEL)
    return sum(any(compute_least_noise(q, n + 1.0, alarm) > 1.0 for n, q in enumerate(run)) for run in squares.tolist())


def mean_alarms(kind: str, shift: float) -> int:
    """Return in how many runs the sums contradict a declared mean of 0, in some round."""
    sums, alarm = np.cumsum(noises(kind, 1.0) + shift, axis=1), math.log(1.0 / LEVEL)
    return sum(
        any(abs(s) > compute_max_deviation(n + 1.0, 1.0, alarm) for n, s in enumerate(run)) for run in sums.tolist()
    )


@pytest.mark.parametrize("kind", ["gaussian", "signs"])
def test_what_is_true_is_seldom_contradicted(kind: str) -> None:
    assert noise_alarms(kind, 1.0) <= MOST
    assert mean_alarms(kind, 0.0) <= MOST


def test_what_is_false_is_contradicted_and_the_count_can_fail() -> None:
    assert noise_alarms("gaussian", 1.3) > 0.9 * RUNS > MOST
    assert mean_alarms("gaussian", 0.4) > 0.9 * RUNS


def stopped(policy: Any, level: float, run: int, noise: float) -> bool:
    """Say whether a policy in a world with this noise is ever stopped by a test at this level."""
    policy.settings[ALARM] = math.log(1.0 / level)
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(TARGETS), noise=noise)
    agent = sw.Agent(policy, seed=run)
    for t in range(60):
        decision = agent.decide(world.actions)
        if decision.message is not None and "declared" in decision.message:
            return True
        observed = world.outcome(decision.action, sw.RandomKey(5, run, t))
        agent.learn(decision, reward=observed.reward, cost=observed.cost)
    return False


def test_a_policy_in_a_world_as_declared_is_seldom_stopped() -> None:
    def policy() -> sw.LCLUCB:
        return sw.LCLUCB(safe_action=ZERO, threshold=0.3, noise=0.5)

    runs = 100
    assert sum(stopped(policy(), LEVEL, run, 0.5) for run in range(runs)) <= int(binom.ppf(0.9999, runs, 2 * LEVEL))
    assert sum(stopped(policy(), LEVEL, run, 2.0) for run in range(runs)) > 0.9 * runs


NOISY = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(TARGETS), noise=10.0)
COINS = sw.ArmsWorld(reward=[0.1, 0.9], cost=[0.3, 0.9])
MISTOLD: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "ten times as noisy": (sw.LCLUCB, {"safe_action": ZERO, "threshold": 0.3, "noise": 1.0}, NOISY),
    "ten times as noisy, mixed": (sw.OPLB, {"safe_action": ZERO, "threshold": 0.3, "noise": 1.0}, NOISY),
    "coins with little noise": (
        sw.OPB,
        {"arms": 2, "safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.3), "threshold": 0.4, "noise": 0.05},
        COINS,
    ),
}


@pytest.mark.parametrize(("kind", "settings", "world"), MISTOLD.values(), ids=MISTOLD)
def test_where_the_noise_is_mistold_the_watch_ends_what_breaks_limits(
    kind: Any, settings: dict[str, Any], world: Any
) -> None:
    """Nothing can be known before anything was seen; after a few rounds no limit is broken any more."""
    plan: dict[str, Any] = {"rounds": 1000, "runs": 200, "record_points": 1, "progress": False}
    blind = sw.simulate(kind(**settings, check_assumptions=False), world, **plan)
    watched = sw.simulate(kind(**settings), world, **plan)
    assert blind.violations.mean() > 30.0
    assert watched.violations.mean() < 1.0
    assert watched.violations.max() < 20
