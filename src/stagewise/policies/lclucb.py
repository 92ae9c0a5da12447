"""LC-LUCB, ROFUL and DOSLB: one point on a ray per round; on convex sets, the best ray by search."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.model import RoundSpec
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    CONTRADICTED,
    COST_SCALE,
    HALF,
    OPTIMISTIC_REWARDS,
    PLAUSIBLE,
    SAFE_ACTION_COST_UNCERTAIN,
    STEPS,
    compute_bonus_factors,
)
from stagewise.models.ridge import LinearConfidenceSet, build_confidence_set
from stagewise.policies.decisions import (
    OPTIMISTIC_COSTS,
    TERMS,
    attach_round,
    build_mixture_decision,
    build_ray_decision,
    copy_action,
)
from stagewise.policies.linear_policy import LinearPolicy, check_length, check_scale
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import GET_DECISION_VIEWS, RoundResult, Rounds
from stagewise.policies.settings import Optimism, check_norm
from stagewise.problem.actions import ALL, ActionSet
from stagewise.problem.checks import check_bool, check_integer_at_least
from stagewise.problem.convex import Convex
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import MIXTURE
from stagewise.rules.relaxation import (
    OptimisticProblem,
    Region,
    ascend_rays,
    build_directions,
    build_region,
    search_rays,
)

WEIGH = as_python(compute_bonus_factors)
TRADES = (0.25, 0.5, 1.0, 2.0, 4.0)  # λ of the first directions θ̂ − λ μ̂


def decide_in_convex(
    policy: LinearPolicy, actions: Any, directions: int, bounds_solver_gap: bool, state: PolicyState, draw: RandomKey
) -> Decision:
    """Return the best point found on a ray from the safe action into the set."""
    safe, convex_set = policy.safe_action.features, check_convex_set(policy, actions)

    def evaluate(targets: Floats) -> RoundResult:
        view = targets.view()
        view.flags.writeable = False
        return policy.rounds.play(state.memory, view, ALL, draw)

    def optimistic_reward(targets: Floats) -> Floats:
        return evaluate(targets).workspace.rule[OPTIMISTIC_REWARDS, :-1]

    belief = build_confidence_set(policy.layout, policy.settings, state.memory)
    target, bound = convex_set.find_exits(safe, convex_set.support(belief.reward[np.newaxis]) - safe), -math.inf
    result = evaluate(target)
    if result.code not in (-SAFE_ACTION_COST_UNCERTAIN, -BOUNDS_NOT_FINITE) and result.code > -CONTRADICTED:
        regions = list(iter_regions(policy, convex_set, belief, result))
        relaxed = [region.compute_upper_bound() for region in regions] if bounds_solver_gap else []
        bound = max((region.bound for region in relaxed), default=math.inf)
        points = [
            target,
            build_initial_points(convex_set, safe, belief, directions),
            *(region.point[np.newaxis] for region in relaxed),
        ]
        best = search_rays(
            optimistic_reward,
            convex_set,
            safe,
            np.vstack(points),
            compute_search_directions(convex_set, safe, belief),
            bound,
        )

        compared = PLAUSIBLE if policy.optimism == "directional" else STEPS

        def moves(far: Floats) -> Floats:
            step = float(evaluate(far[np.newaxis]).workspace.rule[compared, 0])
            points_up = [region.ascend(safe, safe + step * (far - safe)) for region in regions]
            return np.array([point for point in points_up if point is not None]).reshape(-1, safe.size)

        best = ascend_rays(optimistic_reward, convex_set, safe, best, moves, bound)
        result, target = evaluate(best.target[np.newaxis]), best.target[np.newaxis]
    decision = build_ray_decision(result, policy.thresholds, draw.round, "direction")
    decision = decision._replace(solver_gap=max(bound - decision.optimistic_reward, 0.0))
    return attach_round(decision._with(decision._table), result, state.memory, policy.thresholds)


def check_convex_set(policy: LinearPolicy, actions: Any) -> Convex:
    """Return the set in the policy's dimension; it must contain the safe action."""
    convex_set: Convex = actions.with_dimension(policy.dimension)
    name = type(convex_set).__name__
    if not convex_set.contains(policy.safe_action.features):
        excess = convex_set.excess(policy.safe_action.features)
        template = (
            "the safe action is outside the {name}, by {excess:.3g} of its size; a convex set must contain the safe "
            "action"
        )
        raise InvalidActions(ErrorCode.SAFE_ACTION_INVALID, template, name=name, excess=excess)
    check_scale(convex_set.longest, policy.model.ridge, f"the {name}", InvalidActions)
    if policy.radius == "paper":
        check_length(convex_set.longest, policy.action_bound, f"an action of the {name}")
    check_norm(f"an action of the {name}", convex_set.longest, policy.span, InvalidActions)
    return convex_set


