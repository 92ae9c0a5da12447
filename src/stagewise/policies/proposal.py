"""Another heuristic under CAPS' certificate: it names a candidate, and the certificate decides."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.answer import HOPE, SAFE_HOPE
from stagewise.kernels.bounds import CENTRE, HALF, per_limit_in
from stagewise.kernels.compile import Flags, Floats, named
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.promise import DISPUTED, NOT_FINITE, WARMING, terms_of
from stagewise.kernels.rules.certified_mixture import certify_mixture, settle_mixture
from stagewise.kernels.rules.certified_ray import certify_ray
from stagewise.kernels.rules.mixture import mix_back
from stagewise.kernels.rules.ray import settle_ray
from stagewise.kernels.rules.tie import tie_floor
from stagewise.policies.compiled import Chosen
from stagewise.policies.mixtures import WRITTEN_IN
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw

CERTIFY_RAY, SETTLE_RAY, MIX_BACK, TERMS = named(certify_ray), named(settle_ray), named(mix_back), named(terms_of)
CERTIFY_MIXTURE, SETTLE_MIXTURE, PER_LIMIT_IN = named(certify_mixture), named(settle_mixture), named(per_limit_in)


class Intervals(NamedTuple):
    """What a round knows: intervals that hold the true means, the safe action's last; of costs, less is better."""

    features: Floats  # (K, d) of the candidates
    eligible: Flags  # (K,)
    reward_low: Floats  # (K + 1,)
    reward_high: Floats
    cost_low: Floats  # (m, K + 1) negated where the limit is AtLeast
    cost_high: Floats


def intervals_of(seen: Chosen) -> Intervals:
    """Return what a round has seen."""
    bounds, count = seen.workspace.bounds, len(seen.features)
    low, high = bounds[:, CENTRE] - bounds[:, HALF], bounds[:, CENTRE] + bounds[:, HALF]
    eligible = seen.eligible.copy() if seen.eligible.size else np.ones(count, dtype=np.bool_)
    return Intervals(seen.features, eligible, low[0], high[0], low[1:], high[1:])


def undecided(seen: Chosen) -> bool:
    """Say whether the round is one in which a proposal is asked for: the safe action may be left."""
    return -seen.code not in (WARMING, NOT_FINITE) and seen.code > -DISPUTED


def checked(proposal: Any, known: Intervals) -> int:
    """Return the proposal if it can be one."""
    count = len(known.features)
    whole = isinstance(proposal, int | np.integer) and not isinstance(proposal, bool)
    if not whole or not -1 <= proposal < count or (proposal >= 0 and not known.eligible[proposal]):
        raise InvalidProblem(
            f"propose returned {shown(proposal)}; it must be the index of an eligible candidate, 0 to {count - 1}, "
            "or -1 for the safe action"
        )
    return int(proposal)


def on_ray(seen: Chosen, proposal: int, safe: Floats) -> Chosen:
    """Return the round with the proposed ray's longest safe step, if certified."""
    area, told = seen.workspace, (seen.layout, seen.settings)
    prices = PER_LIMIT_IN(seen.layout, area.per_limit).factors
    code = CERTIFY_RAY(*told, area.bounds, seen.eligible, proposal, area.rule, prices, seen.answer)
    action = WRITTEN_IN(seen.layout, seen.answer).action
    SETTLE_RAY(*told, area.bounds, area.rule, code, seen.features, safe, seen.answer, action)
    return seen._replace(code=code)


def in_mixture(seen: Chosen, proposal: int, draw: Draw) -> Chosen:
    """Return the round with as much of the proposed action as is safe beside the safe one, if certified."""
    area, told, m = seen.workspace, (seen.layout, seen.settings), seen.workspace.bounds.shape[0] - 1
    written, value = WRITTEN_IN(seen.layout, seen.answer), float(seen.answer[HOPE])
    shares, places, (prices, rest) = written.shares, written.places, PER_LIMIT_IN(seen.layout, area.per_limit)
    if tie_floor(value) <= float(seen.answer[SAFE_HOPE]):
        return seen  # nothing may be better than the safe action
    shares[:], places[:] = 0.0, -1
    shares[0], places[0] = 1.0, proposal
    MIX_BACK(m, area.rule, TERMS(*told).limits, shares, places)
    basis = rest if m > 1 else None
    code = CERTIFY_MIXTURE(*told, area.bounds, seen.eligible, value, area.rule, prices, basis, shares, places)
    lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    return seen._replace(code=SETTLE_MIXTURE(seen.layout, code, area.rule, shares, places, lottery, seen.answer))
