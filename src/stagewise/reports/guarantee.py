"""What a theorem guarantees: the assumptions of a policy beside the truth of a world, and the regret bound."""

import math
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.policies.arms import OPB
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.policies.policy import NOTHING
from stagewise.policies.settings import parse_mean_cost_bounds
from stagewise.problem.checks import check_per_signal
from stagewise.problem.errors import SentenceCode, StagewiseError
from stagewise.worlds.world import as_world

TOLERANCE = 1e-9


def check_assumptions(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return each assumption with its declared and its true values, and whether it is kept."""
    if getattr(policy, "learns", "") == NOTHING or getattr(policy, "thresholds", None) is None:
        return []
    adapter = as_world(world)
    names = ("reward", *policy.thresholds.names)  # the learned signals
    rows = []
    if adapter.is_builtin and adapter.assumed:  # of custom worlds only the safe action is known
        rows = [*build_noise_rows(policy, adapter, names), *build_size_rows(policy, adapter, names)]
    safe = getattr(policy, "safe_action", None)
    if safe is None:
        return rows
    return rows + (build_round_rows(policy, adapter) if safe.is_per_round else build_safe_rows(policy, adapter))


def build_row(words: str, declared: Any, real: Any, kept: Any = None) -> dict[str, Any]:
    """Return one row of the table; without `kept` it is kept if nothing is larger than declared."""
    kept = np.all(real <= np.asarray(declared) + TOLERANCE) if kept is None else kept
    numbers = [
        [float(f"{value:.12g}") for value in np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist()]
        for values in (declared, real)  # without rounding noise
    ]
    return {"assumption": words, "declared": numbers[0], "real": numbers[1], "kept": bool(kept)}


def build_noise_rows(policy: Any, world: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the assumptions on the noise, or on the range of outcomes."""
    declared, scale = getattr(policy, "noise", None), "the noise is sub-Gaussian with at most this scale"
    if noises := getattr(policy, "noises", {}):  # of costs by name
        of_signal = [names.index(name) for name in noises]
        real = {"bernoulli": np.full(len(names), 0.5), "shrunk": 0.5 * world.noise}.get(world.outcomes, world.noise)
        return [build_row(scale, list(noises.values()), real[of_signal])]
    within = build_row("every outcome lies in [0, 1]", 1.0, 1.0, world.is_bounded)
    if declared is None and world.actions.dimension != 0:  # arms have no features
        return []
    if declared is None and getattr(policy, "interval", "") != "paper":
        return [within]
    scales = check_per_signal(1.0 if declared is None else declared, names, "noise")
    is_binary = world.outcomes == "bernoulli"  # numbers in [0, 1] are ½-sub-Gaussian
    real = np.full(len(names), 0.5) if is_binary else world.noise[: len(names)]
    rows = [build_row(scale, scales, real)]
    return [*rows, within] if getattr(policy, "bounded_outcomes", False) else rows


def build_size_rows(policy: Any, world: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the assumptions on the size of parameters and means."""
    rows, largest = [], world.most[: len(names)]
    if world.norms is not None and hasattr(policy, "norm_bound") and not hasattr(policy, "kernel"):
        bounds, norms = check_per_signal(policy.norm_bound, names, "norm_bound"), world.norms[: len(names)]
        rows.append(build_row("the unknown parameter vectors are at most this long", bounds, norms))
    most = float(getattr(policy, "mean_reward_bound", 1.0))
    rows.append(build_row(f"mean rewards are at most {most:g}", most, largest[0]))
    bounds = parse_mean_cost_bounds(getattr(policy, "mean_cost_bound", None), names[1:])
    if largest.size > 1 and np.isfinite(bounds).any():
        bounded = np.isfinite(bounds)
        rows.append(build_row("mean costs are at most this", bounds[bounded], largest[1:][bounded]))
    return rows


def build_safe_rows(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return the assumptions on the one safe action."""
    safe, limits = policy.safe_action, policy.thresholds
    try:
        real = world.means(safe.features if safe.arm is None else safe.arm)
    except StagewiseError:
        return []
    rows = []
    if safe.reward is not None:
        kept = math.isclose(safe.reward, real[0], rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        rows.append(build_row("the safe action's reward is known", safe.reward, real[0], kept))
    if limits.safe is not None and limits.safe.size:
        costs = real[1 : 1 + limits.safe.size]
        kept = np.allclose(limits.safe, costs, atol=TOLERANCE)
        rows.append(build_row("the safe action's costs are known", limits.safe, costs, kept))
    return rows


def build_round_rows(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return the assumptions on per-round safe actions; of custom worlds nothing is known."""
    limits, m = policy.thresholds, policy.thresholds.values.size
    if not (world.names_safe and world.assumed) or limits.safe is None:
        return []
    least = float(policy.safe_action.reward or 0.0)
    signs = np.concatenate([[-1.0], limits.signs, np.ones(world.costs - m)])
    farthest = signs * world.max_at_safe(signs)
    worth, most = float(farthest[0]), farthest[1 : 1 + m]
    kept = np.all(limits.signs * most <= limits.signs * limits.safe + TOLERANCE)
    words = "every round's safe action costs at most this (at least, where limits are from below)"
    return [
        build_row("every round's safe action is worth at least this", least, worth, worth >= least - TOLERANCE),
        build_row(words, limits.safe, most, kept),
    ]


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
