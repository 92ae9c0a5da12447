"""What a policy was told of its world, beside what is so: a promise rests on these, and on nothing else."""

import math
from typing import Any

import numpy as np

from stagewise.policies.ceilings import bounds_of
from stagewise.policies.learning import NOTHING
from stagewise.problem.checks import one_per
from stagewise.problem.errors import StagewiseError
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.context import ContextWorld
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.table import TableWorld

SLIGHT = 1e-9
OURS = (LinearWorld, ArmsWorld, TableWorld, ContextWorld)


def assumptions(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return each assumption in words, what was declared, what is so in this world, and whether it is kept."""
    if getattr(policy, "learns", "") == NOTHING or getattr(policy, "thresholds", None) is None:
        return []
    ours = type(world) in OURS  # of others nothing but the safe action is known
    names = ("reward", *policy.thresholds.names)  # what the policy learns
    rows = [*noise_rows(policy, world, names), *size_rows(policy, world, names)] if ours else []
    if getattr(policy, "safe_action", None) is not None:
        rows += safe_rows(policy, world)
    return rows


def row(words: str, declared: Any, real: Any, kept: Any) -> dict[str, Any]:
    """Return one line of the table."""
    return {"assumption": words, "declared": listed(declared), "real": listed(real), "kept": bool(kept)}


def at_most(words: str, declared: Any, real: Any) -> dict[str, Any]:
    """Return a line that is kept where nothing is larger than was declared."""
    return row(words, declared, real, np.all(real <= np.asarray(declared) + SLIGHT))


def listed(values: Any) -> list[float]:
    """Return numbers as JSON has them, without what rounding left behind."""
    return [float(f"{value:.12g}") for value in np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist()]


def noise_rows(policy: Any, world: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what is said of the noise, or of the range of outcomes."""
    declared, arms = getattr(policy, "noise", None), isinstance(world, ArmsWorld)
    within = row("every outcome lies in [0, 1]", 1.0, 1.0, world.outcomes in ("bernoulli", "clipped-gaussian"))
    if declared is None and not arms:
        return []
    if declared is None and getattr(policy, "radius", "") != "paper":
        return [within]
    told = one_per(1.0 if declared is None else declared, names, "noise")
    coins = getattr(world, "outcomes", "") == "bernoulli"  # numbers in [0, 1] are ½-sub-Gaussian
    real = np.full(len(names), 0.5) if coins else world.noise[: len(names)]
    rows = [at_most("the noise is sub-Gaussian with at most this scale", told, real)]
    return [*rows, within] if getattr(policy, "unit_outcomes", False) else rows


def size_rows(policy: Any, world: Any, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return what is said of the size of parameters and of means."""
    rows, largest = [], world.most[: len(names)]
    if hasattr(world, "norms") and hasattr(policy, "norm_bound") and not hasattr(policy, "kernel"):
        told, lengths = one_per(policy.norm_bound, names, "norm_bound"), world.norms[: len(names)]
        rows.append(at_most("the unknown parameter vectors are at most this long", told, lengths))
    most = float(getattr(policy, "reward_bound", 1.0))
    rows.append(at_most(f"mean rewards are at most {most:g}", most, largest[0]))
    bounds = bounds_of(getattr(policy, "cost_bound", None), names[1:])
    if largest.size > 1 and np.isfinite(bounds).any():
        bounded = np.isfinite(bounds)
        rows.append(at_most("mean costs are at most this", bounds[bounded], largest[1:][bounded]))
    return rows


def safe_rows(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return what is said of the safe action."""
    safe, limits = policy.safe_action, policy.thresholds
    if safe.of_the_round:
        return round_rows(policy, world)
    try:
        real = world.means(safe.features if safe.arm is None else safe.arm)
    except StagewiseError:
        return []
    rows = []
    if safe.reward is not None:
        kept = math.isclose(safe.reward, real[0], rel_tol=SLIGHT, abs_tol=SLIGHT)
        rows.append(row("the safe action's reward is known", safe.reward, real[0], kept))
    if limits.safe is not None and limits.safe.size:
        costs = real[1 : 1 + limits.safe.size]
        kept = np.allclose(limits.safe, costs, atol=SLIGHT)
        rows.append(row("the safe action's costs are known", limits.safe, costs, kept))
    return rows


def round_rows(policy: Any, world: Any) -> list[dict[str, Any]]:
    """Return what is said of the safe actions of all rounds; of a world of someone's own nothing is known."""
    limits, m = policy.thresholds, policy.thresholds.values.size
    if type(world) not in (LinearWorld, ContextWorld) or not world.actions.names_safe or limits.safe is None:
        return []
    least = float(policy.safe_action.reward or 0.0)
    worth = -float(world.actions.most_at_safe(-world.parameters[:1])[0])
    most = limits.signs * world.actions.most_at_safe(limits.signs[:, None] * world.parameters[1 : 1 + m])
    kept = np.all(limits.signs * most <= limits.signs * limits.safe + SLIGHT)
    return [
        row("every round's safe action is worth at least this", least, worth, worth >= least - SLIGHT),
        row(
            "every round's safe action costs at most this (at least, where limits are from below)",
            limits.safe,
            most,
            kept,
        ),
    ]
