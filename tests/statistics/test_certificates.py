"""Certificates where nothing is left to luck: a run is broken exactly as often as an interval fails.

In the tight worlds the only thing offered costs too much, so no slack hides an interval that is too short.
"""

from typing import Any

import numpy as np
import pytest
from tests.statistics.families import arm_policy, linear_policy, linear_world, tight_arms

import stagewise as sw

pytestmark = pytest.mark.compiled

ZERO = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)
RAY = sw.LinearWorld(reward=[0.9], cost=[0.9], actions=sw.RaySet([[1.0]]), noise=1.0)
COIN = sw.ArmsWorld(reward=tight_arms(0, True).truth[0], cost=tight_arms(0, True).truth[1:])


def told(share: float) -> sw.LCLUCB:
    return sw.LCLUCB(
        safe_action=ZERO, threshold=0.6, noise=share, split_delta=False, mean_cost_bound=None, check_assumptions=False
    )


def coins(**settings: Any) -> sw.OPB:
    return arm_policy(tight_arms(0, True), True, split_delta=False, check_assumptions=False, **settings)


def test_a_broken_run_is_one_whose_interval_failed() -> None:
    result = sw.simulate(told(0.6), RAY, rounds=300, runs=200, record_points=1, audit=True)
    assert result.audit is not None
    broken, missed = result.violations > 0, result.audit["missed"][:, 1] > 0
    assert broken.sum() > 10
    assert not np.any(broken & ~missed)
    assert np.array_equal(result.audit["first_violation"] > 0, broken)


@pytest.mark.parametrize(("policy", "world"), [(told(0.6), RAY), (coins(noise=0.2), COIN)], ids=["rays", "arms"])
def test_a_tight_world_refutes_what_is_told_too_little_noise(policy: Any, world: Any) -> None:
    assert sw.certify(policy, world, rounds=300, runs=4000, progress=False).verdict == "refuted"


@pytest.mark.parametrize(("policy", "world"), [(told(1.0), RAY), (coins(), COIN)], ids=["rays", "arms"])
def test_a_tight_world_does_not_refute_an_honest_policy(policy: Any, world: Any) -> None:
    assert sw.certify(policy, world, rounds=300, runs=1000, progress=False).verdict != "refuted"


def drawn(run: int) -> tuple[Any, Any]:
    """Return a policy and a world of the statistics' own family, with one threshold."""
    world = linear_world(run, True)
    policy = linear_policy(
        sw.LCLUCB, world._replace(truth=world.truth[:2], thresholds=world.thresholds[:1], noise=world.noise[:2]), True
    )
    actions = sw.RaySet(world.features)
    return policy, sw.LinearWorld(reward=world.truth[0], cost=world.truth[1], actions=actions, noise=world.noise[:2])


def test_a_family_of_random_worlds_is_supported() -> None:
    certificate = sw.certify(None, drawn, rounds=300, runs=2000, progress=False)
    assert certificate.holds
    assert certificate.content["optimism"] == {"runs": 0, "rounds": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "world"), [(told(1.0), RAY), (coins(), COIN), (coins(interval="kl"), COIN)], ids=["rays", "arms", "kl"]
)
def test_tight_worlds_support_honest_policies(policy: Any, world: Any) -> None:
    certificate = sw.certify(policy, world, rounds=2000, runs=50_000, progress=False)
    print(certificate)  # pytest -rP shows it
    assert certificate.verdict == "supported"
