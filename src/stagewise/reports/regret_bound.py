"""The regret bound of a theorem, for a policy's settings."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.policies.arms import OPB
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.records.fault import SentenceCode
from stagewise.worlds.world import as_world

MAX_PULLS = 10**7  # pulls of an arm that are summed


class RegretTheorem(SentenceCode):
    """The theorem that bounds a policy's regret, or why there is none: codes, which certificates hold."""

    RAYS = "rays", "docs/theory/rays.md, Corollary 7"
    MIXTURES = "mixtures", "docs/theory/tractable-oplb.md, the sum over rounds"
    ARMS = "arms", "docs/explanation/how-certificates-work.md, the regret of OPB"
    NO_CONSTANTS = "no_constants", "no theorem with explicit constants is known for this policy"
    SOLVER_GAPS = "solver_gaps", "the regret of the theorem is that of the linear program, without the gaps of a solver"
    CONVEX_SET = "convex_set", "on a convex set the regret of the theorem also has the gaps of all rounds"
    PER_ROUND_SAFE_ACTION = "per_round_safe_action", "the theorems need a safe action that is the same in every round"
    UNKNOWN_SAFE_ACTION = "unknown_safe_action", "the theorems need a safe action whose reward and costs are known"
    REWARD_SCALE_TOO_SMALL = "reward_scale_too_small", "reward_confidence_scale is smaller than the theorem needs"
    OTHER_WORLD = "other_world", "the theorem needs a world of its own kind, with mean rewards of at most 1"
    TOO_MANY_PULLS = "too_many_pulls", f"the sum is not computed for more than {MAX_PULLS:,} pulls of an arm"


class RegretBound(NamedTuple):
    """A bound on regret after every recorded round, and where it comes from."""

    values: Floats  # (R,)
    theorem: RegretTheorem
    failure: float  # probability that the bound fails, intervals included


def compute_regret_bound(policy: Any, world: Any, rounds: Ints) -> RegretBound | RegretTheorem:
    """Return the bound after these rounds, or why there is none."""
    theorem, adapter = getattr(policy, "theorem", ""), as_world(world)
    if not theorem:
        return RegretTheorem.NO_CONSTANTS
    if getattr(policy, "method", "lp") != "lp":
        return RegretTheorem.SOLVER_GAPS
    if adapter.has_linear_means and not world.actions.is_list:
        return RegretTheorem.CONVEX_SET
    safe, limits = policy.safe_action, policy.thresholds
    if safe.is_per_round:
        return RegretTheorem.PER_ROUND_SAFE_ACTION
    if (safe.reward is None and not safe.is_origin) or limits.safe is None:
        return RegretTheorem.UNKNOWN_SAFE_ACTION
    lift = compute_cost_weight(policy, float(np.min(limits.signs * (limits.values - limits.safe))))
    if lift is None:
        return RegretTheorem.REWARD_SCALE_TOO_SMALL
    slight = 0.0 if theorem == "arms" else 1e-9
    if not adapter.is_builtin or theorem not in adapter.theorems or world.most[0] > 1.0 + slight:
        return RegretTheorem.OTHER_WORLD
    if theorem != "arms":
        return compute_linear_bound(policy, world, lift, rounds, theorem == "mixtures")
    if int(rounds[-1]) // policy.arms > MAX_PULLS:
        return RegretTheorem.TOO_MANY_PULLS
    return compute_arms_bound(policy, lift, rounds)


def compute_bound_values(policy: Any, world: Any, rounds: Ints) -> Floats:
    """Return the bound after these rounds; NaN: there is none."""
    bound = compute_regret_bound(policy, world, rounds)
    return np.full(rounds.size, math.nan) if isinstance(bound, RegretTheorem) else bound.values


def compute_cost_weight(policy: Any, slack: float) -> float | None:
    """Return the factor of a cost's half-width in the regret of a round; None: the theorem does not apply.

    Inflated: (1 + α_c)(1 − r₀)/slack, or α_r − 1 if that is larger. Directional: 2α_c (1 − r₀)/slack.
    """
    shortfall, scale = 1.0 - (policy.safe_action.reward or 0.0), float(policy.cost_confidence_scale)
    if policy.optimism == "directional":
        return 2.0 * scale * shortfall / slack
    needed: float = (1.0 + scale) * shortfall / slack
    if policy.reward_confidence_scale is None:
        return needed
    given = float(policy.reward_confidence_scale) - 1.0
    return None if given < needed else given


def compute_linear_bound(policy: LinearPolicy, world: Any, lift: float, rounds: Ints, mixes: bool) -> RegretBound:
    """Return (2 + lift) β_T Σ‖x‖, with Lemma 6 of docs/theory/rays.md for the sum; a draw from a mixture adds Azuma's.

    Its log det, also in β_T, is at most d log(1 + TL²/dλ).
    """
    d, reach, ridge = int(policy.dimension or 0), get_max_norm(world), float(policy.model.ridge)
    values, largest = np.empty(rounds.size), reach / math.sqrt(ridge)  # the norm of an unexplored action
    for index, count in enumerate(rounds.tolist()):
        log_det = d * math.log1p(count * reach**2 / (d * ridge))
        widths = bound_width_sum(count, log_det, largest)
        if mixes:
            widths += largest * math.sqrt(0.5 * count * math.log(1.0 / policy.delta))
        values[index] = (2.0 + lift) * float(policy.model.radii(d, log_det, float(count)).max()) * widths
    source = RegretTheorem.MIXTURES if mixes else RegretTheorem.RAYS
    return RegretBound(values, source, get_interval_failure(policy) + (policy.delta if mixes else 0.0))


def bound_width_sum(count: int, log_det: float, largest: float) -> float:
    """Return an upper bound of the sum of T norms ‖x_t‖, each at most L/√λ.

    min{√(2T max{1, L²/λ} D), √(2TD) + (L/√λ) D/log 2}
    """
    root = math.sqrt(2.0 * count * log_det)
    return min(root * max(1.0, largest), root + largest * log_det / math.log(2.0))


def compute_arms_bound(policy: OPB, lift: float, rounds: Ints) -> RegretBound:
    """Return (2 + lift) (Σ_t h + h₀ √(T/2 log 1/δ)), the sum at its largest: every arm pulled equally often."""
    halves = policy.model.longest_halves(int(rounds[-1]) // policy.arms + 1)
    sums = np.concatenate([[0.0], np.cumsum(halves)])  # of the first pulls of one arm
    azuma = halves.max() * np.sqrt(0.5 * rounds * math.log(1.0 / policy.delta))
    each, rest = np.divmod(rounds, policy.arms)
    total = policy.arms * sums[each] + rest * (sums[each + 1] - sums[each])
    return RegretBound(
        (2.0 + lift) * (total + azuma),
        RegretTheorem.ARMS,
        get_interval_failure(policy) + policy.delta,
    )


def get_interval_failure(policy: Any) -> float:
    """Return the probability that some interval fails: δ, or more if `split_delta` is off."""
    return float(policy.delta) if policy.split_delta else math.fsum(policy.interval_shares)


def get_max_norm(world: Any) -> float:
    """Return L, the largest norm of an action."""
    return 1.0 if world.actions.fresh else float(np.linalg.norm(world.actions.features, axis=1).max())
