"""On a machine with a CUDA device: its runs are the CPU's, but for rounding (make test-gpu)."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.engine.pair import TIE
from stagewise.engine.random import philox
from stagewise_reproduction.instances import at_zero, shifted

pytestmark = pytest.mark.gpu

ROUNDS, RUNS = 2_000, 64
TOLERANCE = 1e-9  # of the mean reward and cost of a round, while the decisions are the same
WORLD = shifted(10)
SETTINGS: dict[str, Any] = {"safe_action": at_zero(10), "threshold": 0.5, "noise": 1.0}
SIX = np.random.default_rng(1).normal(size=(6, 4)) / 3.0
OFF = sw.SafeAction(features=[0.1, 0.1, 0.0, 0.1], reward=0.08, cost=0.06)
SMALL = sw.LinearWorld(reward=[0.4, 0.4, 0.5, 0.0], cost=[0.2, 0.2, 0.5, 0.2], actions=sw.RaySet(SIX), noise=0.3)
FRESH = sw.LinearWorld(
    reward=WORLD.parameters[0], cost=WORLD.parameters[1:], actions=sw.RandomRaySet(count=10, dimension=10), noise=1.0
)
ARMS = sw.ArmsWorld(reward=np.linspace(0.0, 0.9, 10), cost=np.linspace(0.0, 0.9, 10) ** 2)
FEW = sw.ArmsWorld(reward=ARMS.table[0], cost=ARMS.table[1], actions=sw.ArmSet(10).only([1, 4, 7]))
SOME = sw.LinearWorld(
    reward=WORLD.parameters[0], cost=WORLD.parameters[1:], actions=WORLD.actions.only([0, 3, 4, 8]), noise=1.0
)
ARM = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
LOGGED = sw.FiniteSetWorld(features=np.linspace(0.0, 1.0, 10)[:, None], reward=ARMS.table[0], cost=ARMS.table[1])
CURVED = sw.KernelOPLB(
    kernel=sw.RBF(lengthscale=0.3),
    safe_action=sw.SafeAction(features=[0.0], reward=0.0, cost=0.0),
    threshold=0.3,
    noise=0.1,
    norm_bound=1.0,
)
TWO = sw.LinearWorld(
    reward=SMALL.parameters[0], cost=[[0.2, 0.2, 0.5, 0.2], [0.4, 0.0, 0.1, 0.3]], actions=sw.FiniteSet(SIX), noise=0.1
)
CASES = {
    "LC-LUCB": (sw.LCLUCB(**SETTINGS), WORLD),
    "LC-LUCB, paper's radius": (sw.LCLUCB(**SETTINGS, radius="paper", mean_cost_bound=None), WORLD),
    "LC-LUCB off the origin": (sw.LCLUCB(safe_action=OFF, threshold=0.3, noise=0.3), SMALL),
    "LC-LUCB, unknown baseline": (
        sw.LCLUCB(safe_action=sw.SafeAction(features=OFF.features), threshold=0.3, noise=0.3),
        SMALL,
    ),
    "ROFUL": (sw.ROFUL(**SETTINGS), WORLD),
    "LinUCB": (sw.LinUCB(**SETTINGS), WORLD),
    "Safe-LTS": (sw.SafeLTS(**SETTINGS), WORLD),
    "CAPS": (sw.SafePosteriorSampling(**SETTINGS), WORLD),
    "CAPS, fresh rays": (sw.SafePosteriorSampling(**SETTINGS), FRESH),
    "CAPS, unknown baseline": (
        sw.SafePosteriorSampling(safe_action=sw.SafeAction(features=OFF.features), threshold=0.3, noise=0.3),
        SMALL,
    ),
    "CAPS, mixtures": (sw.SafePosteriorSampling(**SETTINGS, mixtures=True), WORLD),
    "LC-LUCB, fresh rays": (sw.LCLUCB(**SETTINGS), FRESH),
    "OPLB": (sw.OPLB(**SETTINGS), WORLD),
    "OPB": (sw.OPB(arms=10, safe_action=ARM, threshold=0.3, interval="hoeffding"), ARMS),
    "OPB, kl": (sw.OPB(arms=10, safe_action=ARM, threshold=0.3, interval="kl"), ARMS),
    "LC-LUCB, some rays": (sw.LCLUCB(**SETTINGS), SOME),
    "OPLB, some rays": (sw.OPLB(**SETTINGS), SOME),
    "OPB, some arms": (sw.OPB(arms=10, safe_action=ARM, threshold=0.3, interval="hoeffding"), FEW),
    "OPLB, two limits": (
        sw.OPLB(safe_action=sw.SafeAction(features=np.zeros(4)), threshold=[0.2, 0.2], noise=0.1),
        TWO,
    ),
    "DOSLB": (sw.DOSLB(**SETTINGS), WORLD),
    "kernel OPLB": (CURVED, LOGGED),
    "always safe": (sw.AlwaysSafe(safe_action=at_zero(10), threshold=0.5), WORLD),
    "UCB": (sw.UCB(arms=10, safe_action=ARM, threshold=0.3), ARMS),
}


def both(name: str, record: int) -> tuple[sw.Result, sw.Result]:
    policy, world = CASES[name]
    settings: dict[str, Any] = {"rounds": ROUNDS, "runs": RUNS, "seed": 5, "record_points": record, "progress": False}
    return sw.simulate(policy, world, backend="cuda", **settings), sw.simulate(policy, world, backend="cpu", **settings)


@pytest.mark.parametrize("name", CASES)
def test_runs_are_the_cpus_until_a_near_tie(name: str) -> None:
    """Every round of every run agrees, or the first that does not was a near-tie between two candidates."""
    device, host = both(name, ROUNDS)
    difference = (np.abs(device.reward - host.reward) > TOLERANCE) | (
        np.abs(device.cost - host.cost).max(axis=2) > TOLERANCE
    )
    for run in np.flatnonzero(difference.any(axis=1)):
        assert near_tie(name, int(run), int(np.argmax(difference[run])))
    assert difference.any(axis=1).mean() < 0.1
    same = ~difference.any(axis=1)
    np.testing.assert_allclose(device.regret[same], host.regret[same], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(device.max_cost[same], host.max_cost[same], atol=TOLERANCE)
    assert np.array_equal(device.violations[same], host.violations[same])


def near_tie(name: str, run: int, round_: int) -> bool:
    """Say whether the two best candidates of a round are as good as equal, in the run played by hand."""
    policy, world = CASES[name]
    state = policy.start()
    for t in range(round_):
        draw = sw.RandomKey(5, run, t)
        decision = policy.decide(state, world.actions_in(draw), draw)
        state = policy.learn(state, decision, world.outcome(decision.action, draw))
    rows = (
        policy.decide(state, world.actions_in(sw.RandomKey(5, run, round_)), sw.RandomKey(5, run, round_))._table().rows
    )
    first, second = sorted((row.optimistic_reward for row in rows), reverse=True)[:2]
    return bool(first - second <= 10.0 * TIE * abs(first))


@pytest.mark.parametrize("name", CASES)
def test_audits_count_what_the_cpu_counts(name: str) -> None:
    """First violations, misses, lost hopes and settling rounds, in runs whose decisions are the CPU's."""
    policy, world = CASES[name]
    settings: dict[str, Any] = {
        "rounds": 300,
        "runs": 64,
        "seed": 6,
        "record_points": 300,
        "progress": False,
        "audit": True,
    }
    device, host = (sw.simulate(policy, world, backend=backend, **settings) for backend in ("cuda", "cpu"))
    same = (np.abs(device.reward - host.reward) <= TOLERANCE).all(axis=1)
    assert same.mean() > 0.9
    assert device.audit is not None
    assert host.audit is not None
    for column in ("first_violation", "optimism_failures", "first_near_optimal_round", "missed"):
        assert np.array_equal(device.audit[column][same], host.audit[column][same]), column


def test_the_random_words_are_the_cpus() -> None:
    from numba import cuda

    @cuda.jit
    def fill(words: Any) -> None:
        index = cuda.grid(1)
        if index < words.shape[0]:
            first, second, third, fourth = philox(index, 1, 2, 3, 4, 5)
            words[index, 0], words[index, 1], words[index, 2], words[index, 3] = first, second, third, fourth

    device = cuda.to_device(np.zeros((1000, 4), dtype=np.int64))
    fill[128, 256](device)  # with fewer blocks Numba warns
    assert np.array_equal(device.copy_to_host(), [philox(i, 1, 2, 3, 4, 5) for i in range(1000)])


def test_a_batch_is_the_same_in_any_order_and_company() -> None:
    policy, world = CASES["LC-LUCB"]
    settings: dict[str, Any] = {"rounds": 500, "seed": 5, "record_points": 7, "backend": "cuda"}
    total = sw.simulate(policy, world, runs=300, **settings)
    some = sw.simulate(policy, world, runs=[250, 3, 77], **settings)
    assert np.array_equal(some.regret, total.regret[[250, 3, 77]])
