"""Safety of the kernel policy as a statistic: among many seeded runs, those that ever violate are as few as δ allows.

The signals are random functions of the declared norm, the noise is exactly as declared. In the tight world a run
violates exactly when one interval fails.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.models.space_textbook import matrix
from tests.statistics.counting import DELTA, violating

import stagewise as sw

pytestmark = pytest.mark.compiled

SEED = 20260810


def random_problem(run: int, declared: float = 1.0, **settings: Any) -> tuple[sw.KernelOPLB, sw.FiniteSetWorld]:
    """Draw a world in which what is good tends to cost; the safe action is its cheapest."""
    random = np.random.default_rng([SEED, run])
    kernel: Any = sw.RBF(lengthscale=0.4) if run % 2 else sw.Matern(lengthscale=0.5, smoothness=1.5)
    features, centres = random.uniform(size=(8, 2)), random.uniform(size=(4, 2))
    reward, own = random.normal(size=4), random.normal(size=4)
    weights = np.array([reward, reward + own])
    gram = matrix(kernel, centres, centres)
    weights /= np.sqrt(np.einsum("ki,ij,kj->k", weights, gram, weights))[:, None]
    means = weights @ matrix(kernel, centres, features)
    safe = int(np.argmin(means[1]))
    noise = random.uniform(0.05, 0.5, size=2)
    world = sw.FiniteSetWorld(features=features, reward=means[0], cost=means[1], noise=noise)
    policy = sw.KernelOPLB(
        kernel=kernel,
        safe_action=sw.SafeAction(features=features[safe], reward=float(means[0, safe]), cost=float(means[1, safe])),
        threshold=float(min(means[1, safe] + random.uniform(0.05, 0.5), 0.999)),  # means are at most 1
        noise=declared * noise,
        check_assumptions=declared == 1.0,
        norm_bound=1.0,
        delta=DELTA,
        ridge=0.1,
        **settings,
    )
    return policy, world


def tight_problem(run: int, declared: float = 1.0, **settings: Any) -> tuple[sw.KernelOPLB, sw.FiniteSetWorld]:
    """Return a world whose only other action costs too much: a run violates exactly when that cost's interval fails."""
    kernel, features = sw.RBF(lengthscale=0.5), np.array([[0.0], [1.0]])
    norm = 0.9 / math.sqrt(1.0 - math.exp(-2.0) ** 2)  # of the smallest function that is 0 at x₀ and 0.9 at x₁
    world = sw.FiniteSetWorld(features=features, reward=[0.0, 0.9], cost=[0.0, 0.9], noise=1.0)
    safe = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)
    more = {"split_delta": False, "mean_cost_bound": None, "norm_bound": norm, "noise": declared, "delta": DELTA}
    more["check_assumptions"] = declared == 1.0
    return sw.KernelOPLB(kernel=kernel, safe_action=safe, threshold=0.6, **{**more, **settings}), world


PROMISED: dict[str, Any] = {
    "kernel OPLB": (random_problem, {}),
    "directional": (random_problem, {"optimism": "directional"}),
    "capacity 3": (random_problem, {"max_points": 3}),
    "novelty 0.1": (random_problem, {"novelty_threshold": 0.1}),
    "tight": (tight_problem, {}),
}
OVERCONFIDENT: dict[str, Any] = {
    "told a twentieth of the noise": (random_problem, {"declared": 0.05}),
    "told six tenths, tight": (tight_problem, {"declared": 0.6}),
}


@pytest.mark.parametrize("name", PROMISED)
def test_of_a_hundred_runs_few_violate(name: str) -> None:
    problem, settings = PROMISED[name]
    assert violating(partial(problem, **settings), 100, 300) <= allowed(100, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_of_two_thousand_runs_no_more_violate_than_delta_allows(name: str) -> None:
    problem, settings = PROMISED[name]
    count = violating(partial(problem, **settings), 2000, 2000)
    print(f"{name}: {count} of 2000 runs violate, {allowed(2000, DELTA)} may")  # pytest -rP shows it
    assert count <= allowed(2000, DELTA)


@pytest.mark.parametrize("name", OVERCONFIDENT)
def test_a_policy_that_is_told_too_little_noise_violates_in_too_many_runs(name: str) -> None:
    problem, settings = OVERCONFIDENT[name]
    assert violating(partial(problem, **settings), 100, 300) > allowed(100, DELTA)
