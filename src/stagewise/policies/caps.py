"""CAPS: certified posterior sampling, on rays or on mixtures, and its rare costs."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, as_python
from stagewise.engine.model import Rule
from stagewise.engine.pair import tie_floor
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    CONTRADICTED,
    HALF,
    OPTIMISTIC_REWARD,
    SAFE_ACTION_COST_UNCERTAIN,
    SAFE_OPTIMISTIC_REWARD,
)
from stagewise.models.rare_events import RareEventsModel
from stagewise.models.ridge import LinearModel
from stagewise.policies.decisions import (
    GET_PER_LIMIT,
    PROPOSED,
    PROPOSED_RAY,
    TERMS,
    attach_round,
    build_mixture_decision,
    build_ray_decision,
    copy_action,
    parse_listed_actions,
    parse_rays,
)
from stagewise.policies.linear_policy import (
    COST_SHARE,
    OTHER_SHARE,
    REWARD_SHARE,
    UPPER_SHARE,
    LinearPolicy,
    compute_ridge,
)
from stagewise.policies.policy import PolicyState, check_unit_range
from stagewise.policies.rounds import GET_DECISION_VIEWS, RoundResult
from stagewise.policies.settings import (
    CERTIFICATE,
    Optimism,
    check_safe_range,
    compute_ceilings,
    compute_certificate_numbers,
    parse_safe_action,
    set_derived,
)
from stagewise.problem.actions import Listed
from stagewise.problem.checks import check_bool, check_integer_at_least
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.certified import CERTIFIED_MIXTURE, CERTIFIED_RAY, certify_mixture, certify_ray, finish_mixture
from stagewise.rules.mixture import mix_back
from stagewise.rules.ray import finish_ray


def check_blocks(blocks: int, mixtures: bool, rare: bool) -> None:
    """Raise InvalidProblem for settings that conflict with rare costs."""
    if rare and not mixtures:
        remedy = "set mixtures=True, since bounds of rare costs need listed actions that can be mixed"
        raise InvalidProblem.conflict("rare_costs", True, "mixtures is False", remedy)
    if blocks != 1 and not rare:
        raise InvalidProblem.unused("blocks", blocks, "only rare_costs uses blocks")


def check_one_block(features: Floats, blocks: int, what: str, error: type[StagewiseError]) -> None:
    """Raise an error for actions (K, d) with features in more than one block."""
    several = features.reshape(len(features), blocks, -1).any(axis=2).sum(axis=1) > 1
    if several.any():
        template = (
            "{what} {several} has features in more than one of the {blocks} blocks; each block has sets of "
            "its own, so leave blocks out where an action needs several"
        )
        raise error(ErrorCode.UNSUPPORTED_ACTIONS, template, what=what, several=several.argmax(), blocks=blocks)


def add_rare_costs(
    model: LinearModel, thresholds: Thresholds, blocks: int, ceilings: Floats, share: float
) -> RareEventsModel:
    """Return the model with rare costs, whose confidence sets have this share of δ over all blocks."""
    d, m = model.safe.size, thresholds.values.size
    if (thresholds.signs < 0.0).any():
        remedy = "count the opposite event, since it needs upper limits"
        raise InvalidProblem.conflict("rare_costs", True, "a threshold is a lower limit", remedy)
    if d % blocks:
        remedy = "choose a divisor, since all blocks have equal length"
        raise InvalidProblem.conflict("blocks", blocks, f"there are {d} features", remedy)
    check_one_block(model.safe[np.newaxis], blocks, "safe action", InvalidProblem)
    confidence = np.array([model.confidence[0], *np.full(m, -np.log(share / (m * blocks)))])
    guesses = np.clip(thresholds.values, 1e-6, 0.5)
    settings = {**vars(model), "confidence": confidence}
    return RareEventsModel(**settings, blocks=blocks, guesses=guesses, ceilings=ceilings)


CERTIFY_RAY, FINISH_RAY, MIX_BACK = as_python(certify_ray), as_python(finish_ray), as_python(mix_back)
CERTIFY_MIXTURE, FINISH_MIXTURE = as_python(certify_mixture), as_python(finish_mixture)
RARE_SHARE = COST_SHARE + UPPER_SHARE  # of rare costs, which have one family of confidence sets


class Intervals(NamedTuple):
    """Confidence intervals of a round's candidates, the safe action last; of costs, less is better."""

    features: Floats  # (K, d) of the candidates
    eligible: Flags  # (K,)
    reward_low: Floats  # (K + 1,)
    reward_high: Floats
    cost_low: Floats  # (m, K + 1) negated where the limit is AtLeast
    cost_high: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class SafePosteriorSampling(LinearPolicy):
    """Certified posterior sampling: with probability 1 − δ the expected cost of every round is within its limit.

    A sample from N(θ̂, ν² R² V⁻¹) of every signal proposes a ray. Its longest pessimistically safe step is played if
    the data certify that its regret is at most C times its uncertainty; otherwise the optimistic ray's step is played.
    With `mixtures` the policy samples from mixtures of the listed actions instead (docs/theory/caps.md). Candidates
    that recur have confidence sets of their own beside the ellipsoid, so that the bounds of actions that are played
    often do not depend on the dimension.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = SafePosteriorSampling(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> decision = policy.decide(policy.start(), np.eye(2))
        >>> decision.action_index, round(decision.step_size, 6)
        (0, 0.5)
    """

    posterior_scale: float = 0.7
    """ν: the scale of posterior samples, in posterior standard deviations; 0: greedy."""
    max_regret_ratio: float = 5.0
    """C ≥ 1: the largest certified regret of a proposal, in units of its uncertainty."""
    mean_reward_bound: float = 1.0
    """An upper bound on all mean rewards."""
    mixtures: bool = False
    """Sample from mixtures of the listed actions instead of playing points on rays; limits hold for the mixture."""
    bounded_outcomes: bool = False
    """Every outcome lies in [0, 1], as clicks do; rare outcomes are then learned faster."""
    rare_costs: bool = False
    """Costs lie in [0, 1] and are rarely above 0, as complaints are; for features that do not recur."""
    blocks: int = 1
    """With `rare_costs`: the number of feature blocks of equal length; an action uses one (template × user)."""
    optimism: Optimism = field(init=False, default="inflated")
    reward_confidence_scale: float | None = field(init=False, default=None)
    cost_confidence_scale: float = field(init=False, default=1.0)
    split_delta: bool = field(init=False, default=True)
    per_action_bounds: bool = field(init=False, default=True)

    rule: ClassVar[Rule] = CERTIFIED_RAY

    @property
    def switches(self) -> int:
        return CERTIFICATE

    def __post_init__(self) -> None:
        check_bool(self.mixtures, "mixtures")
        if check_bool(self.bounded_outcomes, "bounded_outcomes") and parse_safe_action(self.safe_action).is_per_round:
            fact, remedy = "every round names its own safe action", "leave it out, since it needs candidates that recur"
            raise InvalidProblem.conflict("bounded_outcomes", True, fact, remedy)
        compute_certificate_numbers(self, None)
        check_bool(self.rare_costs, "rare_costs")
        check_blocks(check_integer_at_least(self.blocks, "blocks", 1), self.mixtures, self.rare_costs)
        set_derived(self, mixes=self.mixtures, rule=CERTIFIED_MIXTURE if self.mixtures else CERTIFIED_RAY)
        super().__post_init__()

    def last_numbers(self, model: LinearModel) -> list[float]:
        return compute_certificate_numbers(self, self.safe_action.reward if model.reward is None else model.reward)

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        if self.bounded_outcomes:
            check_safe_range(safe, thresholds, "rescale, or leave bounded_outcomes out")
        model = super().build_model(safe, thresholds)
        if not self.rare_costs:
            return model
        ridge = compute_ridge(self.ridge, model.safe.size, model.noise[0], model.norm_bound[0])  # of the reward alone
        ceilings, share = compute_ceilings(thresholds, self.mean_cost_bound), RARE_SHARE * float(self.delta)
        return add_rare_costs(replace(model, ridge=ridge), thresholds, self.blocks, ceilings, share)

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        if not self.rare_costs:
            return super().interval_shares
        return (delta * (REWARD_SHARE + 2.0 * OTHER_SHARE / (m + 2)), *([delta * RARE_SHARE / m] * m))

    @property
    def is_count_based(self) -> bool:
        """Whether per-candidate sets use counts; `rare_costs` does not apply to the reward."""
        return self.bounded_outcomes

    @property
    def why_unit_range(self) -> str:  # type: ignore[override]
        return "bounded_outcomes needs that range, so rescale or leave it out" if self.bounded_outcomes else ""

    @property
    def requires_unit_range(self) -> bool:
        """Whether outcomes, or those of the costs, must lie in [0, 1]."""
        return self.bounded_outcomes or self.rare_costs

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.rare_costs and not self.bounded_outcomes:
            inside = np.array([0.0, *values[1:]])
            check_unit_range(inside, self.thresholds, "rare_costs needs that range, so rescale or leave it out")
        return values

    def check_actions(self, listed: Listed) -> Listed:
        super().check_actions(listed)
        if self.blocks > 1:
            check_one_block(listed.features, self.blocks, "action", InvalidActions)
        return listed

    def propose(self, intervals: Intervals, draw: RandomKey) -> int | None:
        """Propose a candidate to play if its regret is certified; for subclasses.

        Limits and the regret bound hold for every proposal (docs/how-to/extend.md). On a ray the longest safe step is
        played; in a mixture the largest safe weight beside the safe action.

        Args:
            intervals: Confidence intervals of the candidates in this round.
            draw: The source of the round's random numbers.

        Returns:
            The index of a candidate, -1 for the safe action, or None for the posterior sample's own proposal.
        """
        return None

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        listed = parse_listed_actions(actions) if self.mixtures else parse_rays(actions)
        of_round = self.check_offered(listed)
        arrays = None if of_round is None else self.get_round_arrays(of_round)
        result = self.rounds.play(state.memory, listed.features, listed.eligible, draw, arrays)
        safe: Any = self.safe_action.features if of_round is None else of_round.features
        proposes = type(self).propose is not SafePosteriorSampling.propose
        if proposes:
            result = self.apply_proposal(result, draw, safe)
        if self.mixtures:
            action = copy_action(listed.features[result.code] if result.code >= 0 else safe)
            why = PROPOSED if proposes else None
            decision = build_mixture_decision(result, action, self.thresholds, draw.round, why=why)
        else:
            why = PROPOSED_RAY if proposes else None
            decision = build_ray_decision(result, self.thresholds, draw.round, why=why)
        return attach_round(decision, result, state.memory, self.thresholds, of_round)

    def apply_proposal(self, result: RoundResult, draw: RandomKey, safe: Floats) -> RoundResult:
        """Return the round with the subclass's proposal, if it makes one; `safe` is the safe action."""
        if -result.code in (SAFE_ACTION_COST_UNCERTAIN, BOUNDS_NOT_FINITE) or result.code <= -CONTRADICTED:
            return result  # only the safe action can be played
        intervals, count = get_intervals(result), len(result.features)
        proposal = self.propose(intervals, draw)
        if proposal is None:
            return result
        is_integer = isinstance(proposal, int | np.integer) and not isinstance(proposal, bool)
        if not is_integer or not -1 <= proposal < count or (proposal >= 0 and not intervals.eligible[proposal]):
            template = (
                "propose returned {proposal}; it must be the index of an eligible candidate, 0 to "
                "{count}, or -1 for the safe action"
            )
            raise InvalidProblem(ErrorCode.INVALID_DECISION, template, proposal=safe_repr(proposal), count=count - 1)
        certify = certify_proposed_mixture if self.mixtures else certify_proposed_ray
        return certify(result, int(proposal), draw, safe)


def get_intervals(result: RoundResult) -> Intervals:
    bounds, count = result.workspace.bounds, len(result.features)
    low, high = bounds[:, CENTRE] - bounds[:, HALF], bounds[:, CENTRE] + bounds[:, HALF]
    eligible = result.eligible.copy() if result.eligible.size else np.ones(count, dtype=np.bool_)
    return Intervals(result.features, eligible, low[0], high[0], low[1:], high[1:])


def certify_proposed_ray(result: RoundResult, proposal: int, draw: RandomKey, safe: Floats) -> RoundResult:
    """Return the round with the proposed ray's longest safe step, if certified."""
    area, arrays = result.workspace, (result.layout, result.settings)
    prices = GET_PER_LIMIT(result.layout, area.per_limit).factors
    code = CERTIFY_RAY(*arrays, area.bounds, result.eligible, proposal, area.rule, prices, result.answer)
    action = GET_DECISION_VIEWS(result.layout, result.answer).action
    FINISH_RAY(*arrays, area.bounds, area.rule, code, result.features, safe, result.answer, action)
    return result._replace(code=code)


def certify_proposed_mixture(result: RoundResult, proposal: int, draw: RandomKey, safe: Floats) -> RoundResult:
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
