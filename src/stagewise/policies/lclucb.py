"""LC-LUCB and ROFUL: one safe point on a ray per round."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from stagewise.policies.convex_decision import decide_in_convex
from stagewise.policies.per_candidate_bounds import PerCandidateBounds
from stagewise.policies.policy import State
from stagewise.policies.settings import Optimism
from stagewise.problem.actions import ActionSet
from stagewise.problem.checks import check_bool, check_integer_at_least
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey


@dataclass(frozen=True, kw_only=True, eq=False)
class LCLUCB(PerCandidateBounds):
    """The paper's Algorithm 1: with probability 1 − δ the expected cost of every round is within its limit.

    Play the safe action or the longest pessimistically safe step on a ray, whichever has the largest optimistic reward:

        optimistic_reward(x) = <x, θ̂> + β_r ‖x‖ + (α_r − 1) β_c ‖x‖
        pessimistic_cost(x) = <x, μ̂> + α_c β_c ‖x‖

    With `per_action_bounds` every width is that of the tightest confidence set (docs/theory/rays.md). On a Ball,
    Ellipsoid, Box or Polytope the policy searches for the best ray, and `decision.solver_gap` bounds the error of
    the search (docs/theory/convex-sets.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = LCLUCB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> decision = policy.decide(policy.start(), np.eye(2), RandomKey())
        >>> decision.action_index, round(decision.step_size, 6)
        (0, 0.5)
    """

    directions: int = 64
    """On a convex set: the number of initial directions of the search."""
    bound_gap: bool = True
    """On a convex set: bound `decision.solver_gap` by a small conic program; otherwise it is infinite."""

    theorem: ClassVar[str] = "rays"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer_at_least(self.directions, "directions", 1)
        check_bool(self.bound_gap, "bound_gap")

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        if isinstance(actions, ActionSet) and not actions.is_list:
            self.get_round_safe_action(actions)
            if self.separate_models and self.thresholds.values.size > 1:
                raise InvalidActions(
                    ErrorCode.UNSUPPORTED_ACTIONS,
                    "the actions are {name}, with separate_models=True and several limits; leave "
                    "separate_models out or list the actions, since a convex search uses one matrix for all "
                    "costs",
                    name=type(actions).__name__,
                )
            if self.per_action_bounds:
                raise InvalidActions(
                    ErrorCode.UNSUPPORTED_ACTIONS,
                    "the actions are a {name} and per_action_bounds is True; leave per_action_bounds out, "
                    "since points of a convex set need not recur",
                    name=type(actions).__name__,
                )
            return decide_in_convex(self, actions, self.directions, self.bound_gap, state, draw)
        return PerCandidateBounds.choose(
            self, state, actions, draw
        )  # faster than `super()`, which is built in every round


@dataclass(frozen=True, kw_only=True, eq=False)
class ROFUL(LCLUCB):
    """LC-LUCB with directional optimism (Hutchinson et al. 2024).

    Compare rays at their longest plausible step, then play the longest safe step on the best. It has the same safety
    guarantee and no scale to set.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = ROFUL(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> decision = policy.decide(policy.start(), np.eye(2))
        >>> decision.action_index, round(decision.step_size, 6)
        (0, 0.5)
    """

    optimism: Optimism = field(init=False, default="directional")
