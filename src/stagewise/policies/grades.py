"""OPLB by a cone program: from a linear policy's memory to the rule that calls a solver, and back."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stagewise.kernels.bounds import CENTRE, HOPED, dearest_in
from stagewise.kernels.compile import Flags, Floats, Ints, named
from stagewise.kernels.layout import known_actions
from stagewise.kernels.promise import COST_SCALE, terms_of
from stagewise.models.regression import Belief, believed
from stagewise.policies.compiled import Chosen
from stagewise.policies.mixtures import Blend
from stagewise.rules.cone import Columns, best_in_cone, dearest

KNOWN, TERMS, DEAREST_IN = named(known_actions), named(terms_of), named(dearest_in)


class Listing(NamedTuple):
    """What is believed of the eligible actions and, last, of the safe one."""

    places: Ints  # (N,) where they stand among the K listed; K: the safe action
    features: Floats  # (N, d)
    hoped: Floats  # (N,) optimistic rewards, each action by itself
    costs: Floats  # (m, N) estimates
    clipped: Floats  # (m, N) pessimistic costs, each action by itself, at most their ceilings
    belief: Belief
    limits: Floats  # (m,)
    ceilings: Floats  # (m,)
    cost_scale: float

    @property
    def binding(self) -> Flags:
        """Which constraints bind anything: the a-priori ceiling alone does not keep them."""
        flags: Flags = self.ceilings > self.limits
        return flags

    @property
    def images(self) -> Floats:
        """Tz (n, N) of the actions' coordinates z, whose norm is a cost's width."""
        return images_of(self.features, self.belief.cost_norm)

    @property
    def finite(self) -> bool:
        """Whether a solver can be given these numbers."""
        radii = np.append(self.belief.cost_radii, self.belief.reward_radius)
        return all(bool(np.isfinite(part).all()) for part in (self.hoped, self.costs, radii, self.images))


def listing_of(seen: Chosen, memory: Floats) -> Listing:
    """Return what a decision by the linear program has seen."""
    layout, settings, area, count = seen.layout, seen.settings, seen.workspace, len(seen.features)
    places = np.append(np.flatnonzero(seen.eligible) if seen.eligible.size else np.arange(count), count)
    terms = TERMS(layout, settings)
    return Listing(
        places,
        np.vstack([seen.features, KNOWN(layout, settings, memory).safe])[places],
        area.rule[HOPED, places],
        area.bounds[1:, CENTRE, places],
        DEAREST_IN(layout, area.rule)[:, places],
        believed(layout, settings, memory),
        terms.limits,
        terms.ceilings,
        float(settings[COST_SCALE]),
    )


def images_of(features: Floats, norm: Floats) -> Floats:
    """Return Tz (n, N) of the actions' coordinates z; a row of zeros where nothing is learned."""
    images: Floats = norm @ features.T
    return images if len(images) else np.zeros((1, len(features)))


def columns_of(listing: Listing, at_ceiling: Ints) -> tuple[Columns, Ints]:
    """Return the actions as columns, and once more those that may be charged their ceiling instead of their bound.

        E c(X) ≤ C(q) + Σ r_i ceiling    for every way p = q + r to split a mixture, C being the pessimistic cost

    Beside the columns: whose they are (N + R,).
    """
    bind, images = listing.binding, listing.images
    ceilings = np.tile(listing.ceilings[bind, np.newaxis], at_ceiling.size)
    columns = Columns(
        np.column_stack([listing.costs[bind], ceilings]),
        np.column_stack([images, np.zeros((len(images), at_ceiling.size))]),
        listing.cost_scale * listing.belief.cost_radii[bind],
        listing.limits[bind],
        listing.places.size - 1,
    )
    return columns, np.append(np.arange(listing.places.size), at_ceiling)


def blended(listing: Listing, columns: Columns, whose: Ints, shares: Floats, hoped: float, bound: float) -> Blend:
    """Return a mixture of columns as one of actions; of the pessimistic costs that hold, the lowest counts.

    These are the costs as the columns split them, those of the mean action, and the mean of those of every action.
    """
    bind, count = listing.binding, listing.places.size
    probabilities, whole = np.zeros(listing.places[-1] + 1), np.zeros(shares.size)
    np.add.at(whole, whose, shares)
    probabilities[listing.places] = whole[:count]
    costs = np.minimum(listing.clipped @ whole[:count], listing.ceilings)
    costs[bind] = np.minimum(costs[bind], np.minimum(dearest(columns, shares), dearest(columns, whole)))
    return Blend(probabilities, hoped, costs, max(bound - hoped, 0.0))


def best_blend(listing: Listing) -> Blend:
    """Maximise E hoped(X) subject to the pessimistic costs of the mixture's mean (docs/theory/oplb-in-three-grades.md).

    Charged their ceilings all actions cost the same, so the most hopeful one alone comes into question for that.
    """
    finite = np.isfinite(listing.ceilings).all()
    columns, whose = columns_of(listing, np.array([np.argmax(listing.hoped)] if finite else [], dtype=np.int64))
    best = best_in_cone(columns, listing.hoped[whose])
    return blended(listing, columns, whose, best.shares, best.value, best.bound)


def graded(listing: Listing, linear: Blend, solve: Callable[[Listing], Blend]) -> Blend:
    """Return the best mixture by a solver, given the linear program's own, which is safe as well.

    Nothing is solved where no constraint binds, and the solver's mixture is not taken where it is worse. Any mixture's
    hope is at most the largest of a single action, by Jensen's inequality.
    """
    linear = linear._replace(gap=max(float(np.max(listing.hoped)) - linear.hoped, 0.0))
    if linear.gap == 0.0 or not listing.binding.any() or not listing.finite:
        return linear
    blend = solve(listing)
    if blend.hoped >= linear.hoped:
        return blend
    return linear._replace(gap=max(blend.hoped + blend.gap - linear.hoped, 0.0))
