"""OPLB with the norms of the mixture: from a linear policy's memory to the rules that call a solver, and back."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.bounds import CENTRE, COSTS, HOPED
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.layout import LIMITS, known_actions
from stagewise.kernels.rules.promise import COST_SCALE, terms_of, weigh
from stagewise.models.regression import Belief, believed
from stagewise.policies.compiled import Chosen
from stagewise.policies.mixtures import Blend
from stagewise.rules.branch import best_by_norms
from stagewise.rules.cone import Columns, best_in_cone, dearest
from stagewise.rules.norms import Norms, attained

WEIGH, KNOWN, TERMS = named(weigh), named(known_actions), named(terms_of)


class Listing(NamedTuple):
    """What is believed of the eligible actions and, last, of the safe one."""

    places: Ints  # (N,) where they stand among the K listed; K: the safe action
    features: Floats  # (N, d)
    hoped: Floats  # (N,) optimistic rewards, each action by itself
    costs: Floats  # (m, N) estimates
    clipped: Floats  # (m, N) pessimistic costs, each action by itself, at most their ceilings
    rewards: Floats  # (N,) estimates
    belief: Belief
    limits: Floats  # (m,)
    ceilings: Floats  # (m,)
    cost_scale: float
    lift: float  # what a unit of the costs' norm adds to the hoped reward


def listing_of(seen: Chosen, memory: Floats) -> Listing:
    """Return what a decision by the linear program has seen."""
    layout, settings, area, count = seen.layout, seen.settings, seen.workspace, len(seen.features)
    m, factors = int(layout[LIMITS]), np.empty(layout[LIMITS])
    WEIGH(layout, settings, area.bounds, factors)
    belief = believed(layout, settings, memory)
    places = np.append(np.flatnonzero(seen.eligible) if seen.eligible.size else np.arange(count), count)
    terms = TERMS(layout, settings)
    return Listing(
        places,
        np.vstack([seen.features, KNOWN(layout, settings, memory).safe])[places],
        area.rule[HOPED, places],
        area.bounds[1:, CENTRE, places],
        area.rule[COSTS : COSTS + m, places],
        area.bounds[0, CENTRE, places],
        belief,
        terms.limits,
        terms.ceilings,
        float(settings[COST_SCALE]),
        float(np.max(factors * belief.cost_radii)),
    )


def images_of(features: Floats, norm: Floats) -> Floats:
    """Return Tz (n, N) of the actions' coordinates z; a row of zeros where nothing is learned."""
    images: Floats = norm @ features.T
    return images if len(images) else np.zeros((1, len(features)))


def binding(listing: Listing) -> Flags:
    """Return which constraints bind anything: the a-priori ceiling alone does not keep them."""
    flags: Flags = listing.ceilings > listing.limits
    return flags


def columns_of(listing: Listing, at_ceiling: Ints) -> Columns:
    """Return the actions as columns, and once more those that may be charged their ceiling instead of their bound.

    E c(X) ≤ C(q) + Σ r_i ceiling for every way p = q + r to split a mixture, C being the pessimistic cost.
    """
    bind = binding(listing)
    ceilings = np.tile(listing.ceilings[bind, np.newaxis], at_ceiling.size)
    images = images_of(listing.features, listing.belief.cost_norm)
    return Columns(
        np.column_stack([listing.costs[bind], ceilings]),
        np.column_stack([images, np.zeros((len(images), at_ceiling.size))]),
        listing.cost_scale * listing.belief.cost_radii[bind],
        listing.limits[bind],
        listing.places.size - 1,
    )


def norms_of(listing: Listing, whose: Ints) -> Norms:
    """Return the paper's reward <x_π, θ̂> + β_r ‖x_π‖_r + lift ‖x_π‖_c of the actions `whose` (N,) columns these are.

    Where the two norms differ, one of them is that of all d directions, and whitens the coordinates of both.
    """
    belief, features, rewards = listing.belief, listing.features[whose], listing.rewards[whose]
    if belief.reward_norm is belief.cost_norm:
        whitened = images_of(features, belief.reward_norm)
        return Norms(rewards, whitened, belief.reward_radius + listing.lift, np.zeros((1, len(whitened))), 0.0)
    whole, part, first, second = belief.reward_norm, belief.cost_norm, belief.reward_radius, listing.lift
    if len(whole) < len(part):
        whole, part, first, second = part, whole, second, first
    other: Floats = np.zeros((1, features.shape[1]))
    if len(part):
        other = np.asarray(np.linalg.solve(whole.T, part.T).T, dtype=np.float64)
    return Norms(rewards, images_of(features, whole), first, other, second)


