"""The kernel policy played by hand and in its loop: every run is the same to the bit; one loop is compiled."""

from typing import Any

import numpy as np
import pytest
from tests.agreement.test_backends import play_both
from tests.sizes import in_lanes

import stagewise as sw

pytestmark = pytest.mark.long

RNG = np.random.default_rng(5)
FEATURES = np.vstack([RNG.uniform(size=(9, 2)), [[0.3, 0.3]]])
FEATURES[4] = FEATURES[1]  # listed twice
SAFE = 9
ROUNDS = 100
FIELDS = ("regret", "reward", "cost", "max_cost", "violations", "optimum")


def table(m: int) -> np.ndarray:
    random = np.random.default_rng(1)  # its own, or the truth would depend on which tests ran before
    centres, weights = random.uniform(size=(3, 2)), random.normal(size=(1 + m, 3)) / 3.0
    gaps = np.linalg.norm(FEATURES[:, None] - centres[None], axis=2)
    return weights @ np.exp(-((gaps / 0.5) ** 2) / 2.0).T


def baseline(values: np.ndarray, known: str) -> sw.SafeAction:
    options = {
        "known": {"reward": float(values[0]), "cost": values[1:]},
        "reward unknown": {"cost": values[1:]},
        "cost unknown": {"reward": float(values[0])},
        "unknown": {},
    }
    return sw.SafeAction(features=FEATURES[SAFE], **options[known])


KNOWN = ("known", "reward unknown", "cost unknown", "unknown")
KERNELS: list[dict[str, Any]] = [
    {"kernel": sw.RBF(lengthscale=0.5)},
    {"kernel": sw.RBF(lengthscale=0.5), "optimism": "directional", "novelty_threshold": 0.05},
    {"kernel": sw.Matern(lengthscale=0.5, smoothness=1.5), "max_points": 3},
    {"kernel": sw.LinearKernel()},
]
EVERY = [(m, known, kernel) for m in (1, 3) for known in KNOWN for kernel in KERNELS]
FEW = [(1, "known", 0), (1, "unknown", 1), (3, "reward unknown", 2), (3, "cost unknown", 3), (1, "known", 3)]
SOME = [(m, known, KERNELS[which]) for m, known, which in FEW]


@pytest.mark.parametrize(("m", "known", "settings"), in_lanes(SOME, SOME[:1], EVERY), ids=str)
def test_by_hand_is_the_loop(m: int, known: str, settings: Any) -> None:
    means = table(m)
    world = sw.FiniteSetWorld(features=FEATURES, reward=means[0], cost=means[1:], noise=0.1)
    limits = list(means[1:, SAFE] + 0.4)
    if m == 3:
        limits[2] = sw.AtLeast(float(means[3, SAFE]) - 0.4)
    safe = baseline(means[:, SAFE], known)
    policy = sw.KernelOPLB(
        safe_action=safe, threshold=limits, noise=0.1, norm_bound=1.5, ridge=0.1, mean_cost_bound=None, **settings
    )
    runs = play_both(policy, world, rounds=ROUNDS)
    for field in FIELDS:
        assert np.array_equal(getattr(runs[0], field), getattr(runs[1], field)), field
    assert np.count_nonzero(runs[0].reward != means[0, SAFE]) > 10, "more than the safe action must be played"


def test_stretches_of_a_run_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is stopped and continued inside is the same run."""
    means = table(1)
    world = sw.FiniteSetWorld(features=FEATURES, reward=means[0], cost=means[1], noise=0.1)
    safe = baseline(means[:, SAFE], "known")
    policy = sw.KernelOPLB(
        kernel=sw.RBF(lengthscale=0.5), safe_action=safe, threshold=0.5, noise=0.1, norm_bound=1.5, mean_cost_bound=1.0
    )
    total = sw.simulate(policy, world, rounds=ROUNDS, seed=2, backend="cpu")
    monkeypatch.setattr("stagewise.simulation.run.CHUNK_ROUNDS", 7)
    parts = sw.simulate(policy, world, rounds=ROUNDS, seed=2, backend="cpu")
    assert np.array_equal(total.reward, parts.reward)
