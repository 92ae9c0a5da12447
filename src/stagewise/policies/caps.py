"""CAPS: certified posterior sampling, on rays or on mixtures."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.ridge import LinearModel
from stagewise.policies.base_policy import check_unit_range
from stagewise.policies.baseline import check_safe_range, parse_safe_action
from stagewise.policies.certificate_settings import CertificateSettings
from stagewise.policies.compiled_policy import RoundResult
from stagewise.policies.cost_bounds import compute_ceilings
from stagewise.policies.custom_proposal import (
    Intervals,
    certify_proposed_mixture,
    certify_proposed_ray,
    check_proposal,
    get_intervals,
    is_open_to_proposal,
)
from stagewise.policies.linear_policy import compute_ridge
from stagewise.policies.mixture_decision import PROPOSED, build_mixture_decision
from stagewise.policies.per_candidate_bounds import (
    COST_SHARE,
    OTHER_SHARE,
    REWARD_SHARE,
    UPPER_SHARE,
    PerCandidateBounds,
)
from stagewise.policies.policy import State
from stagewise.policies.rare_costs import add_rare_costs, check_blocks, check_one_block, learn_events_log
from stagewise.policies.ray_decision import (
    PROPOSED_RAY,
    build_ray_decision,
    copy_action,
    parse_listed_actions,
    parse_rays,
)
from stagewise.policies.settings import set_derived
from stagewise.problem.actions import Listed
from stagewise.problem.checks import check_bool, check_integer_at_least
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.certified import CERTIFIED_MIXTURE, CERTIFIED_RAY

RARE_SHARE = COST_SHARE + UPPER_SHARE  # of rare costs, which have one family of confidence sets


@dataclass(frozen=True, kw_only=True, eq=False)
class CAPS(CertificateSettings, PerCandidateBounds):
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
        >>> policy = CAPS(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> decision = policy.decide(policy.start(), np.eye(2))
        >>> decision.action_index, round(decision.step_size, 6)
        (0, 0.5)
    """

    mixtures: bool = False
    """Sample from mixtures of the listed actions instead of playing points on rays; limits hold for the mixture."""
    bounded_outcomes: bool = False
    """Every outcome lies in [0, 1], as clicks do; rare outcomes are then learned faster."""
    rare_costs: bool = False
    """Costs lie in [0, 1] and are rarely above 0, as complaints are; for features that do not recur."""
    blocks: int = 1
    """With `rare_costs`: the number of feature blocks of equal length; an action uses one (template × user)."""
    split_delta: bool = field(init=False, default=True)
    per_action_bounds: bool = field(init=False, default=True)

    rule: ClassVar[Rule] = CERTIFIED_RAY

    def __post_init__(self) -> None:
        check_bool(self.mixtures, "mixtures")
        if check_bool(self.bounded_outcomes, "bounded_outcomes") and parse_safe_action(self.safe_action).is_per_round:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "bounded_outcomes is True and every round names its own safe action; leave it out, since "
                "it needs candidates that recur",
            )
        self.certificate_numbers(None)
        check_bool(self.rare_costs, "rare_costs")
        check_blocks(check_integer_at_least(self.blocks, "blocks", 1), self.mixtures, self.rare_costs)
        set_derived(self, mixes=self.mixtures, rule=CERTIFIED_MIXTURE if self.mixtures else CERTIFIED_RAY)
        super().__post_init__()

    def last_numbers(self, model: LinearModel) -> list[float]:
        reward = self.safe_action.reward if model.reward is None else model.reward
        return self.certificate_numbers(reward)

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        if self.bounded_outcomes:
            check_safe_range(safe, thresholds, "rescale, or leave bounded_outcomes out")
        model = super().build_model(safe, thresholds)
        if not self.rare_costs:
            return model
        ridge = compute_ridge(self.ridge, model.safe.size, model.noise[0], model.norm_bound[0])  # of the reward alone
        model = replace(model, ridge=ridge)
        delta = RARE_SHARE * float(self.delta)
        return add_rare_costs(model, thresholds, self.blocks, compute_ceilings(thresholds, self.cost_bound), delta)

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        if not self.rare_costs:
            return super().interval_shares
        return (delta * (REWARD_SHARE + 2.0 * OTHER_SHARE / (m + 2)), *([delta * RARE_SHARE / m] * m))

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Learn a log as one batch."""
        if not self.rare_costs:
            return super().learn_log(state, actions, values)
        before = state.memory.copy()
        state = super().learn_log(state, actions, values)
        for _, block in self.iter_blocks(state.memory):
            if block.first > 0:  # every cost has a model of its own
                learn_events_log(block, self.settings, before, state.memory, np.asarray(actions), np.array(values))
        return state

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec for mixtures, or for rays."""
        return self.round_spec if self.mixtures or actions.between else None

    @property
    def is_count_based(self) -> bool:
        """Whether per-candidate sets use counts; `rare_costs` does not apply to the reward."""
        return self.bounded_outcomes

    @property
    def requires_unit_range(self) -> bool:
        """Whether outcomes, or those of the costs, must lie in [0, 1]."""
        return self.bounded_outcomes or self.rare_costs

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.bounded_outcomes:
            check_unit_range(values, self.thresholds, "bounded_outcomes needs that range, so rescale or leave it out")
        elif self.rare_costs:
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

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        listed = parse_listed_actions(actions) if self.mixtures else parse_rays(actions)
        of_round = self.check_offered(listed)
        result = self.play_round(self.round_spec, state, listed.features, listed.eligible, draw, of_round)
        safe: Any = self.safe_action.features if of_round is None else of_round.features
        if type(self).propose is not CAPS.propose and is_open_to_proposal(result):
            result = self.apply_proposal(result, draw, safe)
        is_default = type(self).propose is CAPS.propose
        if not self.mixtures:
            on_ray = build_ray_decision(result, self.thresholds, draw.round, why=None if is_default else PROPOSED_RAY)
            return self.attach_cause(result, state, on_ray, of_round)
        action = copy_action(listed.features[result.code] if result.code >= 0 else safe)
        decision = build_mixture_decision(
            result, action, self.thresholds, draw.round, why=None if is_default else PROPOSED
        )
        return self.attach_cause(result, state, decision, of_round)

    def apply_proposal(self, result: RoundResult, draw: RandomKey, safe: Floats) -> RoundResult:
        """Return the round with the subclass's proposal, if it makes one; `safe` is the safe action."""
        intervals = get_intervals(result)
        proposal = self.propose(intervals, draw)
        if proposal is None:
            return result
        index = check_proposal(proposal, intervals)
        return (
            certify_proposed_mixture(result, index, draw)
            if self.mixtures
            else certify_proposed_ray(result, index, safe)
        )
