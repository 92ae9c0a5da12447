"""What a policy was promised, and what that makes of the safe action in a round."""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel

# Why the safe action is played; `Decision.fallback` puts all but DRAWN into words. From DISPUTED on the reason is what
# the data contradict, and of which cost (see `disputed`).
PREFERRED, WARMING, NOTHING_SAFE, NOT_FINITE, DRAWN, TOO_LITTLE, DISPUTED = 1, 2, 3, 4, 5, 13, 16
CEILING, BASELINE, NOISE, UNSAFE = 0, 1, 2, 3  # its bound, its value at the safe action, its noise, x₀ being safe
KINDS = 4


@kernel
def disputed(what: int, constraint: int) -> int:
    """Return the reason that CEILING, BASELINE, NOISE or UNSAFE of a constraint stands for."""
    return DISPUTED + KINDS * constraint + what


@kernel
def capped(high: float, low: float, ceiling: float) -> float:
    """Return an upper bound that no a-priori ceiling cuts below the lower one."""
    return max(min(high, ceiling), low)


class Promise(NamedTuple):
    """Thresholds and scalings. Costs are signed so that less is better."""

    thresholds: Floats  # (m,) τ
    limits: Floats  # (m,) τ less a margin for rounding: what the arithmetic aims at
    ceilings: Floats  # (m,) a-priori bounds on mean costs; infinite: none
    reward_scale: float  # α_r; 0: the theorem's own choice
    cost_scale: float  # α_c ≥ 1
    alarm: float  # log 1/a: what was declared is held against the data at level a; infinite: it is not
    directional: bool  # choose with both bounds optimistic, then come back to what is safe
    inflated: bool  # let the costs' uncertainty raise the hoped reward
    reward_known: bool  # at the safe action
    cost_known: bool
    offers_safe: bool  # false: an unconstrained learner without a safe action
    returns: bool  # false: directional without coming back, which breaks limits (DOSLB)


@kernel
def named_promise(
    numbers: Floats,
    m: int,
    directional: bool,
    inflated: bool,
    reward_known: bool,
    cost_known: bool,
    offers_safe: bool,
    returns: bool = True,
) -> Promise:
    """Name the end of an array of settings: log 1/a, α_r, α_c | thresholds | limits | ceilings."""
    first = numbers.size - 3 * m
    return Promise(
        numbers[first : first + m],
        numbers[first + m : first + 2 * m],
        numbers[first + 2 * m :],
        numbers[first - 2],
        numbers[first - 1],
        numbers[first - 3],
        directional,
        inflated,
        reward_known,
        cost_known,
        offers_safe,
        returns,
    )


class Start(NamedTuple):
    """What the safe action's own bounds allow in a round."""

    certified: bool  # enough slack under every threshold to leave it
    lift: float  # what a unit of cost width adds to the hoped reward, (α_r − 1) β_c


@kernel
def shortfall_of(promise: Promise, reward: float, doubt: float) -> float:
    """Return the largest plausible 1 − r₀."""
    return 1.0 - reward if promise.reward_known else max(0.0, 1.0 - reward + doubt)


@kernel
def slack_of(promise: Promise, constraint: int, cost: float, doubt: float) -> float:
    """Return the smallest plausible τ − c₀."""
    return promise.limits[constraint] - min(cost + promise.cost_scale * doubt, promise.ceilings[constraint])


@kernel
def suffices(promise: Promise, slack: float, doubt: float) -> bool:
    """Say whether the slack is certain enough to leave the safe action: (1 + α_c) h₀ ≤ τ − c₀."""
    return slack > 0.0 and (1.0 + promise.cost_scale) * doubt <= slack


@kernel
def factor_of(promise: Promise, shortfall: float, slack: float) -> float:
    """Return what a unit of a cost's half-width adds to the hoped reward: α_r − 1 = (1 + α_c) (1 − r₀)/(τ − c₀)."""
    if promise.reward_scale > 0.0:
        return promise.reward_scale - 1.0
    return (1.0 + promise.cost_scale) * shortfall / slack


@kernel
def assess(promise: Promise, start: Floats, radii: Floats) -> Start:
    """Weigh the safe action: `start` (m + 3,) is its reward, costs, reward width and cost width.

        lift = max_j (α_r − 1)_j β_j,    certified when (1 + α_c) β ‖x₀‖ ≤ τ − c₀

    with the largest plausible 1 − r₀ and c₀ where they are unknown (docs/theory/unknown-baseline.md).
    """
    m = promise.limits.size
    shortfall = shortfall_of(promise, start[0], radii[0] * start[1 + m])
    certified, lift = True, 0.0
    for j in range(m):
        doubt = radii[1 + j] * start[2 + m]
        slack = slack_of(promise, j, start[1 + j], doubt)
        if suffices(promise, slack, doubt):
            lift = max(lift, factor_of(promise, shortfall, slack) * radii[1 + j])
        else:
            certified = False
    return Start(certified or not promise.returns, lift if promise.inflated else 0.0)
