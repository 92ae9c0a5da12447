"""The best that a round allows to one who knows the truth: what regret is measured against."""

from stagewise.kernels.blend import Odds, solve
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.ray import safe_step
from stagewise.kernels.world import fill_means


@kernel
def best_on_rays(features: Floats, parameters: Floats, safe: Floats, thresholds: Floats, means: Floats) -> float:
    """Return the largest mean reward on the rays from x₀ under the thresholds; `safe` (1 + m,) are the means there.

    Along a ray everything is affine: the best point is x₀ or the longest feasible step. `means` (1 + m,) is work.
    """
    best = safe[0]
    for ray in range(features.shape[0]):
        fill_means(parameters, features[ray], means)
        step = 1.0
        for j in range(thresholds.size):
            step = min(step, safe_step(means[1 + j] - safe[1 + j], thresholds[j] - safe[1 + j]))
        best = max(best, safe[0] + step * (means[0] - safe[0]))
    return best


@kernel
def best_in_list(features: Floats, parameters: Floats, means: Floats) -> float:
    """Return the largest mean reward among listed actions when nothing limits them."""
    fill_means(parameters, features[0], means)
    best = means[0]
    for action in range(1, features.shape[0]):
        fill_means(parameters, features[action], means)
        best = max(best, means[0])
    return best


@kernel
def best_mixture_of(odds: Odds, thresholds: Floats) -> float:
    """Return the largest expected reward of a mixture under the thresholds; the odds hold the true means."""
    solve(odds, odds.dearest, odds.safe_dearest, thresholds)
    value = 0.0
    for place in range(odds.support.size):
        action = odds.support[place]
        value += odds.shares[place] * (odds.safe_hoped[0] if action < 0 else odds.hoped[action])
    return value
