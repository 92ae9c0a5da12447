"""From a convex set to a decision: the best ray found, played by the same kernels as any ray, with a certified gap."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from stagewise.kernels.bounds import CENTRE, HALF, HOPED, PLAUSIBLE, STEPS
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.promise import COST_SCALE, DISPUTED, NOT_FINITE, WARMING, terms_of, weigh
from stagewise.models.regression import Belief, believed
from stagewise.policies.ceilings import beyond
from stagewise.policies.compiled import Chosen
from stagewise.policies.linear import LinearPolicy, check_scale
from stagewise.policies.policy import State
from stagewise.policies.rays import decision_on_rays
from stagewise.problem.actions import ALL
from stagewise.problem.convex import Convex
from stagewise.problem.errors import InvalidActions
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.rules.climb import ascending, climbed, net
from stagewise.rules.regions import Region, region
from stagewise.rules.relaxation import Hope

WEIGH, TERMS = named(weigh), named(terms_of)
TRADES = (0.25, 0.5, 1.0, 2.0, 4.0)  # λ of the first directions θ̂ − λ μ̂


def decision_in_convex(
    policy: LinearPolicy, actions: Any, directions: int, bound_gap: bool, state: State, draw: Draw
) -> Decision:
    """Return the best point found on a ray from the safe action into the set."""
    safe, placed = policy.safe_action.features, checked(policy, actions)

    def look(targets: Floats) -> Chosen:
        seen = targets.view()
        seen.flags.writeable = False
        return policy.chosen(policy.form, state, seen, ALL, draw)

    def hoped(targets: Floats) -> Floats:
        return look(targets).workspace.rule[HOPED, :-1]

    forms = believed(policy.layout, policy.settings, state.memory)
    target, bound = placed.exits(safe, placed.support(forms.reward[np.newaxis]) - safe), -math.inf
    seen = look(target)
    if seen.code not in (-WARMING, -NOT_FINITE) and seen.code > -DISPUTED:
        regions = list(regions_of(policy, placed, forms, seen))
        relaxed = [part.relaxed() for part in regions] if bound_gap else []
        bound = max((part.bound for part in relaxed), default=math.inf)
        points = [target, first_points(placed, safe, forms, directions), *(part.point[np.newaxis] for part in relaxed)]
        best = climbed(hoped, placed, safe, np.vstack(points), hints_of(placed, safe, forms), bound)

        compared = PLAUSIBLE if policy.optimism == "directional" else STEPS

        def moves(far: Floats) -> Floats:
            step = float(look(far[np.newaxis]).workspace.rule[compared, 0])
            found = [part.ascended(safe, safe + step * (far - safe)) for part in regions]
            return np.array([point for point in found if point is not None]).reshape(-1, safe.size)

        best = ascending(hoped, placed, safe, best, moves, bound)
        seen, target = look(best.target[np.newaxis]), best.target[np.newaxis]
    decision = decision_on_rays(seen, policy.thresholds, draw.round, "direction")
    decision = decision._replace(gap=max(bound - decision.hoped, 0.0))
    return policy.explained(seen, state, decision._with(decision._table))


def checked(policy: LinearPolicy, actions: Any) -> Convex:
    """Return the set in the policy's dimension; every ray starts at the safe action, which must lie in it."""
    placed: Convex = actions.placed(policy.dimension)
    excess = placed.excess(policy.safe_action.features)
    if not placed.contains(policy.safe_action.features):
        raise InvalidActions(
            f"the safe action lies outside the {type(placed).__name__}, by {excess:.3g} of its size; a convex set must "
            "contain it, since every ray starts there"
        )
    check_scale(placed.longest, policy.model.ridge, f"the {type(placed).__name__}", InvalidActions)
    if policy.radius == "paper" and placed.longest > policy.action_bound * (1.0 + 1e-9):
        raise InvalidActions(
            f"the {type(placed).__name__} has actions of norm up to {placed.longest:.6g}, above action_bound "
            f"{policy.action_bound:g}; the radius 'paper' holds only up to it, so raise action_bound or use "
            "radius='joint', which needs none"
        )
    if placed.longest > policy.span:
        raise InvalidActions(beyond(f"an action of the {type(placed).__name__}", placed.longest, policy.span))
    return placed


