"""OPLB with the norms of the mixture: from a linear policy's memory to the rules that call a solver, and back."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.blend import named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.linear import Mind, named_mind
from stagewise.kernels.promise import assess
from stagewise.kernels.ridge import Regression
from stagewise.kernels.shape import together
from stagewise.kernels.sight import Sight, named_sight
from stagewise.policies.mixtures import Blend
from stagewise.rules.branch import best_by_norms
from stagewise.rules.cone import Columns, best_in_cone, dearest
from stagewise.rules.norms import Norms, attained

MIND, SIGHT, ODDS, ASSESS = named(named_mind), named(named_sight), named(named_odds), named(assess)


class Listing(NamedTuple):
    """What is believed of the eligible actions and, last, of the safe one."""

    places: Ints  # (N,) where they stand among the K listed; K: the safe action
    features: Floats  # (N, d)
    hoped: Floats  # (N,) optimistic rewards, each action by itself
    costs: Floats  # (m, N) estimates
    clipped: Floats  # (m, N) pessimistic costs, each action by itself, at most their ceilings
    rewards: Floats  # (N,) estimates
    mind: Mind
    sight: Sight
    lift: float  # what a unit of the costs' norm adds to the hoped reward


def listing_of(
    features: Floats,
    eligible: Flags,
    flags: Ints,
    numbers: Floats,
    memory: Floats,
    sheet: Floats,
    flat: Floats,
    support: Ints,
) -> Listing:
    """Return what a decision by the linear program has seen."""
    mind, count = MIND(flags, numbers, memory), len(features)
    sight, m = SIGHT(mind.shape, sheet, count), mind.shape.constraints
    odds = ODDS(m, count, flat, support)
    listed = np.flatnonzero(eligible) if eligible.size else np.arange(count)
    return Listing(
        np.append(listed, count),
        np.vstack([features[listed], mind.safe]),
        np.append(odds.hoped[listed], odds.safe_hoped),
        np.column_stack([sight.costs[:, listed], sight.start[1 : 1 + m]]),
        np.column_stack([odds.dearest[:, listed], odds.safe_dearest]),
        np.append(sight.rewards[listed], sight.start[0]),
        mind,
        sight,
        ASSESS(mind.promise, sight.start, sight.radii).lift,
    )


def images_of(features: Floats, model: Regression) -> Floats:
    """Return Tz (n, N) of the actions' coordinates z; a row of zeros where nothing is learned."""
    images = model.ridge.root @ coordinates_of(model, features.shape[1]) @ features.T
    return images if len(images) else np.zeros((1, len(features)))


def coordinates_of(model: Regression, d: int) -> Floats:
    """Return the matrix (n, d) that takes an action to its coordinates z."""
    reflector = model.anchor.reflector
    whole = np.eye(d) if reflector.size == 0 else np.eye(d) - 2.0 * np.outer(reflector, reflector)
    return whole[: len(model.ridge.root)]


def binding(listing: Listing) -> Flags:
    """Return which constraints bind anything: the a-priori ceiling alone does not keep them."""
    flags: Flags = listing.mind.promise.ceilings > listing.mind.promise.limits
    return flags


def columns_of(listing: Listing, at_ceiling: Ints) -> Columns:
    """Return the actions as columns, and once more those that may be charged their ceiling instead of their bound.

    E c(X) ≤ C(q) + Σ r_i ceiling for every way p = q + r to split a mixture, C being the pessimistic cost.
    """
    promise, bind = listing.mind.promise, binding(listing)
    ceilings = np.tile(promise.ceilings[bind, np.newaxis], at_ceiling.size)
    images = images_of(listing.features, listing.mind.costs)
    return Columns(
        np.column_stack([listing.costs[bind], ceilings]),
        np.column_stack([images, np.zeros((len(images), at_ceiling.size))]),
        promise.cost_scale * listing.sight.radii[1:][bind],
        promise.limits[bind],
        listing.places.size - 1,
    )


