"""CAPS: whatever a draw from the posterior proposes, if its regret is certified; else the optimistic choice.

Of every action the lowest and the highest plausible mean is known, of the reward and of every cost. Both rules, on rays
and on mixtures, take

    V̄     the largest reward that is plausible: an upper bound on the optimum
    w      = (r⁺ − r⁻) + max_j κ_j (c⁺_j − c⁻_j),  κ_j = (V − r₀⁻)/(τ_j − c₀⁺_j)    how little is known of an action

and play the proposal where V̄ − (its lowest plausible reward) ≤ C w. Otherwise they play what V̄ was found at, cut back
to what is safe, which satisfies it with C = 1 (docs/theory/caps.md). Safety rests on c⁺ alone. ν, C and the largest
mean reward there is stand at the end of the settings (see `layout`).
"""

from stagewise.kernels.bounds import CENTRE, HALF, SAMPLED
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.layout import LIMITS, largest_reward
from stagewise.kernels.promise import capped, ceiling_of, limit_of, safe_cost


@kernel
def lowest(bounds: Floats, action: int) -> float:
    """Return r⁻, the lowest plausible reward of an action."""
    return bounds[0, CENTRE, action] - bounds[0, HALF, action]


@kernel
def highest(settings: Floats, bounds: Floats, action: int) -> float:
    """Return r⁺, the highest plausible reward; a declared bound that the data contradict does not cut it below r⁻."""
    return capped(bounds[0, CENTRE, action] + bounds[0, HALF, action], lowest(bounds, action), largest_reward(settings))


@kernel
def set_prices(layout: Ints, settings: Floats, bounds: Floats, value: float, prices: Floats) -> None:
    """Write κ_j = (V̄ − r₀⁻)/(τ_j − c₀⁺_j)."""
    gain = max(value - lowest(bounds, bounds.shape[2] - 1), 0.0)
    for j in range(layout[LIMITS]):
        prices[j] = gain / (limit_of(layout, settings, j) - safe_cost(layout, settings, bounds, j))


@kernel
def cut_draws(layout: Ints, settings: Floats, bounds: Floats) -> None:
    """Cut every draw at what is certain beforehand: it lies within the bounds already (see `signals.posterior`)."""
    drawn_ = bounds[0, SAMPLED]
    for action in range(drawn_.size):
        drawn_[action] = min(drawn_[action], highest(settings, bounds, action))
    for j in range(layout[LIMITS]):
        drawn_, ceiling = bounds[1 + j, SAMPLED], ceiling_of(layout, settings, j)
        for action in range(drawn_.size):
            drawn_[action] = min(drawn_[action], ceiling)
