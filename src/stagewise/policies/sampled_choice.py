"""The posterior-sampling proposal of a certified round, recomputed from its workspace."""

from typing import NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.limits import SAFE_ACTION_DRAWN, get_limit_terms
from stagewise.engine.workspace import OPTIMISTIC_REWARDS, SAMPLED, get_decision_views, get_per_limit
from stagewise.policies.compiled_policy import RoundResult
from stagewise.rules.certified import propose_mixture, propose_ray, swap_crosses

GET_DECISION_VIEWS, GET_PER_LIMIT, TERMS = (
    as_python(get_decision_views),
    as_python(get_per_limit),
    as_python(get_limit_terms),
)
PROPOSE_MIXTURE, PROPOSE_RAY, SWAP_CROSSES = as_python(propose_mixture), as_python(propose_ray), as_python(swap_crosses)


class SampledMixture(NamedTuple):
    """The posterior sample of a round with mixtures."""

    rewards: Floats  # (K + 1,) sampled
    scores: Floats | None  # (K + 1,) the objective of the sampled mixture; None: the sampled rewards
    is_played: bool  # otherwise its regret was not certified, and the optimistic mixture is played


class SampledRays(NamedTuple):
    """The posterior sample of a round on rays."""

    rewards: Floats  # (K + 1,) sampled, at the longest step that the sampled costs allow
    proposal: int  # the best of them; -1: the safe action


def get_sampled_mixture(result: RoundResult) -> SampledMixture | None:
    """Return the sample; None: only the safe action is played, and nothing was proposed."""
    if result.code < 0 and result.code != -SAFE_ACTION_DRAWN:
        return None
    area, m, arrays = result.workspace, result.workspace.bounds.shape[0] - 1, (result.layout, result.settings)
    bounds, rule = area.bounds.copy(), area.rule.copy()
    prices, basis = GET_PER_LIMIT(result.layout, area.per_limit.copy())
    shares, indices = np.zeros(m + 2), np.full(m + 2, -1)
    limits = TERMS(*arrays).limits
    PROPOSE_MIXTURE(*arrays, bounds, result.eligible, rule, prices, basis if m > 1 else None, limits, shares, indices)
    written = GET_DECISION_VIEWS(result.layout, result.answer)
    same = np.array_equal(
        compute_action_shares(shares, indices, rule), compute_action_shares(written.shares, written.places, rule)
    )
    return SampledMixture(bounds[0, SAMPLED], rule[OPTIMISTIC_REWARDS] if (prices > 0.0).any() else None, same)


def compute_action_shares(shares: Floats, indices: Ints, rule: Floats) -> Floats:
    """Return the weight of every action (K + 1,), the safe one last."""
    weights = np.zeros(rule.shape[1])
    np.add.at(weights, np.where(indices < 0, weights.size - 1, indices), shares)
    return weights


def get_sampled_rays(result: RoundResult) -> SampledRays:
    """Return the sample of a round that does not play the safe action."""
    bounds, rule = result.workspace.bounds.copy(), result.workspace.rule.copy()
    SWAP_CROSSES(bounds, rule)  # the round has swapped them back
    gains = np.zeros(bounds.shape[2])
    proposal = PROPOSE_RAY(result.layout, result.settings, bounds, result.eligible, gains)
    gains[-1] = 0.0
    return SampledRays(bounds[0, SAMPLED, -1] + gains, int(proposal))
