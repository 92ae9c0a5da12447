"""UCB: the learner over arms that knows no limits."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import RETURNS
from stagewise.kernels.loop.round import RAYS, Form
from stagewise.policies.arms import ArmsPolicy, eligible_arms
from stagewise.policies.arrays import assembled
from stagewise.policies.learning import REWARD
from stagewise.policies.policy import State
from stagewise.policies.rays import decision_on_rays
from stagewise.policies.settings import keep, promise_numbers, settle
from stagewise.policies.watching import WatchedPolicy
from stagewise.problem.checks import size_of
from stagewise.problem.thresholds import NO_THRESHOLDS
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class UCB(ArmsPolicy, WatchedPolicy):
    """The unconstrained learner over arms: the largest mean plus radius. It breaks limits.

    `threshold` is only for judging its runs.

    >>> from stagewise.problem.actions import Arms
    >>> policy = UCB(arms=2)
    >>> policy.decide(policy.start(), Arms(2)).action
    0
    """

    layout: Ints = field(init=False, repr=False)
    settings: Floats = field(init=False, repr=False)

    form: ClassVar[Form] = Form(arms=1, rule=RAYS)
    learns: ClassVar[str] = REWARD

    def __post_init__(self) -> None:
        keep(self)
        self.settle_radius()
        size_of(self.arms, "arms")
        model = self.assumed(NO_THRESHOLDS, 1, 1.0, 0.0, np.empty(0))
        promise = promise_numbers(NO_THRESHOLDS, np.empty(0), None, 1.0)
        layout, settings = assembled((RETURNS, 0, -1), promise, np.empty(0), tuple(model.parts()))
        settle(self, layout=layout, settings=settings)
        _ = self.watched

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        seen = self.chosen(self.form, state, self.no_features, eligible_arms(actions, self.arms), draw)
        decision = decision_on_rays(seen, NO_THRESHOLDS, draw.round, "arm")
        return decision._replace(action=seen.code, step=1.0)._with(decision._table)