def first_points(actions: Convex, safe: Floats, forms: Belief, directions: int) -> Floats:
    """Return points of the set to begin with: best for θ̂ − λ μ̂, along the axes of the widths, vertices, and a net."""
    traded = [forms.reward - trade * cost for cost in forms.costs for trade in TRADES]
    _, axes = np.linalg.eigh(forms.reward_norm.T @ forms.reward_norm)
    leading = np.array([*traded, *-forms.costs, *axes.T[::-1], *-axes.T[::-1]])
    spread = net(directions, safe.size, 0) @ actions.spread.T
    points = [actions.support(leading), actions.exits(actions.middle, spread)]
    return np.vstack([*points, *([actions.vertices] if actions.count else [])])


def hints_of(actions: Convex, safe: Floats, forms: Belief) -> Floats:
    """Return directions, as long as the set is wide, in which an optimum may lie.

    Where the set does not bind, optima lie in the span of V θ̂ and V μ̂; where the widths do not matter, in that of
    P θ̂ and P μ̂, for a set like the ellipsoid of shape P.
    """
    square = forms.cost_norm.T @ forms.cost_norm
    square += 1e-9 * (np.trace(square) or 1.0) * np.eye(safe.size)  # in one dimension all may be known
    signals = np.vstack([forms.reward, forms.costs])
    spread = actions.spread
    rows = np.vstack([np.linalg.solve(square, signals.T).T, signals @ spread @ spread.T, actions.middle - safe, safe])
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    hints: Floats = np.linalg.norm(spread, 2) * rows / np.where(sizes > 0.0, sizes, 1.0)
    return hints


def regions_of(policy: LinearPolicy, actions: Convex, forms: Belief, seen: Chosen) -> Iterator[Region]:
    """Yield regions that together hold every point a ray may be played or, where directional, compared at.

    A pessimistic cost is within its limit where its curve is, or where the ceiling keeps it: on the share
    (limit − c₀)/(ceiling − c₀) of every ray. So one region for each such share, and one for the whole set.
    """
    safe, bounds = policy.safe_action.features, seen.workspace.bounds
    _, limits, ceilings = TERMS(policy.layout, policy.settings)
    hope, first, scale = hope_of(policy, forms, seen, limits), bounds[1:, CENTRE, -1], policy.settings[COST_SCALE]
    if policy.optimism == "directional":
        if np.any(bounds[1:, HALF, -1] != 0.0):
            hope = without_curves(hope, region(hope, actions, safe).widest)
        yield region(hope, actions, safe)
        return
    low = np.minimum(first + scale * bounds[1:, HALF, -1], ceilings)
    rises = ceilings - low
    shares = np.divide(limits - low, rises, out=np.ones(limits.size), where=rises > limits - low)
    for share in np.unique(shares[(shares > 0.0) & (shares < 1.0)]):
        yield region(hope.under(shares < share), actions, safe, float(share))
    yield region(hope.under(shares < 1.0), actions, safe)


def hope_of(policy: LinearPolicy, forms: Belief, seen: Chosen, limits: Floats) -> Hope:
    """Return what is maximised, and the limits on the curves of the costs."""
    factors = np.empty(limits.size)
    WEIGH(policy.layout, policy.settings, seen.workspace.bounds, factors)
    lift = float(np.max(factors * forms.cost_radii))
    doubts = policy.settings[COST_SCALE] * forms.cost_radii
    same = forms.reward_norm is forms.cost_norm
    return Hope(
        forms.reward,
        forms.costs,
        (forms.cost_norm,) if same else (forms.reward_norm, forms.cost_norm),
        np.array([forms.reward_radius + lift]) if same else np.array([forms.reward_radius, lift]),
        -doubts if policy.optimism == "directional" else doubts,
        limits,
    )


def without_curves(hope: Hope, widest: float) -> Hope:
    """Return limits on the estimates alone: at most limit + ρ max ‖W x‖ at both ends of a ray, so also between.

    Where the safe cost is unknown, a ray's optimistic cost may rise above the limit and fall below it again; a ray is
    then compared at points that break the curved limit, but not this one.
    """
    return hope._replace(limits=hope.limits - hope.doubts * widest, doubts=np.zeros(hope.doubts.size))
