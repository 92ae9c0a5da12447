"""How much regret a theorem allows, as a number, where one is known for a policy's own settings."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.opb import OPB
from stagewise.worlds.own import answering

MOST = 10**7  # pulls of an arm that are summed up


class Bound(NamedTuple):
    """A bound on regret after every recorded round, and where it comes from."""

    values: Floats  # (R,)
    theorem: str
    failure: float  # the probability that it allows itself to fail with, intervals included


def regret_bound(policy: Any, world: Any, rounds: Ints) -> Bound | str:
    """Return the bound after these rounds, or why there is none."""
    theorem, place = getattr(policy, "theorem", ""), answering(world)
    if not theorem:
        return f"no theorem with explicit constants is known for {type(policy).__name__}"
    if getattr(policy, "method", "lp") != "lp":
        return "the theorem's regret is then that of the linear program plus the gaps of all rounds"
    if place.knows_points and not world.actions.is_list:
        return "on a convex set the theorem's regret also holds the gaps of all rounds"
    if policy.safe_action.of_the_round:
        return "the theorems with explicit constants are for a safe action that is the same in every round"
    if (policy.safe_action.reward is None and not policy.safe_action.is_origin) or policy.thresholds.safe is None:
        return "the theorems with explicit constants are for a safe action whose reward and costs are known"
    slack = float(np.min(policy.thresholds.signs * (policy.thresholds.values - policy.thresholds.safe)))
    lift = weight(policy, slack)
    if lift is None:
        return "reward_scale is smaller than the theorem asks for"
    if theorem == "arms":
        if not place.known or theorem not in place.theorems or world.most[0] > 1.0:
            return "the theorem is for mean rewards of at most 1"
        if int(rounds[-1]) // policy.arms > MOST:
            return f"the theorem's sum is not reckoned for more than {MOST:,} pulls of an arm"
        return arms_bound(policy, lift, rounds)
    if not place.known or theorem not in place.theorems or world.most[0] > 1.0 + 1e-9:
        return "the theorem is for linear worlds with mean rewards of at most 1"
    return linear_bound(policy, world, lift, rounds, theorem == "mixtures")


def bound_values(policy: Any, world: Any, rounds: Ints) -> Floats:
    """Return the bound after these rounds; NaN: there is none."""
    bound = regret_bound(policy, world, rounds)
    return np.full(rounds.size, math.nan) if isinstance(bound, str) else bound.values


def weight(policy: Any, slack: float) -> float | None:
    """Return what multiplies a cost's half-width in the regret of a round; None: the theorem does not hold.

    Inflated: (1 + α_c)(1 − r₀)/slack, or α_r − 1 where that is larger. Directional: 2α_c (1 − r₀)/slack.
    """
    shortfall, scale = 1.0 - (policy.safe_action.reward or 0.0), float(policy.cost_scale)
    if policy.optimism == "directional":
        return 2.0 * scale * shortfall / slack
    needed: float = (1.0 + scale) * shortfall / slack
    if policy.reward_scale is None:
        return needed
    given = float(policy.reward_scale) - 1.0
    return None if given < needed else given


def linear_bound(policy: LinearPolicy, world: Any, lift: float, rounds: Ints, mixes: bool) -> Bound:
    """Return (2 + lift) β_T Σ‖x‖, with Lemma 6 of docs/theory/rays.md for the sum; a draw from a mixture adds Azuma's.

    Its log det, also in β_T, is at most d log(1 + TL²/dλ).
    """
    d, reach, ridge = int(policy.dimension or 0), longest(world), float(policy.model.ridge)
    values, largest = np.empty(rounds.size), reach / math.sqrt(ridge)  # the norm of an action that nothing is known of
    for place, count in enumerate(rounds.tolist()):
        log_det = d * math.log1p(count * reach**2 / (d * ridge))
        widths = widths_at_most(count, log_det, largest)
        if mixes:
            widths += largest * math.sqrt(0.5 * count * math.log(1.0 / policy.delta))
        values[place] = (2.0 + lift) * float(policy.model.radii(d, log_det, float(count)).max()) * widths
    source = "docs/theory/tractable-oplb.md, the sum over rounds" if mixes else "docs/theory/rays.md, Corollary 7"
    return Bound(values, source, intervals_fail(policy) + (policy.delta if mixes else 0.0))


def widths_at_most(count: int, log_det: float, largest: float) -> float:
    """Return what T norms ‖x_t‖, each at most L/√λ, add up to: min{√(2T max{1, L²/λ} D), √(2TD) + (L/√λ) D/log 2}."""
    root = math.sqrt(2.0 * count * log_det)
    return min(root * max(1.0, largest), root + largest * log_det / math.log(2.0))


def arms_bound(policy: OPB, lift: float, rounds: Ints) -> Bound:
    """Return (2 + lift) (Σ_t h + h₀ √(T/2 log 1/δ)), the sum at its largest: every arm pulled equally often."""
    halves = policy.model.longest_halves(int(rounds[-1]) // policy.arms + 1)
    sums = np.concatenate([[0.0], np.cumsum(halves)])  # of the first pulls of one arm
    azuma = halves.max() * np.sqrt(0.5 * rounds * math.log(1.0 / policy.delta))
    each, rest = np.divmod(rounds, policy.arms)
    total = policy.arms * sums[each] + rest * (sums[each + 1] - sums[each])
    return Bound(
        (2.0 + lift) * (total + azuma), "docs/certify.md, the regret of OPB", intervals_fail(policy) + policy.delta
    )


def intervals_fail(policy: Any) -> float:
    """Return the probability that some interval may fail with: δ, or more where each signal has more than its share."""
    return float(policy.delta) if policy.share_delta else math.fsum(policy.interval_shares)


def longest(world: Any) -> float:
    """Return L, the largest norm of an action."""
    return 1.0 if world.actions.fresh else float(np.linalg.norm(world.actions.features, axis=1).max())
