"""AlwaysSafe: the policy that takes no chances."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.loop.round import Form
from stagewise.policies.baseline import baseline_of
from stagewise.policies.compiled import assembled
from stagewise.policies.learning import NOTHING, Learning
from stagewise.policies.policy import Played, State
from stagewise.policies.settings import keep
from stagewise.problem.checks import array
from stagewise.problem.errors import InvalidActions
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds, resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.explanation import Row, Table


@dataclass(frozen=True, kw_only=True, eq=False)
class AlwaysSafe(Learning):
    """Play the safe action in every round and learn nothing: what any learner must beat.

    >>> policy = AlwaysSafe(safe_action=SafeAction(arm=1, cost=0.0), threshold=0.1)
    >>> policy.decide(policy.start(), None).action
    1
    """

    safe_action: SafeAction
    threshold: Threshold

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
        """Return an empty memory."""
        return State(np.empty(0))

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Play the safe action."""
        safe, limits = self.safe_action, self.thresholds
        place: Any = (safe.features.copy(), -1, 0.0) if safe.arm is None else (safe.arm, safe.arm, 1.0)
        hoped = 1.0 if safe.reward is None else safe.reward
        dearest = limits.values if limits.safe is None else limits.safe
        row = Row("safe action" if safe.arm is None else f"arm {safe.arm}", hoped, tuple(dearest), 1.0, True)
        told = limits.names, tuple(limits.signs), tuple(limits.values), "played", (row,), 0, "as always"
        why = "this policy plays nothing else"
        return Decision(*place, None, hoped, dearest, limits.values, why, draw.round, partial(Table, *told))

    def logged(self, actions: Any) -> Floats:
        """Return the logged actions, of which nothing is learned."""
        rows = array(actions, "the logged actions", InvalidActions)
        if rows.ndim == 0:
            raise InvalidActions(f"the logged actions are {rows}; they must be a list, one action a row")
        return rows

    def take(self, state: State, played: Played, values: Floats) -> State:
        """Learn nothing."""
        return state
