"""LC-LUCB, ROFUL and DOSLB: one point on a ray per round."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from stagewise.engine.model import RoundSpec
from stagewise.policies.convex_decision import decide_in_convex
from stagewise.policies.decisions import OPTIMISTIC_COSTS, attach_round, build_mixture_decision, copy_action
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import GET_DECISION_VIEWS, Rounds
from stagewise.policies.settings import Optimism
from stagewise.problem.actions import ActionSet
from stagewise.problem.checks import check_bool, check_integer_at_least
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import MIXTURE


def prepare_ray_policy(policy: Any) -> None:
    """Set what follows from the settings of a policy on rays; raise InvalidProblem for invalid ones."""
    LinearPolicy.__post_init__(policy)
    check_integer_at_least(policy.directions, "directions", 1)
    check_bool(policy.bounds_solver_gap, "bounds_solver_gap")


def search_convex_set(policy: Any, state: PolicyState, actions: Any, draw: RandomKey) -> Decision | None:
    """Return the best ray that is found in a convex set; None: the actions are listed."""
    if not isinstance(actions, ActionSet) or actions.is_list:
        return None
    policy.get_round_safe_action(actions)
    name = type(actions).__name__
    if policy.separate_models and policy.thresholds.values.size > 1:
        template = (
            "the actions are {name}, with separate_models=True and several limits; leave separate_models out or "
            "list the actions, since a convex search uses one matrix for all costs"
        )
        raise InvalidActions(ErrorCode.UNSUPPORTED_ACTIONS, template, name=name)
    if policy.per_action_bounds:
        template = (
            "the actions are a {name} and per_action_bounds is True; leave per_action_bounds out, since points of a "
            "convex set need not recur"
        )
        raise InvalidActions(ErrorCode.UNSUPPORTED_ACTIONS, template, name=name)
    return decide_in_convex(policy, actions, policy.directions, policy.bounds_solver_gap, state, draw)


@dataclass(frozen=True, kw_only=True, eq=False)
class LCLUCB(LinearPolicy):
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
    bounds_solver_gap: bool = True
    """On a convex set: bound `decision.solver_gap` by a small conic program; otherwise it is infinite."""

    theorem: ClassVar[str] = "rays"

    choose_in_set = search_convex_set

    def __post_init__(self) -> None:
        prepare_ray_policy(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class ROFUL(LinearPolicy):
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

    directions: int = 64
    """On a convex set: the number of initial directions of the search."""
    bounds_solver_gap: bool = True
    """On a convex set: bound `decision.solver_gap` by a small conic program; otherwise it is infinite."""
    optimism: Optimism = field(init=False, default="directional")

    theorem: ClassVar[str] = "rays"

    choose_in_set = search_convex_set

    def __post_init__(self) -> None:
        prepare_ray_policy(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class DOSLB(LinearPolicy):
    """The doubly optimistic learner (Chen, Gangrade, Saligrama 2022). **It violates its limits**: for comparison only.

    On rays it is `ROFUL`, and on a finite set the directional `OPLB`, without the last step that makes those safe: a
    cost that is plausibly within its threshold is treated as if it were. Its authors bound the sum of its violations
    by the order of √T; it can violate a limit in every round (docs/explanation/comparison.md). Its regret is small or
    negative, since it does not pay for safety.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = DOSLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> decision = policy.decide(policy.start(), np.eye(2), RandomKey())
        >>> decision.step_size, bool(decision.pessimistic_cost[0] > 0.5)
        (1.0, True)
    """

    directions: int = 64
    """On a convex set: the number of initial directions of the search."""
    bounds_solver_gap: bool = True
    """On a convex set: bound `decision.solver_gap` by a small conic program; otherwise it is infinite."""
    optimism: Optimism = field(init=False, default="directional")
    per_action_bounds: bool = field(init=False, default=False)

    returns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        prepare_ray_policy(self)

    @cached_property
    def mixed_rounds(self) -> Rounds:
        """Its rounds on a finite set."""
        spec = self.rounds.spec._replace(rule=MIXTURE)
        return Rounds(spec, self.layout, self.settings, caches=self.rounds.caches)

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        return (self.rounds if actions.between else self.mixed_rounds).spec

    def choose_in_set(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision | None:
        if not isinstance(actions, ActionSet) or actions.between:
            return search_convex_set(self, state, actions, draw)
        listed = self.check_actions(actions.as_list())
        of_round = self.get_round_safe_action(listed)
        arrays = None if of_round is None else self.get_round_arrays(of_round)
        result = self.mixed_rounds.play(state.memory, listed.features, listed.eligible, draw, arrays)
        action = copy_action(GET_DECISION_VIEWS(result.layout, result.answer).action)
        decision = build_mixture_decision(result, action, self.thresholds, draw.round, why=OPTIMISTIC_COSTS)
        return attach_round(decision, result, state.memory, self.thresholds, of_round)
