"""OPB: optimistic in the reward, pessimistic in the costs, one safe mixture over arms."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.layout import HOME, OFFERS_SAFE, RETURNS
from stagewise.kernels.loop.round import MIXTURE, Form
from stagewise.kernels.promise import OVER
from stagewise.models.arms import ArmsModel, end_shares
from stagewise.policies.arms import ArmsPolicy, eligible_arms, most_pulls
from stagewise.policies.arrays import NOTHING, assembled
from stagewise.policies.baseline import armed, check_safe_range
from stagewise.policies.ceilings import bounds_of, ceilings_of
from stagewise.policies.mixtures import decision_from
from stagewise.policies.policy import State
from stagewise.policies.safe_mixture import Offer, staying
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import CAUSES, hope_switch, keep, promise_numbers, settle
from stagewise.problem.checks import size_of, switch
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.thresholds import resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class OPB(ArmsPolicy, SafePolicy):
    """The paper's Algorithm 3: with probability 1 − δ the mixture of every round has its expected cost in check.

    An arm never pulled may cost as much as any. Outcomes are taken to lie in [0, 1], and intervals are by likelihood
    ratio (`radius="kl"`), sharp where costs are rare, as one opt-out in a hundred (docs/theory/arms.md). With `noise`
    given they may be any that are R-sub-Gaussian ("hoeffding"); "paper" takes them as 1-sub-Gaussian. Without a horizon
    the intervals hold for all rounds at once.

    >>> from stagewise.problem.actions import Arms
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> policy.decide(policy.start(), Arms(3), Draw()).probabilities
    array([0.8, 0.2, 0. , 0. ])
    """

    apart: bool = False
    """Each signal has means of its own, so that it is learned when it comes, without waiting for the others."""

    model: ArmsModel = field(init=False, repr=False)

    form: ClassVar[Form] = Form(arms=1, rule=MIXTURE)
    mixes: ClassVar[bool] = True
    theorem: ClassVar[str] = "arms"

    def __post_init__(self) -> None:
        keep(self)
        if switch(self.apart, "apart"):
            settle(self, form=self.form._replace(apart=1))
        self.settle_radius()
        safe = armed(self.safe_action, size_of(self.arms, "arms"))
        thresholds = resolved(self.threshold, safe)
        ceilings = ceilings_of(thresholds, self.cost_bound, 0.0 if self.bounded else None)
        bounds = bounds_of(self.cost_bound, thresholds.names)
        if not np.isfinite(bounds).all():
            raise InvalidProblem("cost_bound is None; an arm never pulled could then cost anything, and never be tried")
        if self.bounded:
            check_safe_range(safe, thresholds, "rescale, or give `noise`")
        promise = promise_numbers(thresholds, ceilings, self.reward_scale, self.cost_scale, self.watch)
        signals = sharing(len(thresholds.names), switch(self.share_delta, "share_delta"))
        told = (thresholds, signals, max(1.0, *bounds), safe.reward, thresholds.signed_safe)
        model = replace(self.assumed(*told), apart=self.apart)
        head, parts = (self.switches, 0, int(safe.arm or 0)), tuple(model.parts())
        settle(self, thresholds=thresholds, model=model)
        layout, settings = assembled(head, promise, NOTHING, parts, last=self.last_numbers())
        settle(self, layout=layout, settings=settings)

    @property
    def switches(self) -> int:
        """The switches of its rule (see `kernels.promise`)."""
        return OFFERS_SAFE | RETURNS | hope_switch(self)

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        signals = sharing(m, self.share_delta)
        if self.radius != "rates":
            return (delta / signals,) * (1 + m)
        upper, other = end_shares(signals - 1)
        return (delta * 2.0 * other, *([delta * (upper + other)] * m))

    def last_numbers(self) -> list[float]:
        """Return what its rule reads at the end of the settings."""
        return []

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        eligible, home = eligible_arms(actions, self.arms), int(self.layout[HOME])
        if self.horizon is not None and most_pulls(self.layout, state.memory) >= self.horizon:
            offer = Offer(self.arms, eligible, home, home, None)  # radii hold for so many pulls and no more
            return staying(offer, self.thresholds, draw.round, CAUSES[OVER])
        seen = self.chosen(self.form, state, self.no_features, eligible, draw)
        arm = seen.code if seen.code >= 0 else home
        return self.explained(seen, state, decision_from(seen, arm, self.thresholds, draw.round))


def sharing(costs: int, share_delta: bool) -> int:
    """Return how many signals δ is divided among; where it is not shared, as if there were one cost."""
    return 1 + (costs if share_delta else 1)
