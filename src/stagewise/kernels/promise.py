"""What a policy was promised, and what that makes of the safe action in a round."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel

# Why the safe action is played; `Decision.fallback` puts all but the last into words.
PREFERRED, WARMING, NOTHING_SAFE, NOT_FINITE, DRAWN = 1, 2, 3, 4, 5


class Promise(NamedTuple):
    """Thresholds and scalings. Costs are signed so that less is better."""

    thresholds: Floats  # (m,) τ
    limits: Floats  # (m,) τ less a margin for rounding: what the arithmetic aims at
    ceilings: Floats  # (m,) a-priori bounds on mean costs; infinite: none
    reward_scale: float  # α_r; 0: the theorem's own choice
    cost_scale: float  # α_c ≥ 1
    directional: bool  # choose with both bounds optimistic, then come back to what is safe
    inflated: bool  # let the costs' uncertainty raise the hoped reward
    reward_known: bool  # at the safe action
    cost_known: bool
    offers_safe: bool  # false: an unconstrained learner without a safe action


@kernel
def named_promise(
    numbers: Floats, m: int, directional: bool, inflated: bool, reward_known: bool, cost_known: bool, offers_safe: bool
) -> Promise:
    """Name the end of an array of settings: α_r, α_c | thresholds | limits | ceilings."""
    first = numbers.size - 3 * m
    return Promise(
        numbers[first : first + m],
        numbers[first + m : first + 2 * m],
        numbers[first + 2 * m :],
        numbers[first - 2],
        numbers[first - 1],
        directional,
        inflated,
        reward_known,
        cost_known,
        offers_safe,
    )


class Start(NamedTuple):
    """What the safe action's own bounds allow in a round."""

    certified: bool  # enough slack under every threshold to leave it
    lift: float  # what a unit of cost width adds to the hoped reward, (α_r − 1) β_c


@kernel
def assess(promise: Promise, start: Floats, radii: Floats) -> Start:
    """Weigh the safe action: `start` (m + 3,) is its reward, costs, reward width and cost width.

        α_r − 1 = (1 + α_c) (1 − r₀)/(τ − c₀),    certified when (1 + α_c) β ‖x₀‖ ≤ τ − c₀

    with the largest plausible 1 − r₀ and c₀ where they are unknown (docs/theory/unknown-baseline.md).
    """
    m = promise.limits.size
    shortfall = 1.0 - start[0]
    if not promise.reward_known:
        shortfall = max(0.0, shortfall + radii[0] * start[1 + m])
    certified, lift, doubled = True, 0.0, 1.0 + promise.cost_scale
    for j in range(m):
        doubt = radii[1 + j] * start[2 + m]
        slack = promise.limits[j] - min(start[1 + j] + promise.cost_scale * doubt, promise.ceilings[j])
        if not (slack > 0.0 and doubled * doubt <= slack):
            certified = False
        elif promise.reward_scale > 0.0:
            lift = max(lift, (promise.reward_scale - 1.0) * radii[1 + j])
        else:
            lift = max(lift, doubled * shortfall / slack * radii[1 + j])
    return Start(certified, lift if promise.inflated else 0.0)
