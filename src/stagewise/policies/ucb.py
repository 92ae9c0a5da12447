"""UCB: the learner over arms that knows no limits."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from stagewise.kernels import opb
from stagewise.kernels.compile import Floats, Ints
from stagewise.models.arms import ArmsModel
from stagewise.policies.arms import arms_model, eligible_arms, logged_arms, ranged
from stagewise.policies.learning import Learning, check_unit_range
from stagewise.policies.policy import Played, State
from stagewise.policies.settings import keep, promise_numbers
from stagewise.policies.tables import leading
from stagewise.policies.watching import watched
from stagewise.problem.actions import Flags
from stagewise.problem.checks import size_of
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Threshold, Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.explanation import Row, Table


@dataclass(frozen=True, kw_only=True, eq=False)
class UCB(Learning):
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

    def __post_init__(self) -> None:
        keep(self)
        size_of(self.arms, "arms")
        _ = self.model, self.watched

    @cached_property
    def watched(self) -> Thresholds:
        """The thresholds its runs are judged by."""
        return watched(self.threshold, self.safe_action)

    @cached_property
    def model(self) -> ArmsModel:
        """What is assumed of the arms."""
        names, signs = ("reward",), np.empty(0)
        return arms_model(self.arms, names, self.noise, self.radius, self.delta, self.horizon, 1, 1.0, signs)

    @cached_property
    def flags(self) -> Ints:
        """The whole numbers and switches that kernels read."""
        return np.array([self.arms, 0, -1, 1, 1, 0, 0, self.model.kind], dtype=np.int64)

    @cached_property
    def numbers(self) -> Floats:
        """The settings that kernels read: the intervals, nothing known, no promise."""
        return np.concatenate([self.model.numbers(), [0.0], promise_numbers(NO_THRESHOLDS, np.empty(0), None, 1.0)])

    @property
    def bounded(self) -> bool:
        """Whether outcomes are promised to lie in [0, 1]."""
        return self.noise is None and self.radius != "paper"

    def start(self) -> State:
        """Return the memory of a policy that has seen nothing."""
        return State(self.model.start())

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Choose the most hopeful arm."""
        eligible = eligible_arms(actions, self.arms)
        hoped = np.empty(self.arms)
        arm = opb.decide_unconstrained(eligible, self.flags, self.numbers, state.memory, hoped)
        nothing = np.empty(0)
        table = partial(arms_table, arm, hoped, eligible)
        return Decision(arm, arm, 1.0, None, float(hoped[arm]), nothing, nothing, None, draw.round, table)

    def logged(self, actions: Any) -> Ints:
        """Return logged arms (n,)."""
        return logged_arms(actions, self.arms)

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the reward as it is learned from; in [0, 1] where that was promised."""
        values = super().values(reward, cost)
        if self.bounded:
            check_unit_range(values, NO_THRESHOLDS, ranged(self.radius))
        return values

    def take(self, state: State, played: Played, values: Floats) -> State:
        """Take in one pull, in place."""
        opb.absorb(int(played.action), values, self.flags, self.numbers, state.memory)
        return state


def arms_table(played: int, hoped: Floats, eligible: Flags) -> Table:
    """Return the leading arms with their optimistic rewards."""
    rows = tuple(
        Row(f"arm {i}", float(hoped[i]), (), float(i == played), i == played) for i in leading(hoped, eligible, played)
    )
    return Table((), (), (), "played", rows, len(hoped) - len(rows), "the arm with the largest hoped reward")
