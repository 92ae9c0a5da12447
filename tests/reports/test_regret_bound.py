"""What a theorem allows: never less than the intervals are long, and more than any honest run loses."""

import math
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.models.intervals import compute_average_interval, compute_kl_interval
from stagewise.reports.guarantee import RegretBound, RegretTheorem, bound_width_sum, compute_regret_bound

ROUNDS = np.array([100, 1000, 3000])
ARMS = sw.ArmsWorld(reward=[0.1, 0.2, 0.4, 0.7], cost=[0.0, 0.4, 0.5, 0.2])
ARM: dict[str, Any] = {"arms": 4, "safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.3}
RAYS = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet([[1.0, 0.0], [0.0, 1.0]]), noise=0.2)
RAY: dict[str, Any] = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": 0.3, "noise": 0.2}


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("policy", "world"),
    [
        (sw.LCLUCB(**RAY), RAYS),
        (sw.LCLUCB(**RAY, radius="paper"), RAYS),
        (sw.ROFUL(**RAY), RAYS),
        (sw.OPLB(**RAY), RAYS),
        (sw.OPLB(**RAY, optimism="directional"), RAYS),
        (sw.OPB(**ARM, interval="hoeffding"), ARMS),
        (sw.OPB(**ARM), ARMS),
        (sw.OPB(**ARM, interval="rates"), ARMS),
        (sw.OPB(**ARM, interval="paper", horizon=3000), ARMS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_run_loses_more(policy: Any, world: Any) -> None:
    bound = compute_regret_bound(policy, world, ROUNDS)
    assert isinstance(bound, RegretBound)
    result = sw.simulate(policy, world, rounds=3000, runs=5, record_points=30)
    assert (result.regret[:, [0, 9, 29]] <= bound.values).all()
    assert np.all(np.diff(bound.values) > 0)


@pytest.mark.parametrize(("more", "ridge"), [({"ridge": 1.0}, 1.0), ({}, 2 * 0.2**2), ({"ridge": 0.9}, 0.9)])
def test_the_bound_of_rays_is_the_corollary(more: Any, ridge: float) -> None:
    bound = compute_regret_bound(sw.LCLUCB(**RAY, **more), RAYS, np.array([1000]))
    growth = 2 * math.log(1 + 1000 / (2 * ridge))
    beta = math.sqrt(0.04 * (growth + 2 * math.log(2 / 0.05)) + ridge)
    widths = math.sqrt(2 * 1000 * growth)
    widths = min(widths / math.sqrt(ridge), widths + growth / (math.log(2) * math.sqrt(ridge)))
    assert isinstance(bound, RegretBound)
    assert bound.values[0] == pytest.approx((2 + 2 / 0.3) * beta * widths)


@pytest.mark.parametrize("ridge", [0.01, 0.1, 0.9, 1.0, 10.0])
def test_no_actions_are_wider_together_than_the_lemma_allows(ridge: float) -> None:
    random, rounds = np.random.default_rng(6), 50
    for greedy in [True, *[False] * 20]:
        gram, total = ridge * np.eye(2), 0.0
        for count in range(1, rounds + 1):
            action = np.linalg.eigh(gram)[1][:, 0] if greedy else random.normal(size=2)  # the least known, or any
            action /= np.linalg.norm(action)
            total += math.sqrt(action @ np.linalg.solve(gram, action))
            gram += np.outer(action, action)
            log_det = float(np.linalg.slogdet(gram / ridge)[1])
            assert total <= bound_width_sum(count, log_det, 1.0 / math.sqrt(ridge)) * (1 + 1e-12)


def test_a_small_ridge_costs_a_constant_and_not_a_factor() -> None:
    count, log_det = 10**8, 40.0
    assert bound_width_sum(count, log_det, 100.0) < 1.1 * bound_width_sum(count, log_det, 1.0)


def test_the_bound_of_arms_is_the_sum_of_their_widths() -> None:
    policy = sw.OPB(**ARM)
    bound = compute_regret_bound(policy, ARMS, np.array([7]))
    half = policy.model.longest_halves(3)
    total = 3 * (half[0] + half[1]) + half[0] + half.max() * math.sqrt(3.5 * math.log(20))
    assert isinstance(bound, RegretBound)
    assert bound.values[0] == pytest.approx((2 + 2 * 0.9 / 0.3) * total)


@pytest.mark.parametrize("interval", ["kl", "rates"])
def test_no_interval_is_longer_than_its_longest_half(interval: str) -> None:
    policy = sw.OPB(**ARM, interval=interval)
    halves, confidence = policy.model.longest_halves(400), policy.model.confidence
    for pulls in (1, 2, 3, 10, 57, 399):
        for mean in np.linspace(0.0, 1.0, 41):
            if interval == "kl":
                low, high = compute_kl_interval(float(pulls), mean, confidence)
            else:
                low, high = compute_average_interval(float(pulls), mean, confidence, confidence)
            assert (high - low) / 2 <= halves[pulls] + 1e-12


@pytest.mark.parametrize(
    ("policy", "world", "code"),
    [
        (sw.SafeLTS(**RAY), RAYS, RegretTheorem.NO_CONSTANTS),
        (sw.DOSLB(**RAY), RAYS, RegretTheorem.NO_CONSTANTS),
        (sw.LCLUCB(**RAY, reward_confidence_scale=1.5), RAYS, RegretTheorem.REWARD_SCALE_TOO_SMALL),
        (
            sw.LCLUCB(**(RAY | {"safe_action": sw.SafeAction(features=[0.1, 0.0])})),
            RAYS,
            RegretTheorem.UNKNOWN_SAFE_ACTION,
        ),
        (sw.OPB(arms=4, safe_action=sw.SafeAction(arm=0), threshold=0.3), ARMS, RegretTheorem.UNKNOWN_SAFE_ACTION),
    ],
    ids=["Safe-LTS", "DOSLB", "scale", "unknown", "unknown arm"],
)
def test_where_there_is_no_theorem_it_says_so(policy: Any, world: Any, code: RegretTheorem) -> None:
    assert compute_regret_bound(policy, world, ROUNDS) is code


@pytest.mark.parametrize(
    ("policy", "world", "failure"),
    [
        (sw.LCLUCB(**RAY), RAYS, 0.05),
        (sw.LCLUCB(**RAY, split_delta=False), RAYS, 0.1),
        (sw.OPLB(**RAY), RAYS, 0.1),
        (sw.OPLB(**RAY, split_delta=False), RAYS, 0.15),
        (sw.OPB(**ARM), ARMS, 0.1),
    ],
)
def test_a_bound_may_fail_when_an_interval_or_a_draw_does(policy: Any, world: Any, failure: float) -> None:
    bound = compute_regret_bound(policy, world, ROUNDS)
    assert isinstance(bound, RegretBound)
    assert bound.failure == pytest.approx(failure)


def test_a_sum_that_no_memory_holds_is_not_reckoned() -> None:
    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.3)
    world = sw.ArmsWorld(reward=[0.1, 0.9], cost=[0.0, 0.5])
    assert isinstance(compute_regret_bound(policy, world, np.array([1000])), RegretBound)
    assert compute_regret_bound(policy, world, np.array([2**32])) is RegretTheorem.TOO_MANY_PULLS
