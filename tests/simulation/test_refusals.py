"""What cannot be simulated is refused in one sentence, by every backend alike, before anything is played."""

from typing import Any

import numpy as np
import pytest
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

SAFE = sw.SafeAction(features=[0.0, 0.0])
LINEAR = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(np.eye(2)), noise=0.1)
FRESH = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RandomRaySet(count=3, dimension=2), noise=0.1)
POLICY = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.1)
SHORT: dict[str, Any] = {"noise": 0.1, "radius": "paper", "action_bound": 0.5}
ARM: dict[str, Any] = {"safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.3}
TWO, THREE = (sw.ArmsWorld(reward=[0.1] * count, cost=[0.0] * count) for count in (2, 3))
COINS = sw.ArmsWorld(reward=[0.1, 0.9], cost=[0.0, 0.2], outcomes="gaussian", noise=1.0)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", None, True, np.nan])
def test_a_seed_is_a_whole_number_of_64_bits(seed: Any) -> None:
    code = ErrorCode.OUT_OF_RANGE if type(seed) is int else ErrorCode.WRONG_TYPE
    with refused(sw.InvalidProblem, code):
        sw.simulate(POLICY, LINEAR, rounds=5, seed=seed)
    with refused(sw.InvalidProblem, code):
        sw.LinearWorldFamily(LINEAR, seed=seed)


@pytest.mark.parametrize("runs", [None, 1.5, "12", [0.5], [np.nan], [-1], [2**32], [None], [[0]]])
def test_runs_have_whole_numbers_of_32_bits(runs: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.WRONG_TYPE):
        sw.simulate(POLICY, LINEAR, rounds=5, runs=runs)


def test_the_largest_numbers_are_played_and_are_no_others() -> None:
    ends = sw.simulate(POLICY, LINEAR, rounds=50, seed=2**64 - 1, runs=[0, 2**32 - 1]).regret[:, -1]
    zero = sw.simulate(POLICY, LINEAR, rounds=50).regret[0, -1]
    assert len({*ends.tolist(), zero}) == 3


@pytest.mark.parametrize("count", [2**32 + 1, 10**15, 2**70, 10**400])
def test_more_than_the_generator_counts_is_refused(count: int) -> None:
    for name, told in (("rounds", {"rounds": count}), ("runs", {"rounds": 5, "runs": count})):
        with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE, name):
            sw.simulate(POLICY, LINEAR, **told)
        with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
            sw.certify(POLICY, LINEAR, **told)
    with refused(sw.InvalidProblem, ErrorCode.OUT_OF_RANGE):
        sw.RandomRaySet(count=count, dimension=2)


@pytest.mark.parametrize(
    "told",
    [
        {"rounds": 5, "runs": 2**32},
        {"rounds": 5, "runs": range(2**32)},
        {"rounds": 5, "runs": range(10**30)},
        {"rounds": 2**32, "record_points": 2**32},
        {"rounds": 10**6, "runs": 10**6, "record_points": 10**6},
    ],
    ids=str,
)
def test_what_memory_cannot_hold_is_refused(told: dict[str, Any]) -> None:
    with refused(sw.InvalidProblem, ErrorCode.TOO_LARGE):
        sw.simulate(POLICY, LINEAR, **told)


@pytest.mark.long
def test_a_certificate_of_more_runs_than_memory_holds_is_refused_where_all_are_played() -> None:
    with refused(sw.InvalidProblem, ErrorCode.TOO_LARGE):
        sw.certify(POLICY, LINEAR, rounds=5, runs=2**32, stop_early=False)
    assert sw.certify(POLICY, LINEAR, rounds=5, runs=2**32, delta=0.9, progress=False).verdict == "supported"


@pytest.mark.parametrize("policy", [None, sw.LCLUCB, "LCLUCB", object()])
@pytest.mark.parametrize("backend", ["auto", "cpu", "python"])
def test_what_is_no_policy_is_refused(policy: Any, backend: str) -> None:
    with refused_with(sw.InvalidProblem, ErrorCode.MISSING_VALUE, ErrorCode.WRONG_TYPE):
        sw.simulate(policy, LINEAR, rounds=5, backend=backend)


@pytest.mark.parametrize("backend", ["cpu", "python"])
@pytest.mark.parametrize(
    ("policy", "world"),
    [(sw.OPB(arms=3, **ARM), TWO), (sw.OPB(arms=2, **ARM), THREE), (sw.UCB(arms=3), TWO), (sw.UCB(arms=2), THREE)],
)
def test_policy_and_world_have_the_same_arms(policy: Any, world: sw.ArmsWorld, backend: str) -> None:
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        sw.simulate(policy, world, rounds=5, backend=backend)


@pytest.mark.parametrize("backend", ["cpu", "python"])
@pytest.mark.parametrize("world", [LINEAR, FRESH], ids=["fixed", "fresh"])
@pytest.mark.parametrize(
    "policy",
    [
        sw.LCLUCB(safe_action=SAFE, threshold=0.3, **SHORT),
        sw.SafeLTS(safe_action=SAFE, threshold=0.3, **SHORT),
        sw.OPLB(safe_action=SAFE, threshold=0.3, **SHORT),
        sw.LinUCB(**SHORT),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_actions_beyond_the_papers_radius_are_refused(policy: Any, world: sw.LinearWorld, backend: str) -> None:
    with refused(sw.InvalidActions, ErrorCode.BOUND_EXCEEDED):
        sw.simulate(policy, world, rounds=5, backend=backend)


@pytest.mark.parametrize("policy", [sw.OPB(arms=2, **ARM), sw.UCB(arms=2)], ids=["OPB", "UCB"])
def test_outcomes_beyond_the_promised_range_are_refused(policy: Any) -> None:
    with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
        sw.simulate(policy, COINS, rounds=50, backend="cpu")
    with refused(sw.InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE):
        sw.simulate(policy, COINS, rounds=50, backend="python")
