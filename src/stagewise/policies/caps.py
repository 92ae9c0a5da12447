"""CAPS: certified posterior sampling, on rays or on mixtures."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.loop.round import EVERY, MIXTURE, RAYS, Form
from stagewise.models.linear import LinearModel
from stagewise.models.part import parts_in
from stagewise.policies.baseline import baseline_of, check_safe_range
from stagewise.policies.ceilings import ceilings_of
from stagewise.policies.certified import Certified
from stagewise.policies.compiled import Chosen
from stagewise.policies.learning import check_unit_range
from stagewise.policies.linear import ridge_of
from stagewise.policies.mixtures import PROPOSED, decision_from
from stagewise.policies.policy import State
from stagewise.policies.proposal import Intervals, checked, in_mixture, intervals_of, on_ray, undecided
from stagewise.policies.rare_costs import check_blocks, check_one_block, learn_events_log, rare_costs
from stagewise.policies.rays import PROPOSED_RAY, decision_on_rays, listed_of, own, rays_of
from stagewise.policies.settings import settle
from stagewise.policies.sharpened import COST_SHARE, OTHER_SHARE, REWARD_SHARE, UPPER_SHARE, Sharpened
from stagewise.problem.actions import Listed
from stagewise.problem.checks import switch, whole_at_least
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

RARE_SHARE = COST_SHARE + UPPER_SHARE  # of costs that are rare, and have one family of sets


@dataclass(frozen=True, kw_only=True, eq=False)
class CAPS(Certified, Sharpened):
    """Certified posterior sampling: with probability 1 − δ the expected cost of every round is under its threshold.

    A draw from N(θ̂, ν² R² V⁻¹) of every signal proposes a ray, and its longest pessimistically safe step is played if
    the data certify that its regret is at most C times what is unknown of it; else the optimistic ray's step is. With
    `mixtures` the same is done with mixtures of the listed actions (docs/theory/caps.md). Candidates that come back
    have sets of their own beside the ellipsoid, so that bounds of what is played often do not pay for the dimension.

    >>> import numpy as np
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = CAPS(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> decision = policy.decide(policy.start(), np.eye(2))
    >>> decision.index, round(decision.step, 6)
    (0, 0.5)
    """

    mixtures: bool = False
    """Mix the listed actions, instead of playing points on rays; the limits then hold for the mixture."""
    unit_outcomes: bool = False
    """Every outcome lies in [0, 1], as clicks do; what is rare is then learned sooner."""
    rare_costs: bool = False
    """Costs lie in [0, 1] and are rarely more than 0, as complaints are; sharp for features that never come back."""
    blocks: int = 1
    """With `rare_costs`: features are so many blocks of equal length, of which an action uses one (template × user)."""
    share_delta: bool = field(init=False, default=True)
    own_sets: bool = field(init=False, default=True)

    form: ClassVar[Form] = Form(ridge=1, sharp=1, rule=RAYS, sampled=EVERY)

    def __post_init__(self) -> None:
        switch(self.mixtures, "mixtures")
        if switch(self.unit_outcomes, "unit_outcomes") and baseline_of(self.safe_action).of_the_round:
            raise InvalidProblem(
                "unit_outcomes is True and every round's set names its own safe action; it sharpens what is kept of "
                "candidates that come back, and then none are followed, so leave it out"
            )
        self.certificate_numbers(None)
        rule, events = MIXTURE if self.mixtures else RAYS, int(switch(self.rare_costs, "rare_costs"))
        check_blocks(whole_at_least(self.blocks, "blocks", 1), self.mixtures, self.rare_costs)
        settle(self, mixes=self.mixtures, form=self.form._replace(rule=rule, events=events))
        super().__post_init__()

    def last_numbers(self, model: LinearModel) -> list[float]:
        reward = self.safe_action.reward if model.reward is None else model.reward
        return self.certificate_numbers(reward)

    def assumed(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        if self.unit_outcomes:
            check_safe_range(safe, thresholds, "rescale, or leave unit_outcomes out")
        model = super().assumed(safe, thresholds)
        if not self.rare_costs:
            return model
        ridge = ridge_of(self.ridge, model.safe.size, model.noise[0], model.norm_bound[0])  # of the reward alone
        model = replace(model, ridge=ridge)
        delta = RARE_SHARE * float(self.delta)
        return rare_costs(model, thresholds, self.blocks, ceilings_of(thresholds, self.cost_bound), delta)

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        if not self.rare_costs:
            return super().interval_shares
        return (delta * (REWARD_SHARE + 2.0 * OTHER_SHARE / (m + 2)), *([delta * RARE_SHARE / m] * m))

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Take in a log as one batch: all its rows together, not each on its way."""
        if not self.rare_costs:
            return super().learn_log(state, actions, values)
        before = state.memory.copy()
        state = super().learn_log(state, actions, values)
        for part in parts_in(self.layout, state.memory):
            if part.first > 0:  # every cost has a model of its own
                learn_events_log(part, self.settings, before, state.memory, np.asarray(actions), np.array(values))
        return state

    def form_for(self, actions: Any) -> Form | None:
        """Return mixtures, or rays where there are some."""
        return self.form if self.mixtures or actions.between else None

    @property
    def by_counts(self) -> bool:
        """Whether own sets are made of counts; `rare_costs` says nothing of the reward."""
        return self.unit_outcomes

    @property
    def bounded(self) -> bool:
        """Whether outcomes, or those of the costs, are promised to lie in [0, 1]."""
        return self.unit_outcomes or self.rare_costs

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.unit_outcomes:
            check_unit_range(values, self.thresholds, "unit_outcomes rests on that range, so rescale or leave it out")
        elif self.rare_costs:
            inside = np.array([0.0, *values[1:]])
            check_unit_range(inside, self.thresholds, "rare_costs rests on that range, so rescale or leave it out")
        return values

    def fitting(self, listed: Listed) -> Listed:
        super().fitting(listed)
        if self.blocks > 1:
            check_one_block(listed.features, self.blocks, "action", InvalidActions)
        return listed

    def propose(self, known: Intervals, draw: Draw) -> int | None:
        """Name the candidate to play if its regret is certified, or -1, the safe action; None: the draw's proposal.

        For subclasses: limits and the bound on regret hold whatever is proposed (docs/how-to/extend.md). On a ray its
        longest safe step is played; of an action in a mixture as much as is safe beside the safe action.
        """
        return None

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        listed = listed_of(actions) if self.mixtures else rays_of(actions)
        of_round = self.entered(listed)
        seen = self.chosen(self.form, state, listed.features, listed.eligible, draw, of_round)
        safe: Any = self.safe_action.features if of_round is None else of_round.features
        if type(self).propose is not CAPS.propose and undecided(seen):
            seen = self.proposed(seen, draw, safe)
        ours = type(self).propose is CAPS.propose
        if not self.mixtures:
            told = decision_on_rays(seen, self.thresholds, draw.round, why=None if ours else PROPOSED_RAY)
            return self.explained(seen, state, told, of_round)
        action = own(listed.features[seen.code] if seen.code >= 0 else safe)
        decision = decision_from(seen, action, self.thresholds, draw.round, why=None if ours else PROPOSED)
        return self.explained(seen, state, decision, of_round)

    def proposed(self, seen: Chosen, draw: Draw, safe: Floats) -> Chosen:
        """Return the round as a subclass proposes it, or as it is; `safe` is the safe action."""
        known = intervals_of(seen)
        proposal = self.propose(known, draw)
        if proposal is None:
            return seen
        place = checked(proposal, known)
        return in_mixture(seen, place, draw) if self.mixtures else on_ray(seen, place, safe)
