"""LC-LUCB: optimistic in the reward, pessimistic in the costs, one safe point on a ray; and ROFUL."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from stagewise.policies.convex import decision_in_convex
from stagewise.policies.policy import State
from stagewise.policies.settings import Optimism
from stagewise.policies.sharpened import Sharpened
from stagewise.problem.action_set import ActionSet
from stagewise.problem.checks import switch, whole_at_least
from stagewise.problem.errors import InvalidActions
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class LCLUCB(Sharpened):
    """The paper's Algorithm 1: with probability 1 − δ the expected cost of every round is under its threshold.

    Play the safe action or the longest pessimistically safe step on a ray, whichever hopes for the most:

        hoped(x) = <x, θ̂> + β_r ‖x‖ + (α_r − 1) β_c ‖x‖,    dearest(x) = <x, μ̂> + α_c β_c ‖x‖

    With `own_sets` every width is that of the tightest set that is known (docs/theory/rays.md).

    In a Ball, Ellipsoid, Box or Polytope the best ray is searched for, and `decision.gap` bounds what it may miss
    (docs/theory/convex-sets.md).

    >>> import numpy as np
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = LCLUCB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> decision = policy.decide(policy.start(), np.eye(2), Draw())
    >>> decision.index, round(decision.step, 6)
    (0, 0.5)
    """

    directions: int = 64
    """On a convex set: how many fixed directions the search begins with."""
    bound_gap: bool = True
    """On a convex set: bound `decision.gap`, by a small conic program; if not, it is infinite."""

    theorem: ClassVar[str] = "rays"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_at_least(self.directions, "directions", 1)
        switch(self.bound_gap, "bound_gap")

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        if isinstance(actions, ActionSet) and not actions.is_list:
            self.safe_named_by(actions)
            if self.apart and self.thresholds.values.size > 1:
                raise InvalidActions(
                    f"the actions are {type(actions).__name__}, with apart=True and several limits; the search in a "
                    "convex set has one matrix for all costs, so leave apart out, or list the actions"
                )
            if self.own_sets:
                raise InvalidActions(
                    f"the actions are a {type(actions).__name__} and own_sets is True; no point of a convex set is "
                    "sure to come back, so leave own_sets out"
                )
            return decision_in_convex(self, actions, self.directions, self.bound_gap, state, draw)
        return Sharpened.choose(self, state, actions, draw)  # `super()` would be built in every round


@dataclass(frozen=True, kw_only=True, eq=False)
class ROFUL(LCLUCB):
    """LC-LUCB with directional optimism (Hutchinson et al. 2024): choose by hope, step by caution.

    Compare rays at their longest plausible step, then play the longest safe step on the best. No scaling to set, and
    the same safety.

    >>> import numpy as np
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = ROFUL(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> decision = policy.decide(policy.start(), np.eye(2))
    >>> decision.index, round(decision.step, 6)
    (0, 0.5)
    """

    optimism: Optimism = field(init=False, default="directional")
