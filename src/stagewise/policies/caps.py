"""CAPS: certified posterior sampling, on rays or on mixtures."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import CERTIFIED, OFFERS_SAFE, RETURNS
from stagewise.kernels.loop.round import EVERY, MIXTURE, RAYS, Form
from stagewise.models.linear import LinearModel
from stagewise.policies.compiled import Chosen
from stagewise.policies.learning import check_unit_range
from stagewise.policies.mixtures import PROPOSED, decision_from
from stagewise.policies.policy import State
from stagewise.policies.proposal import Intervals, checked, in_mixture, intervals_of, on_ray, undecided
from stagewise.policies.rays import decision_on_rays, listed_of, own, rays_of
from stagewise.policies.settings import Optimism, settle
from stagewise.policies.sharpened import Sharpened
from stagewise.problem.checks import LARGEST, number, positive, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class CAPS(Sharpened):
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
    spread: float = 0.7
    """ν: how wide the draws are, in posterior standard deviations; 0: greedy."""
    patience: float = 5.0
    """C ≥ 1: how much regret a proposal may cost, in units of what is unknown of it."""
    reward_bound: float = 1.0
    """The largest mean reward there is."""
    unit_outcomes: bool = False
    """Every outcome lies in [0, 1], as clicks do; what is rare is then learned sooner."""
    ridge: float | None = None
    """λ of the regressions; None: d R²/S², the largest of the signals'."""
    optimism: Optimism = field(init=False, default="inflated")
    reward_scale: float | None = field(init=False, default=None)
    cost_scale: float = field(init=False, default=1.0)
    share_delta: bool = field(init=False, default=True)
    own_sets: bool = field(init=False, default=True)

    form: ClassVar[Form] = Form(ridge=1, sharp=1, rule=RAYS, sampled=EVERY)

    def __post_init__(self) -> None:
        switch(self.mixtures, "mixtures")
        switch(self.unit_outcomes, "unit_outcomes")
        certificate_numbers(self.spread, self.patience, self.reward_bound)
        settle(self, mixes=self.mixtures, form=self.form._replace(rule=MIXTURE if self.mixtures else RAYS))
        super().__post_init__()

    @property
    def switches(self) -> int:
        """The switches of its rule: a choice is certified."""
        return OFFERS_SAFE | RETURNS | CERTIFIED

    def last_numbers(self, model: LinearModel) -> list[float]:
        """Return ν, C and the largest mean reward."""
        return certificate_numbers(self.spread, self.patience, self.reward_bound, model.reward)

    def form_for(self, actions: Any) -> Form | None:
        """Return mixtures, or rays where there are some."""
        return self.form if self.mixtures or actions.between else None

    @property
    def bounded(self) -> bool:
        """Whether outcomes are promised to lie in [0, 1]."""
        return self.unit_outcomes

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the outcome as it is learned from; in [0, 1] where that was promised."""
        values = super().values(reward, cost)
        if self.unit_outcomes:
            check_unit_range(values, self.thresholds, "unit_outcomes rests on that range, so rescale or leave it out")
        return values

    def propose(self, known: Intervals, draw: Draw) -> int | None:
        """Name the candidate to play if its regret is certified, or -1, the safe action; None: the draw's proposal.

        For subclasses: limits and the bound on regret hold whatever is proposed (docs/extending.md). On a ray its
        longest safe step is played; of an action in a mixture as much as is safe beside the safe action.
        """
        return None

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose a point on one of the rays, or draw from a mixture."""
        listed = self.fitting(listed_of(actions) if self.mixtures else rays_of(actions))
        seen = self.chosen(self.form, state, listed.features, listed.eligible, draw)
        if type(self).propose is not CAPS.propose and undecided(seen):
            seen = self.proposed(seen, draw)
        if not self.mixtures:
            return self.explained(seen, state, decision_on_rays(seen, self.thresholds, draw.round))
        action = own(listed.features[seen.code] if seen.code >= 0 else self.safe_action.features)
        return self.explained(seen, state, decision_from(seen, action, self.thresholds, draw.round, why=PROPOSED))

    def proposed(self, seen: Chosen, draw: Draw) -> Chosen:
        """Return the round as a subclass proposes it, or as it is."""
        known = intervals_of(seen)
        proposal = self.propose(known, draw)
        if proposal is None:
            return seen
        place = checked(proposal, known)
        return in_mixture(seen, place, draw) if self.mixtures else on_ray(seen, place, self.safe_action.features)


def certificate_numbers(
    spread: float, patience: float, reward_bound: float, safe_reward: float | None = None
) -> list[float]:
    """Return ν, C and the largest mean reward, checked."""
    if not 0.0 <= number(spread, "spread") < LARGEST:
        raise InvalidProblem(f"spread is {spread}; it is a number of standard deviations, 0 or more")
    if not 1.0 <= number(patience, "patience") < math.inf:
        raise InvalidProblem(
            f"patience is {patience}; it must be 1 or more, which is what the optimistic choice itself needs"
        )
    most = positive(reward_bound, "reward_bound")
    if safe_reward is not None and safe_reward > most:
        raise InvalidProblem(
            f"the safe action's reward is {safe_reward}, above reward_bound {most:g}; "
            "raise reward_bound to the largest mean reward there is"
        )
    return [float(spread), float(patience), most]
