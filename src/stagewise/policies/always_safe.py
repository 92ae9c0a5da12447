"""AlwaysSafe: the policy that takes no chances."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.loop.round import Form
from stagewise.policies.arrays import assembled
from stagewise.policies.baseline import baseline_of, named_safe
from stagewise.policies.learning import NOTHING, Learning
from stagewise.policies.policy import Played, State
from stagewise.policies.settings import keep
from stagewise.policies.tables import SafeAlone
from stagewise.problem.checks import array
from stagewise.problem.errors import InvalidActions
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds, resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.reason import Cause, Reason


@dataclass(frozen=True, kw_only=True, eq=False)
class AlwaysSafe(Learning):
    """Play the safe action in every round and learn nothing: what any learner must beat.

    >>> policy = AlwaysSafe(safe_action=SafeAction(arm=1, cost=0.0), threshold=0.1)
    >>> policy.decide(policy.start(), None).action
    1
    """

    safe_action: SafeAction
    """What is played."""
    threshold: Threshold
    """What expected costs must stay under: a number, one per constraint, or a mapping from names."""

    thresholds: Thresholds = field(init=False, repr=False)

    learns: ClassVar[str] = NOTHING

    def __post_init__(self) -> None:
        keep(self)
        object.__setattr__(self, "thresholds", resolved(self.threshold, baseline_of(self.safe_action)))

    def form_for(self, actions: Any) -> Form:
        """Return how compiled loops play this policy."""
        return Form()

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        """Return what they read: no models, and no limits of its own."""
        return assembled((0, 0, -1), np.zeros(3), np.zeros(dimension), ())

    def start(self) -> State:
        return State(np.empty(0))

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        safe = self.safe_action
        features, index = safe.features, -1
        if safe.of_the_round:
            of_round = named_safe(actions, type(self).__name__)
            features, index = of_round.features, of_round.place
        return Decision(
            features.copy() if safe.arm is None else safe.arm,
            index if safe.arm is None else safe.arm,
            0.0 if safe.arm is None else 1.0,
            None,
            1.0 if safe.reward is None else safe.reward,
            self.thresholds.at_safe,
            self.thresholds.values,
            Cause(Reason.ALWAYS_SAFE),
            draw.round,
        )._with(self.basis)

    @cached_property
    def basis(self) -> SafeAlone:
        """What its decisions are explained by: the one action there is."""
        label = "safe action" if self.safe_action.arm is None else f"arm {self.safe_action.arm}"
        hoped = 1.0 if self.safe_action.reward is None else self.safe_action.reward
        return SafeAlone(self.thresholds, label, hoped, "as always")

    def logged(self, actions: Any) -> Floats:
        """Return the logged actions, of which nothing is learned."""
        rows = array(actions, "the logged actions", InvalidActions)
        if rows.ndim == 0:
            raise InvalidActions(f"the logged actions are {rows}; they must be a list, one action a row")
        return rows

    def learn_in_place(self, state: State, played: Played, values: Floats) -> State:
        return state