def build_initial_points(actions: Convex, safe: Floats, belief: LinearConfidenceSet, directions: int) -> Floats:
    """Return starting points of the search: best for θ̂ − λ μ̂, along the axes of the widths, vertices, and a grid."""
    traded = [belief.reward - trade * cost for cost in belief.costs for trade in TRADES]
    _, axes = np.linalg.eigh(belief.reward_norm.T @ belief.reward_norm)
    leading = np.array([*traded, *-belief.costs, *axes.T[::-1], *-axes.T[::-1]])
    rays = build_directions(directions, safe.size, 0) @ actions.spread.T
    points = [actions.support(leading), actions.find_exits(actions.middle, rays)]
    return np.vstack([*points, *([actions.vertices] if actions.count else [])])


def compute_search_directions(actions: Convex, safe: Floats, belief: LinearConfidenceSet) -> Floats:
    """Return directions, scaled to the set's width, that may contain an optimum.

    Where the set does not bind, optima lie in the span of V θ̂ and V μ̂; where the widths do not matter, in that of
    P θ̂ and P μ̂, for a set like the ellipsoid of shape P.
    """
    square = belief.cost_norm.T @ belief.cost_norm
    square += 1e-9 * (np.trace(square) or 1.0) * np.eye(safe.size)  # in one dimension the matrix can be zero
    signals = np.vstack([belief.reward, belief.costs])
    axes = actions.spread
    rows = np.vstack([np.linalg.solve(square, signals.T).T, signals @ axes @ axes.T, actions.middle - safe, safe])
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    hints: Floats = np.linalg.norm(axes, 2) * rows / np.where(sizes > 0.0, sizes, 1.0)
    return hints


def iter_regions(
    policy: LinearPolicy, actions: Convex, belief: LinearConfidenceSet, result: RoundResult
) -> Iterator[Region]:
    """Yield regions that together contain every point at which a ray can be played or, if directional, compared.

    A pessimistic cost is within its limit where its curve is, or where the ceiling bounds it: on the share
    (limit − c₀)/(ceiling − c₀) of every ray. There is one region for each such share and one for the whole set.
    """
    safe, bounds = policy.safe_action.features, result.workspace.bounds
    _, limits, ceilings = TERMS(policy.layout, policy.settings)
    objective, first = build_objective(policy, belief, result, limits), bounds[1:, CENTRE, -1]
    scale = policy.settings[COST_SCALE]
    if policy.optimism == "directional":
        if np.any(bounds[1:, HALF, -1] != 0.0):
            objective = linearize_limits(objective, build_region(objective, actions, safe).widest)
        yield build_region(objective, actions, safe)
        return
    low = np.minimum(first + scale * bounds[1:, HALF, -1], ceilings)
    rises = ceilings - low
    shares = np.divide(limits - low, rises, out=np.ones(limits.size), where=rises > limits - low)
    for share in np.unique(shares[(shares > 0.0) & (shares < 1.0)]):
        yield build_region(objective.under(shares < share), actions, safe, float(share))
    yield build_region(objective.under(shares < 1.0), actions, safe)


def build_objective(
    policy: LinearPolicy, belief: LinearConfidenceSet, result: RoundResult, limits: Floats
) -> OptimisticProblem:
    """Return the objective and the limits on the cost curves."""
    factors = np.empty(limits.size)
    WEIGH(policy.layout, policy.settings, result.workspace.bounds, factors)
    lift = float(np.max(factors * belief.cost_radii))
    weights = policy.settings[COST_SCALE] * belief.cost_radii
    same = belief.reward_norm is belief.cost_norm
    return OptimisticProblem(
        belief.reward,
        belief.costs,
        (belief.cost_norm,) if same else (belief.reward_norm, belief.cost_norm),
        np.array([belief.reward_radius + lift]) if same else np.array([belief.reward_radius, lift]),
        -weights if policy.optimism == "directional" else weights,
        limits,
    )


def linearize_limits(objective: OptimisticProblem, widest: float) -> OptimisticProblem:
    """Return limits on the estimates alone: at most limit + ρ max ‖W x‖ at both ends of a ray, and so between them.

    Where the safe cost is unknown, a ray's optimistic cost can rise above the limit and fall below it again. The ray is
    then compared at points that violate the curved limit but not this one.
    """
    return objective._replace(
        limits=objective.limits - objective.cost_norm_weights * widest,
        cost_norm_weights=np.zeros(objective.cost_norm_weights.size),
    )


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
