"""CAPS: play the posterior sample's proposal if its regret is certified; else the optimistic choice.

The lowest and the highest plausible mean of the reward and of every cost are known for every action. On rays and on
mixtures, the rule computes

    V̄     the largest plausible reward: an upper bound on the optimum
    w      = (r⁺ − r⁻) + max_j κ_j (c⁺_j − c⁻_j),  κ_j = (V̄ − r₀⁻)/(τ_j − c₀⁺_j)    the uncertainty of an action

and plays the proposal where V̄ − (its lowest plausible reward) ≤ C w. Otherwise it plays the choice that attains V̄,
mixed back to safety, which satisfies this with C = 1 (docs/theory/caps.md). Safety depends on c⁺ alone. ν, C and the
largest possible mean reward are at the end of the settings (see `layout`).
"""

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.constraints import clip_upper_bound, compute_safe_cost, get_ceiling, get_limit
from stagewise.kernels.layout import LIMITS, get_largest_reward


@kernel
def compute_lowest_reward(bounds: Floats, action: int) -> float:
    """Return r⁻, the lowest plausible reward of an action."""
    return bounds[0, CENTRE, action] - bounds[0, HALF, action]


@kernel
def compute_highest_reward(settings: Floats, bounds: Floats, action: int) -> float:
    """Return r⁺, the highest plausible reward; a declared bound that the data contradict does not clip it below r⁻."""
    return clip_upper_bound(
        bounds[0, CENTRE, action] + bounds[0, HALF, action],
        compute_lowest_reward(bounds, action),
        get_largest_reward(settings),
    )


@kernel
def fill_prices(layout: Ints, settings: Floats, bounds: Floats, value: float, prices: Floats) -> None:
    """Write κ_j = (V̄ − r₀⁻)/(τ_j − c₀⁺_j)."""
    gain = max(value - compute_lowest_reward(bounds, bounds.shape[2] - 1), 0.0)
    for j in range(layout[LIMITS]):
        prices[j] = gain / (get_limit(layout, settings, j) - compute_safe_cost(layout, settings, bounds, j))


@kernel
def clip_draws(layout: Ints, settings: Floats, bounds: Floats) -> None:
    """Clip every draw at its a-priori bound; it lies within the confidence bounds already (see `models.posterior`)."""
    drawn = bounds[0, SAMPLED]
    for action in range(drawn.size):
        drawn[action] = min(drawn[action], compute_highest_reward(settings, bounds, action))
    for j in range(layout[LIMITS]):
        drawn, ceiling = bounds[1 + j, SAMPLED], get_ceiling(layout, settings, j)
        for action in range(drawn.size):
            drawn[action] = min(drawn[action], ceiling)
