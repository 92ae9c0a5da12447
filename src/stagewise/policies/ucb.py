"""UCB: the learner over arms that knows no limits."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import RETURNS
from stagewise.kernels.loop.round import RAYS, Form
from stagewise.policies.arms import NO_FEATURES, arms_model, eligible_arms, logged_arms, ranged
from stagewise.policies.compiled import CompiledPolicy, assembled
from stagewise.policies.learning import REWARD, check_unit_range
from stagewise.policies.policy import Played, State
from stagewise.policies.rays import decision_on_rays
from stagewise.policies.settings import keep, promise_numbers
from stagewise.policies.watching import watched
from stagewise.problem.checks import size_of
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class UCB(CompiledPolicy):
    """The unconstrained learner over arms: the largest mean plus radius. It breaks limits.

    `threshold` is only for judging its runs.

    >>> from stagewise.problem.actions import Arms
    >>> policy = UCB(arms=2)
    >>> policy.decide(policy.start(), Arms(2)).action
    0
    """

    arms: int
    horizon: int | None = None
    noise: float | None = None  # None: outcomes lie in [0, 1]
    delta: float = 0.05
    safe_action: SafeAction | None = None
    threshold: Threshold | None = None
    radius: str = "hoeffding"

    thresholds: Thresholds = field(init=False, repr=False, default=NO_THRESHOLDS)

    layout: Ints = field(init=False, repr=False)
    settings: Floats = field(init=False, repr=False)

    form: ClassVar[Form] = Form(arms=1, rule=RAYS)
    learns: ClassVar[str] = REWARD

    def __post_init__(self) -> None:
        keep(self)
        size_of(self.arms, "arms")
        names, signs = ("reward",), np.empty(0)
        told = (self.arms, names, self.noise, self.radius, self.delta, self.horizon, 1, 1.0, signs, 0.0, np.empty(0))
        promise = promise_numbers(NO_THRESHOLDS, np.empty(0), None, 1.0)
        layout, settings = assembled((RETURNS, 0, -1), promise, np.empty(0), tuple(arms_model(*told).parts()))
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "settings", settings)
        _ = self.watched

    @cached_property
    def watched(self) -> Thresholds:
        """The thresholds its runs are judged by."""
        return watched(self.threshold, self.safe_action)

    @property
    def bounded(self) -> bool:
        """Whether outcomes are promised to lie in [0, 1]."""
        return self.noise is None and self.radius != "paper"

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose the most hopeful arm."""
        seen = self.seen(self.form, state, self.listed, eligible_arms(actions, self.arms), draw)
        decision = decision_on_rays(seen, NO_THRESHOLDS, draw.round, "arm")
        return decision._replace(action=seen.code, step=1.0, offered=None, news=False)

    def form_for(self, actions: Any) -> Form | None:
        """Return arms."""
        return self.form if actions.dimension == 0 else None

    def played_from(self, offered: Any, features: Floats, fresh: bool) -> Floats:
        """Return an empty memory: arms need not be followed."""
        return self.start().memory

    @cached_property
    def listed(self) -> Floats:
        """The arms as actions without features."""
        return np.empty((self.arms, 0))

    def located(self, played: Played) -> tuple[Floats, int]:
        """Return no features, and the arm."""
        return NO_FEATURES, int(played.action)

    def logged(self, actions: Any) -> Ints:
        """Return logged arms (n,)."""
        return logged_arms(actions, self.arms)

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward as it is learned from; in [0, 1] where that was promised."""
        values = super().values(reward, cost)
        if self.bounded:
            check_unit_range(values, NO_THRESHOLDS, ranged(self.radius))
        return values