def norms_of(listing: Listing, whose: Ints) -> Norms:
    """Return the paper's reward <x_π, θ̂> + β_r ‖x_π‖_r + lift ‖x_π‖_c of the actions `whose` (N,) columns these are.

    Where the two norms differ, one of them is that of all d directions, and whitens the coordinates of both.
    """
    mind, beta, features = listing.mind, float(listing.sight.radii[0]), listing.features[whose]
    rewards = listing.rewards[whose]
    if together(mind.shape):
        whitened = images_of(features, mind.reward)
        return Norms(rewards, whitened, beta + listing.lift, np.zeros((1, len(whitened))), 0.0)
    whole, part, first, second = mind.reward, mind.costs, beta, listing.lift
    if mind.shape.reward_known:
        whole, part, first, second = part, whole, second, first
    d = features.shape[1]
    narrow = part.ridge.root @ coordinates_of(part, d)
    other: Floats = np.zeros((1, d))
    if len(narrow):
        other = np.asarray(np.linalg.solve(whole.ridge.root.T, narrow.T).T, dtype=np.float64)
    return Norms(rewards, images_of(features, whole), first, other, second)


def blended(listing: Listing, columns: Columns, whose: Ints, shares: Floats, hoped: float, bound: float) -> Blend:
    """Return a mixture of columns as one of actions; of the pessimistic costs that hold, the lowest counts.

    These are the costs as the columns split them, those of the mean action, and the mean of those of every action.
    """
    promise, bind = listing.mind.promise, binding(listing)
    probabilities, whole = np.zeros(listing.places[-1] + 1), np.zeros(shares.size)
    np.add.at(whole, whose, shares)
    probabilities[listing.places] = whole[: listing.places.size]
    costs = np.minimum(listing.clipped @ whole[: listing.places.size], promise.ceilings)
    costs[bind] = np.minimum(costs[bind], np.minimum(dearest(columns, shares), dearest(columns, whole)))
    return Blend(probabilities, hoped, costs, max(bound - hoped, 0.0))


def best_blend(listing: Listing) -> Blend:
    """Maximise E hoped(X) subject to the pessimistic costs of the mixture's mean (docs/theory/oplb-in-three-grades.md).

    Charged their ceilings all actions cost the same, so the most hopeful one alone comes into question for that.
    """
    finite = np.isfinite(listing.mind.promise.ceilings).all()
    at_ceiling = np.array([np.argmax(listing.hoped)] if finite else [], dtype=np.int64)
    columns, whose = columns_of(listing, at_ceiling), np.append(np.arange(listing.places.size), at_ceiling)
    best = best_in_cone(columns, listing.hoped[whose])
    return blended(listing, columns, whose, best.shares, best.value, best.bound)


def exact_blend(listing: Listing, tolerance: float, budget: int) -> Blend:
    """Maximise the paper's reward of the mixture's mean subject to the same costs, as far as the budget goes."""
    everyone = columns_of(listing, np.empty(0, dtype=np.int64))
    widths = np.sqrt(np.sum(everyone.images**2, axis=0))
    alone = everyone.costs + everyone.reaches[:, np.newaxis] * widths
    over = np.any(alone > listing.mind.promise.ceilings[binding(listing), np.newaxis], axis=0)
    at_ceiling = np.flatnonzero(over)
    columns, whose = columns_of(listing, at_ceiling), np.append(np.arange(listing.places.size), at_ceiling)
    norms = norms_of(listing, whose)
    best = best_by_norms(columns, listing.hoped[whose], norms, tolerance, budget)
    return blended(listing, columns, whose, best.shares, best.value, best.bound)


def finite(listing: Listing) -> bool:
    """Say whether a solver can be given these numbers."""
    parts = (listing.hoped, listing.costs, listing.sight.radii, images_of(listing.features, listing.mind.costs))
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