def blended(listing: Listing, columns: Columns, whose: Ints, shares: Floats, hoped: float, bound: float) -> Blend:
    """Return a mixture of columns as one of actions; of the pessimistic costs that hold, the lowest counts.

    These are the costs as the columns split them, those of the mean action, and the mean of those of every action.
    """
    bind = binding(listing)
    probabilities, whole = np.zeros(listing.places[-1] + 1), np.zeros(shares.size)
    np.add.at(whole, whose, shares)
    probabilities[listing.places] = whole[: listing.places.size]
    costs = np.minimum(listing.clipped @ whole[: listing.places.size], listing.ceilings)
    costs[bind] = np.minimum(costs[bind], np.minimum(dearest(columns, shares), dearest(columns, whole)))
    return Blend(probabilities, hoped, costs, max(bound - hoped, 0.0))


def best_blend(listing: Listing) -> Blend:
    """Maximise E hoped(X) subject to the pessimistic costs of the mixture's mean (docs/theory/oplb-in-three-grades.md).

    Charged their ceilings all actions cost the same, so the most hopeful one alone comes into question for that.
    """
    finite = np.isfinite(listing.ceilings).all()
    at_ceiling = np.array([np.argmax(listing.hoped)] if finite else [], dtype=np.int64)
    columns, whose = columns_of(listing, at_ceiling), np.append(np.arange(listing.places.size), at_ceiling)
    best = best_in_cone(columns, listing.hoped[whose])
    return blended(listing, columns, whose, best.shares, best.value, best.bound)


def exact_blend(listing: Listing, tolerance: float, budget: int) -> Blend:
    """Maximise the paper's reward of the mixture's mean subject to the same costs, as far as the budget goes."""
    everyone = columns_of(listing, np.empty(0, dtype=np.int64))
    widths = np.sqrt(np.sum(everyone.images**2, axis=0))
    alone = everyone.costs + everyone.reaches[:, np.newaxis] * widths
    over = np.any(alone > listing.ceilings[binding(listing), np.newaxis], axis=0)
    at_ceiling = np.flatnonzero(over)
    columns, whose = columns_of(listing, at_ceiling), np.append(np.arange(listing.places.size), at_ceiling)
    norms = norms_of(listing, whose)
    best = best_by_norms(columns, listing.hoped[whose], norms, tolerance, budget)
    return blended(listing, columns, whose, best.shares, best.value, best.bound)


def finite(listing: Listing) -> bool:
    """Say whether a solver can be given these numbers."""
    belief = listing.belief
    images = images_of(listing.features, belief.cost_norm)
    parts = (listing.hoped, listing.costs, np.append(belief.cost_radii, belief.reward_radius), images)
    return all(bool(np.isfinite(part).all()) for part in parts)


def graded(listing: Listing, linear: Blend, method: str, tolerance: float, budget: int) -> Blend:
    """Return the best mixture by the method, given the linear program's own, which is safe as well.

    Nothing is solved where no constraint binds, and the solver's mixture is not taken where it is worse. Any mixture's
    hope is at most the largest of a single action, by Jensen's inequality.
    """
    exact, most = method == "exact", float(np.max(listing.hoped))
    hoped = linear.hoped
    if exact:
        everyone = np.arange(listing.places.size)
        hoped = attained(norms_of(listing, everyone), linear.probabilities[listing.places])
    linear = linear._replace(hoped=hoped, gap=max(most - hoped, 0.0))
    if linear.gap == 0.0 or not binding(listing).any() or not finite(listing):
        return linear
    blend = exact_blend(listing, tolerance, budget) if exact else best_blend(listing)
    if blend.hoped >= linear.hoped:
        return blend
    return linear._replace(gap=max(blend.hoped + blend.gap - linear.hoped, 0.0))
