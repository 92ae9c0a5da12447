"""Custom proposals under CAPS' certificate: a subclass names a candidate, the certificate decides."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, as_python
from stagewise.engine.limits import BOUNDS_NOT_FINITE, CONTRADICTED, SAFE_ACTION_COST_UNCERTAIN, get_limit_terms
from stagewise.engine.pair import tie_floor
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import CENTRE, HALF, OPTIMISTIC_REWARD, SAFE_OPTIMISTIC_REWARD, get_per_limit
from stagewise.policies.compiled_policy import RoundResult
from stagewise.policies.mixture_decision import GET_DECISION_VIEWS
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.records.random_key import RandomKey
from stagewise.rules.certified import certify_mixture, certify_ray, finish_mixture
from stagewise.rules.mixture import mix_back
from stagewise.rules.ray import finish_ray

CERTIFY_RAY, FINISH_RAY, MIX_BACK, TERMS = (
    as_python(certify_ray),
    as_python(finish_ray),
    as_python(mix_back),
    as_python(get_limit_terms),
)
CERTIFY_MIXTURE, FINISH_MIXTURE, GET_PER_LIMIT = (
    as_python(certify_mixture),
    as_python(finish_mixture),
    as_python(get_per_limit),
)


class Intervals(NamedTuple):
    """Confidence intervals of a round's candidates, the safe action last; of costs, less is better."""

    features: Floats  # (K, d) of the candidates
    eligible: Flags  # (K,)
    reward_low: Floats  # (K + 1,)
    reward_high: Floats
    cost_low: Floats  # (m, K + 1) negated where the limit is AtLeast
    cost_high: Floats


def get_intervals(result: RoundResult) -> Intervals:
    """Return the intervals of a round."""
    bounds, count = result.workspace.bounds, len(result.features)
    low, high = bounds[:, CENTRE] - bounds[:, HALF], bounds[:, CENTRE] + bounds[:, HALF]
    eligible = result.eligible.copy() if result.eligible.size else np.ones(count, dtype=np.bool_)
    return Intervals(result.features, eligible, low[0], high[0], low[1:], high[1:])


def is_open_to_proposal(result: RoundResult) -> bool:
    """Return whether a round can play something other than the safe action, so that it needs a proposal."""
    return -result.code not in (SAFE_ACTION_COST_UNCERTAIN, BOUNDS_NOT_FINITE) and result.code > -CONTRADICTED


def check_proposal(proposal: Any, intervals: Intervals) -> int:
    """Return a valid proposal, or raise InvalidProblem."""
    count = len(intervals.features)
    is_integer = isinstance(proposal, int | np.integer) and not isinstance(proposal, bool)
    if not is_integer or not -1 <= proposal < count or (proposal >= 0 and not intervals.eligible[proposal]):
        raise InvalidProblem(
            ErrorCode.INVALID_DECISION,
            "propose returned {proposal}; it must be the index of an eligible candidate, 0 to "
            "{count}, or -1 for the safe action",
            proposal=safe_repr(proposal),
            count=count - 1,
        )
    return int(proposal)


def certify_proposed_ray(result: RoundResult, proposal: int, safe: Floats) -> RoundResult:
    """Return the round with the proposed ray's longest safe step, if certified."""
    area, arrays = result.workspace, (result.layout, result.settings)
    prices = GET_PER_LIMIT(result.layout, area.per_limit).factors
    code = CERTIFY_RAY(*arrays, area.bounds, result.eligible, proposal, area.rule, prices, result.answer)
    action = GET_DECISION_VIEWS(result.layout, result.answer).action
    FINISH_RAY(*arrays, area.bounds, area.rule, code, result.features, safe, result.answer, action)
    return result._replace(code=code)


def certify_proposed_mixture(result: RoundResult, proposal: int, draw: RandomKey) -> RoundResult:
    """Return the round with the largest safe weight of the proposed action, if certified."""
    area, arrays, m = result.workspace, (result.layout, result.settings), result.workspace.bounds.shape[0] - 1
    written, value = GET_DECISION_VIEWS(result.layout, result.answer), float(result.answer[OPTIMISTIC_REWARD])
    shares, indices, (prices, rest) = written.shares, written.places, GET_PER_LIMIT(result.layout, area.per_limit)
    if tie_floor(value) <= float(result.answer[SAFE_OPTIMISTIC_REWARD]):
        return result  # no action can be better than the safe action
    shares[:], indices[:] = 0.0, -1
    shares[0], indices[0] = 1.0, proposal
    MIX_BACK(m, area.rule, TERMS(*arrays).limits, shares, indices)
    basis = rest if m > 1 else None
    code = CERTIFY_MIXTURE(*arrays, area.bounds, result.eligible, value, area.rule, prices, basis, shares, indices)
    lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    return result._replace(code=FINISH_MIXTURE(result.layout, code, area.rule, shares, indices, lottery, result.answer))
