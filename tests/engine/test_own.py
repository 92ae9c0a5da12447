"""Sets of their own for candidates that come back: they hold at all times at once, and are not much wider than that."""

import math

import numpy as np
import pytest
from tests.chance import allowed

from stagewise.models.per_candidate import SCALE, compute_edge, compute_half_width

RUNS, ROUNDS, DELTA = 2000, 2000, 0.1


def missed(shrink: float, noise: float) -> int:
    """Return in how many runs a slope leaves its one-sided set at some time, the half-width being `shrunk`."""
    random = np.random.default_rng(20261116)
    steps = random.choice([0.1, 0.5, 1.0], size=ROUNDS)
    weights = np.cumsum(steps**2)
    sums = np.cumsum(steps * noise * random.normal(size=(RUNS, ROUNDS)), axis=1)
    halves = np.array([compute_half_width(noise, weight, compute_edge(DELTA)) for weight in weights])
    return int(np.any(sums / weights < -shrink * halves, axis=1).sum())


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_a_slope_leaves_its_set_in_no_more_runs_than_promised(noise: float) -> None:
    assert missed(1.0, noise) <= allowed(RUNS, DELTA)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_six_tenths_of_the_set_would_be_too_little(noise: float) -> None:
    assert missed(0.6, noise) > allowed(RUNS, DELTA)


@pytest.mark.parametrize("weight", [0.01, 1.0, 37.0, 1e4, 1e7])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_at_the_edge_the_averaged_likelihood_ratio_is_at_least_one_over_delta(weight: float, delta: float) -> None:
    """2 (1 + n/ℓ)^(−½) exp(z²/2) Φ(z) ≥ 1/δ at the edge z; the closed form gives away at most a factor Φ(z)/Φ(z₀)."""
    noise = 0.3
    scale = SCALE * noise**2
    z = compute_half_width(noise, weight, compute_edge(delta)) * weight / (noise * math.sqrt(weight + scale))
    ratio = 2.0 / math.sqrt(1.0 + weight / scale) * math.exp(0.5 * z * z) * 0.5 * math.erfc(-z / math.sqrt(2.0))
    assert 1.0 - 1e-9 <= ratio * delta <= 2.0 + 1e-9
