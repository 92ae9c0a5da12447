"""The assumptions of a policy beside the truth of a world; the guarantee relies on these only."""

import math
from typing import Any

import numpy as np

from stagewise.policies.policy import NOTHING
from stagewise.policies.settings import parse_mean_cost_bounds
from stagewise.problem.checks import check_per_signal
from stagewise.problem.errors import StagewiseError
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
