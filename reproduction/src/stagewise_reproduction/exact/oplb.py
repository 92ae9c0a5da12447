"""OPLB with the paper's own optimisation problem: the optimistic reward, too, is that of the mixture's mean."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.workspace import CENTRE, compute_bonus_factors
from stagewise.models.ridge import LinearConfidenceSet
from stagewise.policies.decisions import BoundedMixture, read_mixture
from stagewise.policies.oplb import (
    OPLB,
    ActionBounds,
    build_action_bounds,
    build_columns,
    build_mixture,
    compute_images,
    refine_mixture,
)
from stagewise.policies.rounds import RoundResult
from stagewise.problem.checks import check_integer_at_least, check_positive
from stagewise_reproduction.exact.branch import find_best_by_norms
from stagewise_reproduction.exact.norms import Norms, compute_value

COMPUTE_BONUS_FACTORS = as_python(compute_bonus_factors)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactOPLB(OPLB):
    """OPLB with the paper's own optimisation problem, and our sets and bonus: a convex maximum, in few dimensions.

    Algorithm 2 exactly as printed, with the printed radii and bonus, is `printed.oplb.PrintedOPLB`.

    The search ends when value and bound are within `tolerance`, or after `budget` programs; `decision.solver_gap`
    bounds what may be missing (docs/theory/oplb-in-three-grades.md).

    >>> import stagewise as sw
    >>> policy = ExactOPLB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.5, noise=0.1, ridge=1.0)
    >>> decision = policy.decide(policy.start(), np.eye(2))
    >>> round(decision.optimistic_reward, 3), decision.solver_gap < 1e-3
    (2.591, True)
    """

    methods: ClassVar[tuple[str, ...]] = ("exact",)

    method: str = field(init=False, default="exact")  # type: ignore[assignment]
    tolerance: float = 1e-3
    """The optimality gap at which the search stops."""
    budget: int = 300
    """Maximal number of cone programs per round."""

    def __post_init__(self) -> None:
        check_positive(self.tolerance, "tolerance")
        object.__setattr__(self, "budget", check_integer_at_least(self.budget, "budget", 1))
        super().__post_init__()

    def refine(self, round_result: RoundResult, memory: Floats) -> BoundedMixture:
        """Return the best mixture of the search, or the linear program's, evaluated by the same reward."""
        listing, linear, factors = (
            build_action_bounds(round_result, memory),
            read_mixture(round_result),
            np.empty(self.thresholds.values.size),
        )
        COMPUTE_BONUS_FACTORS(round_result.layout, round_result.settings, round_result.workspace.bounds, factors)
        cost_weight = float(np.max(factors * listing.belief.cost_radii))
        rewards = round_result.workspace.bounds[0, CENTRE, listing.places]
        norms = build_norms(listing.belief, listing.features, rewards, cost_weight)
        linear = linear._replace(optimistic_reward=compute_value(norms, linear.probabilities[listing.places]))
        return refine_mixture(
            listing,
            linear,
            lambda action_bounds: find_exact_mixture(action_bounds, rewards, cost_weight, self.tolerance, self.budget),
        )


def build_norms(belief: LinearConfidenceSet, features: Floats, rewards: Floats, cost_weight: float) -> Norms:
    """Return the paper's reward <x_π, θ̂> + β_r ‖x_π‖_r + lift ‖x_π‖_c of mixtures of actions (N, d).

    Where the two norms differ, one of them is that of all d directions, and whitens the coordinates of both.
    """
    if belief.reward_norm is belief.cost_norm:
        whitened = compute_images(features, belief.reward_norm)
        return Norms(rewards, whitened, belief.reward_radius + cost_weight, np.zeros((1, len(whitened))), 0.0)
    larger, lesser, first, second = belief.reward_norm, belief.cost_norm, belief.reward_radius, cost_weight
    if len(larger) < len(lesser):
        larger, lesser, first, second = lesser, larger, second, first
    other: Floats = np.zeros((1, features.shape[1]))
    if len(lesser):
        other = np.asarray(np.linalg.solve(larger.T, lesser.T).T, dtype=np.float64)
    return Norms(rewards, compute_images(features, larger), first, other, second)


def find_exact_mixture(
    listing: ActionBounds, rewards: Floats, cost_weight: float, tolerance: float, budget: int
) -> BoundedMixture:
    """Maximise the paper's reward of the mixture's mean subject to its pessimistic costs, within the budget."""
    columns, selected = build_columns(listing, find_above_ceilings(listing))
    norms = build_norms(listing.belief, listing.features[selected], rewards[selected], cost_weight)
    best = find_best_by_norms(columns, listing.optimistic_reward[selected], norms, tolerance, budget)
    return build_mixture(listing, columns, selected, best.shares, best.value, best.bound)


def find_above_ceilings(listing: ActionBounds) -> Ints:
    """Return the actions whose pessimistic costs are above a ceiling."""
    all_columns, _ = build_columns(listing, np.empty(0, dtype=np.int64))
    widths = np.sqrt(np.sum(all_columns.images**2, axis=0))
    single_costs = all_columns.costs + all_columns.radii[:, np.newaxis] * widths
    return np.flatnonzero(np.any(single_costs > listing.ceilings[listing.binding, np.newaxis], axis=0))
