"""OPLB: one safe mixture of the listed actions per round."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.engine.limits import (
    BOUNDS_NOT_FINITE,
    CONTRADICTED,
    COST_SCALE,
    NO_CERTIFIED_ACTION,
    SAFE_ACTION_COST_UNCERTAIN,
)
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import CENTRE, OPTIMISTIC_REWARDS
from stagewise.models.ridge import LinearConfidenceSet, build_confidence_set
from stagewise.policies.decisions import (
    GET_COST_ROWS,
    TERMS,
    BoundedMixture,
    attach_round,
    build_mixture_decision,
    copy_action,
    parse_listed_actions,
    read_mixture,
    sample_code,
)
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import GET_KNOWN_ACTIONS, RoundResult
from stagewise.policies.settings import check_method
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.cone_program import Columns, compute_pessimistic_costs, find_best_mixture_in_cone
from stagewise.rules.mixture import MIXTURE

UNSOLVED = (
    SAFE_ACTION_COST_UNCERTAIN,
    NO_CERTIFIED_ACTION,
    BOUNDS_NOT_FINITE,
)  # codes of rounds that play only the safe action


@dataclass(frozen=True, kw_only=True, eq=False)
class OPLB(LinearPolicy):
    """The paper's Algorithm 2, tractable: with probability 1 − δ every round's mixture keeps its limits in expectation.

        maximise E_π optimistic_reward(X)  subject to  E_π pessimistic_cost_j(X) ≤ τ_j for every j

    This is a linear program, whose solution mixes at most m + 1 actions (docs/theory/tractable-oplb.md). The guarantee
    is for the mixture, not for each action in it. `optimism="directional"` constrains the optimistic costs instead and
    then mixes with the safe action until the pessimistic costs are within the limits.

    `method="socp"` bounds the cost of the mixture's mean action instead of the mean of the actions' bounds, which
    allows more mixtures and solves one second-order cone program per round. `decision.solver_gap` bounds the error
    of the solver (docs/theory/oplb-in-three-grades.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = OPLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> policy.decide(policy.start(), np.eye(2)).probabilities.round(6)  # of both actions, then of the safe action
        array([0.5, 0. , 0.5])
    """

    method: Literal["lp", "socp"] = "lp"
    """The program that finds the mixture: see above."""

    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True
    theorem: ClassVar[str] = "mixtures"
    methods: ClassVar[tuple[str, ...]] = ("lp", "socp")

    def __post_init__(self) -> None:
        check_method(self.method, self.methods, "ExactOPLB")
        super().__post_init__()
        several = self.separate_models and self.thresholds.values.size > 1
        conflicts = {
            "every round names its own safe action": (self.safe_action.is_per_round, "uses the declared cost"),
            "optimism is 'directional'": (self.optimism == "directional", "allows directional optimism"),
            "per_action_bounds is True": (self.per_action_bounds, "uses more than the ellipsoid"),
            "separate_models is True, with several limits": (several, "has a matrix for each cost"),
        }
        for fact, (is_set, ability) in conflicts.items():
            if is_set and self.method != "lp":
                raise InvalidProblem.conflict("method", self.method, fact, f"use method 'lp', since only it {ability}")

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec for mixtures; the methods that call a solver are not compiled."""
        return self.rounds.spec if self.method == "lp" else None

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        listed = parse_listed_actions(actions)
        of_round, blend = self.check_offered(listed), None
        arrays = None if of_round is None else self.get_round_arrays(of_round)
        result = self.rounds.play(state.memory, listed.features, listed.eligible, draw, arrays)
        if self.method != "lp" and -result.code not in UNSOLVED and result.code > -CONTRADICTED:
            blend = self.refine(result, state.memory)
            lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
            result = result._replace(code=sample_code(blend.probabilities, lottery))
        safe = self.safe_action.features if of_round is None else of_round.features
        action = copy_action(listed.features[result.code] if result.code >= 0 else safe)
        decision = build_mixture_decision(result, action, self.thresholds, draw.round, blend=blend)
        return attach_round(decision, result, state.memory, self.thresholds, of_round)

    def refine(self, result: RoundResult, memory: Floats) -> BoundedMixture:
        """Return the solver's mixture where it is better than the linear program's."""
        return refine_mixture(build_action_bounds(result, memory), read_mixture(result), solve_socp)


# The second-order cone program.


class ActionBounds(NamedTuple):
    """Bounds of the eligible actions and, last, of the safe action."""

    places: Ints  # (N,) their indices in the list of K; K: the safe action
    features: Floats  # (N, d)
    optimistic_reward: Floats  # (N,) optimistic rewards, each action by itself
    costs: Floats  # (m, N) estimates
    clipped: Floats  # (m, N) pessimistic costs, each action by itself, at most their ceilings
    belief: LinearConfidenceSet
    limits: Floats  # (m,)
    ceilings: Floats  # (m,)
    cost_confidence_scale: float

    @property
    def binding(self) -> Flags:
        """Which constraints can bind: those that the a-priori ceiling does not imply."""
        flags: Flags = self.ceilings > self.limits
        return flags

    @property
    def images(self) -> Floats:
        """Tz (n, N) of the actions' coordinates z, whose norm is a cost's width."""
        return compute_images(self.features, self.belief.cost_norm)

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite, so that a solver can be called."""
        radii = np.append(self.belief.cost_radii, self.belief.reward_radius)
        return all(bool(np.isfinite(part).all()) for part in (self.optimistic_reward, self.costs, radii, self.images))


def build_action_bounds(result: RoundResult, memory: Floats) -> ActionBounds:
    layout, settings, area, count = result.layout, result.settings, result.workspace, len(result.features)
    indices = np.append(np.flatnonzero(result.eligible) if result.eligible.size else np.arange(count), count)
    terms = TERMS(layout, settings)
    return ActionBounds(
        indices,
        np.vstack([result.features, GET_KNOWN_ACTIONS(layout, settings, memory).safe])[indices],
        area.rule[OPTIMISTIC_REWARDS, indices],
        area.bounds[1:, CENTRE, indices],
        GET_COST_ROWS(layout, area.rule)[:, indices],
        build_confidence_set(layout, settings, memory),
        terms.limits,
        terms.ceilings,
        float(settings[COST_SCALE]),
    )


def compute_images(features: Floats, norm: Floats) -> Floats:
    """Return Tz (n, N) of the actions' coordinates z; a row of zeros where nothing is learned."""
    images: Floats = norm @ features.T
    return images if len(images) else np.zeros((1, len(features)))


def build_columns(listing: ActionBounds, at_ceiling: Ints) -> tuple[Columns, Ints]:
    """Return the actions as columns, and again those that can be charged their ceiling instead of their bound.

        E c(X) ≤ C(q) + Σ r_i ceiling    for every way p = q + r to split a mixture, C being the pessimistic cost

    The second result maps columns to actions (N + R,).
    """
    bind, images = listing.binding, listing.images
    ceilings = np.tile(listing.ceilings[bind, np.newaxis], at_ceiling.size)
    columns = Columns(
        np.column_stack([listing.costs[bind], ceilings]),
        np.column_stack([images, np.zeros((len(images), at_ceiling.size))]),
        listing.cost_confidence_scale * listing.belief.cost_radii[bind],
        listing.limits[bind],
        listing.places.size - 1,
    )
    return columns, np.append(np.arange(listing.places.size), at_ceiling)


def build_mixture(
    listing: ActionBounds, columns: Columns, whose: Ints, shares: Floats, optimistic_reward: float, bound: float
) -> BoundedMixture:
    """Return a mixture of columns as a mixture of actions, with the lowest of its valid pessimistic costs.

    These are the costs of the columns, the cost of the mean action, and the mean of the actions' costs.
    """
    bind, count = listing.binding, listing.places.size
    probabilities, totals = np.zeros(listing.places[-1] + 1), np.zeros(shares.size)
    np.add.at(totals, whose, shares)
    probabilities[listing.places] = totals[:count]
    costs = np.minimum(listing.clipped @ totals[:count], listing.ceilings)
    costs[bind] = np.minimum(
        costs[bind], np.minimum(compute_pessimistic_costs(columns, shares), compute_pessimistic_costs(columns, totals))
    )
    return BoundedMixture(probabilities, optimistic_reward, costs, max(bound - optimistic_reward, 0.0))


def solve_socp(listing: ActionBounds) -> BoundedMixture:
    """Maximise E optimistic_reward(X) subject to the pessimistic costs of the mixture's mean action.

    At their ceilings all actions cost the same, so only the one with the largest optimistic reward can be charged its
    ceiling (docs/theory/oplb-in-three-grades.md).
    """
    finite = np.isfinite(listing.ceilings).all()
    columns, whose = build_columns(
        listing, np.array([np.argmax(listing.optimistic_reward)] if finite else [], dtype=np.int64)
    )
    best = find_best_mixture_in_cone(columns, listing.optimistic_reward[whose])
    return build_mixture(listing, columns, whose, best.shares, best.value, best.bound)


def refine_mixture(
    listing: ActionBounds, linear: BoundedMixture, solve: Callable[[ActionBounds], BoundedMixture]
) -> BoundedMixture:
    """Return the solver's mixture, or the linear program's, which is safe too, where that one is better.

    The solver is not called where no constraint binds. The optimistic reward of a mixture is at most the largest of a
    single action, by Jensen's inequality.
    """
    linear = linear._replace(solver_gap=max(float(np.max(listing.optimistic_reward)) - linear.optimistic_reward, 0.0))
    if linear.solver_gap == 0.0 or not listing.binding.any() or not listing.finite:
        return linear
    blend = solve(listing)
    if blend.optimistic_reward >= linear.optimistic_reward:
        return blend
    return linear._replace(solver_gap=max(blend.optimistic_reward + blend.solver_gap - linear.optimistic_reward, 0.0))
