"""OPLB by a second-order cone program."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints, as_python
from stagewise.engine.layout import get_known_actions
from stagewise.engine.limits import COST_SCALE, get_limit_terms
from stagewise.engine.workspace import CENTRE, OPTIMISTIC_REWARDS, get_pessimistic_cost_rows
from stagewise.models.ridge import LinearConfidenceSet, build_confidence_set
from stagewise.policies.compiled_policy import RoundResult
from stagewise.policies.mixture_decision import BoundedMixture
from stagewise.rules.cone_program import Columns, compute_pessimistic_costs, find_best_mixture_in_cone

GET_KNOWN_ACTIONS, TERMS, GET_COST_ROWS = (
    as_python(get_known_actions),
    as_python(get_limit_terms),
    as_python(get_pessimistic_cost_rows),
)


class ActionBounds(NamedTuple):
    """Bounds of the eligible actions and, last, of the safe action."""

    places: Ints  # (N,) their indices in the list of K; K: the safe action
    features: Floats  # (N, d)
    optimistic_reward: Floats  # (N,) optimistic rewards, each action by itself
    costs: Floats  # (m, N) estimates
    clipped: Floats  # (m, N) pessimistic costs, each action by itself, at most their ceilings
    belief: LinearConfidenceSet
    limits: Floats  # (m,)
    ceilings: Floats  # (m,)
    cost_confidence_scale: float

    @property
    def binding(self) -> Flags:
        """Which constraints can bind: those that the a-priori ceiling does not imply."""
        flags: Flags = self.ceilings > self.limits
        return flags

    @property
    def images(self) -> Floats:
        """Tz (n, N) of the actions' coordinates z, whose norm is a cost's width."""
        return compute_images(self.features, self.belief.cost_norm)

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite, so that a solver can be called."""
        radii = np.append(self.belief.cost_radii, self.belief.reward_radius)
        return all(bool(np.isfinite(part).all()) for part in (self.optimistic_reward, self.costs, radii, self.images))


def build_action_bounds(result: RoundResult, memory: Floats) -> ActionBounds:
    """Return the bounds of a round."""
    layout, settings, area, count = result.layout, result.settings, result.workspace, len(result.features)
    indices = np.append(np.flatnonzero(result.eligible) if result.eligible.size else np.arange(count), count)
    terms = TERMS(layout, settings)
    return ActionBounds(
        indices,
        np.vstack([result.features, GET_KNOWN_ACTIONS(layout, settings, memory).safe])[indices],
        area.rule[OPTIMISTIC_REWARDS, indices],
        area.bounds[1:, CENTRE, indices],
        GET_COST_ROWS(layout, area.rule)[:, indices],
        build_confidence_set(layout, settings, memory),
        terms.limits,
        terms.ceilings,
        float(settings[COST_SCALE]),
    )


def compute_images(features: Floats, norm: Floats) -> Floats:
    """Return Tz (n, N) of the actions' coordinates z; a row of zeros where nothing is learned."""
    images: Floats = norm @ features.T
    return images if len(images) else np.zeros((1, len(features)))


def build_columns(listing: ActionBounds, at_ceiling: Ints) -> tuple[Columns, Ints]:
    """Return the actions as columns, and again those that can be charged their ceiling instead of their bound.

        E c(X) ≤ C(q) + Σ r_i ceiling    for every way p = q + r to split a mixture, C being the pessimistic cost

    The second result maps columns to actions (N + R,).
    """
    bind, images = listing.binding, listing.images
    ceilings = np.tile(listing.ceilings[bind, np.newaxis], at_ceiling.size)
    columns = Columns(
        np.column_stack([listing.costs[bind], ceilings]),
        np.column_stack([images, np.zeros((len(images), at_ceiling.size))]),
        listing.cost_confidence_scale * listing.belief.cost_radii[bind],
        listing.limits[bind],
        listing.places.size - 1,
    )
    return columns, np.append(np.arange(listing.places.size), at_ceiling)


def build_mixture(
    listing: ActionBounds, columns: Columns, whose: Ints, shares: Floats, optimistic_reward: float, bound: float
) -> BoundedMixture:
    """Return a mixture of columns as a mixture of actions, with the lowest of its valid pessimistic costs.

    These are the costs of the columns, the cost of the mean action, and the mean of the actions' costs.
    """
    bind, count = listing.binding, listing.places.size
    probabilities, totals = np.zeros(listing.places[-1] + 1), np.zeros(shares.size)
    np.add.at(totals, whose, shares)
    probabilities[listing.places] = totals[:count]
    costs = np.minimum(listing.clipped @ totals[:count], listing.ceilings)
    costs[bind] = np.minimum(
        costs[bind], np.minimum(compute_pessimistic_costs(columns, shares), compute_pessimistic_costs(columns, totals))
    )
    return BoundedMixture(probabilities, optimistic_reward, costs, max(bound - optimistic_reward, 0.0))


def solve_socp(listing: ActionBounds) -> BoundedMixture:
    """Maximise E optimistic_reward(X) subject to the pessimistic costs of the mixture's mean action.

    At their ceilings all actions cost the same, so only the one with the largest optimistic reward can be charged its
    ceiling (docs/theory/oplb-in-three-grades.md).
    """
    finite = np.isfinite(listing.ceilings).all()
    columns, whose = build_columns(
        listing, np.array([np.argmax(listing.optimistic_reward)] if finite else [], dtype=np.int64)
    )
    best = find_best_mixture_in_cone(columns, listing.optimistic_reward[whose])
    return build_mixture(listing, columns, whose, best.shares, best.value, best.bound)


def refine_mixture(
    listing: ActionBounds, linear: BoundedMixture, solve: Callable[[ActionBounds], BoundedMixture]
) -> BoundedMixture:
    """Return the solver's mixture, or the linear program's, which is safe too, where that one is better.

    The solver is not called where no constraint binds. The optimistic reward of a mixture is at most the largest of a
    single action, by Jensen's inequality.
    """
    linear = linear._replace(solver_gap=max(float(np.max(listing.optimistic_reward)) - linear.optimistic_reward, 0.0))
    if linear.solver_gap == 0.0 or not listing.binding.any() or not listing.finite:
        return linear
    blend = solve(listing)
    if blend.optimistic_reward >= linear.optimistic_reward:
        return blend
    return linear._replace(solver_gap=max(blend.optimistic_reward + blend.solver_gap - linear.optimistic_reward, 0.0))
