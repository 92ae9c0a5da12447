"""OPLB with the paper's own problem of a round: the hoped reward, too, is that of the mixture's mean."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from stagewise.kernels.bounds import CENTRE
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.promise import weigh
from stagewise.models.regression import Belief
from stagewise.policies.compiled import Chosen
from stagewise.policies.grades import Listing, blended, columns_of, graded, images_of, listing_of
from stagewise.policies.mixtures import Blend, solved_blend
from stagewise.policies.oplb import OPLB
from stagewise.problem.checks import positive, whole_at_least
from stagewise_reproduction.exact.branch import best_by_norms
from stagewise_reproduction.exact.norms import Norms, attained

WEIGH = named(weigh)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactOPLB(OPLB):
    """The paper's own problem of a round, with our sets and bonus: the maximum of a convex function, in few dimensions.

    Algorithm 2 to the letter, with the printed radii and bonus, is `printed.oplb.PrintedOPLB`.

    Climbed and closed in until value and bound are `tolerance` apart, or `budget` programs were solved; `decision.gap`
    says what may be missing (docs/theory/oplb-in-three-grades.md).

    >>> import stagewise as sw
    >>> policy = ExactOPLB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.5, noise=0.1, ridge=1.0)
    >>> decision = policy.decide(policy.start(), np.eye(2))
    >>> round(decision.hoped, 3), decision.gap < 1e-3
    (2.591, True)
    """

    methods: ClassVar[tuple[str, ...]] = ("exact",)

    method: str = field(init=False, default="exact")  # type: ignore[assignment]
    tolerance: float = 1e-3
    """The gap that is good enough."""
    budget: int = 300
    """Cone programs a round at most."""

    def __post_init__(self) -> None:
        positive(self.tolerance, "tolerance")
        object.__setattr__(self, "budget", whole_at_least(self.budget, "budget", 1))
        super().__post_init__()

    def graded(self, seen: Chosen, memory: Floats) -> Blend:
        """Return the best mixture that the search finds, or the linear program's, measured by the same reward."""
        listing, linear, factors = listing_of(seen, memory), solved_blend(seen), np.empty(self.thresholds.values.size)
        WEIGH(seen.layout, seen.settings, seen.workspace.bounds, factors)
        lift = float(np.max(factors * listing.belief.cost_radii))
        rewards = seen.workspace.bounds[0, CENTRE, listing.places]
        norms = norms_of(listing.belief, listing.features, rewards, lift)
        linear = linear._replace(hoped=attained(norms, linear.probabilities[listing.places]))
        return graded(listing, linear, lambda told: exact_blend(told, rewards, lift, self.tolerance, self.budget))


def norms_of(belief: Belief, features: Floats, rewards: Floats, lift: float) -> Norms:
    """Return the paper's reward <x_π, θ̂> + β_r ‖x_π‖_r + lift ‖x_π‖_c of mixtures of actions (N, d).

    Where the two norms differ, one of them is that of all d directions, and whitens the coordinates of both.
    """
    if belief.reward_norm is belief.cost_norm:
        whitened = images_of(features, belief.reward_norm)
        return Norms(rewards, whitened, belief.reward_radius + lift, np.zeros((1, len(whitened))), 0.0)
    whole, part, first, second = belief.reward_norm, belief.cost_norm, belief.reward_radius, lift
    if len(whole) < len(part):
        whole, part, first, second = part, whole, second, first
    other: Floats = np.zeros((1, features.shape[1]))
    if len(part):
        other = np.asarray(np.linalg.solve(whole.T, part.T).T, dtype=np.float64)
    return Norms(rewards, images_of(features, whole), first, other, second)


def exact_blend(listing: Listing, rewards: Floats, lift: float, tolerance: float, budget: int) -> Blend:
    """Maximise the paper's reward of the mixture's mean subject to its pessimistic costs, as far as the budget goes."""
    columns, whose = columns_of(listing, over_their_ceilings(listing))
    norms = norms_of(listing.belief, listing.features[whose], rewards[whose], lift)
    best = best_by_norms(columns, listing.hoped[whose], norms, tolerance, budget)
    return blended(listing, columns, whose, best.shares, best.value, best.bound)


def over_their_ceilings(listing: Listing) -> Ints:
    """Return the actions whose pessimistic costs are above a ceiling."""
    everyone, _ = columns_of(listing, np.empty(0, dtype=np.int64))
    widths = np.sqrt(np.sum(everyone.images**2, axis=0))
    alone = everyone.costs + everyone.radii[:, np.newaxis] * widths
    return np.flatnonzero(np.any(alone > listing.ceilings[listing.binding, np.newaxis], axis=0))
