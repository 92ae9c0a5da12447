"""What posterior sampling proposed in a round that was certified, worked out again from what the round left behind."""

from typing import NamedTuple

import numpy as np

from stagewise.kernels.answer import written_in
from stagewise.kernels.bounds import HOPED, SAMPLED, per_limit_in
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.promise import DRAWN, terms_of
from stagewise.kernels.rules.certified_mixture import propose_mixture
from stagewise.kernels.rules.certified_ray import exchange_crosses, proposed
from stagewise.policies.compiled import Chosen

WRITTEN_IN, PER_LIMIT_IN, TERMS = named(written_in), named(per_limit_in), named(terms_of)
PROPOSE_MIXTURE, PROPOSE_RAY, EXCHANGE = named(propose_mixture), named(proposed), named(exchange_crosses)


class SampledMixture(NamedTuple):
    """The draw of a round that mixes."""

    rewards: Floats  # (K + 1,) sampled
    scores: Floats | None  # (K + 1,) what the sampled mixture maximises; None: the sampled rewards
    is_played: bool  # otherwise its regret was not certified, and the optimistic mixture is played


class SampledRays(NamedTuple):
    """The draw of a round on rays."""

    rewards: Floats  # (K + 1,) sampled, at the longest step that the sampled costs allow
    proposal: int  # the best of them; -1: the safe action


def sampled_mixture(seen: Chosen) -> SampledMixture | None:
    """Return what was sampled; None: the safe action is played alone, and nothing was proposed."""
    if seen.code < 0 and seen.code != -DRAWN:
        return None
    area, m, told = seen.workspace, seen.workspace.bounds.shape[0] - 1, (seen.layout, seen.settings)
    bounds, rule = area.bounds.copy(), area.rule.copy()
    prices, basis = PER_LIMIT_IN(seen.layout, area.per_limit.copy())
    shares, places = np.zeros(m + 2), np.full(m + 2, -1)
    limits = TERMS(*told).limits
    PROPOSE_MIXTURE(*told, bounds, seen.eligible, rule, prices, basis if m > 1 else None, limits, shares, places)
    written = WRITTEN_IN(seen.layout, seen.answer)
    same = np.array_equal(shares_of(shares, places, rule), shares_of(written.shares, written.places, rule))
    return SampledMixture(bounds[0, SAMPLED], rule[HOPED] if (prices > 0.0).any() else None, same)


def shares_of(shares: Floats, places: Ints, rule: Floats) -> Floats:
    """Return the share of every action (K + 1,), the safe one last."""
    weights = np.zeros(rule.shape[1])
    np.add.at(weights, np.where(places < 0, weights.size - 1, places), shares)
    return weights


def sampled_rays(seen: Chosen) -> SampledRays:
    """Return what was sampled in a round that left the safe action."""
    bounds, rule = seen.workspace.bounds.copy(), seen.workspace.rule.copy()
    EXCHANGE(bounds, rule)  # the crosses have their place back by now
    gains = np.zeros(bounds.shape[2])
    proposal = PROPOSE_RAY(seen.layout, seen.settings, bounds, seen.eligible, gains)
    gains[-1] = 0.0
    return SampledRays(bounds[0, SAMPLED, -1] + gains, int(proposal))
