"""What a run is judged by: the thresholds, the truth at the safe action, and the best that each round allowed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.bounds import per_limit_size
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.loop.best import best_mixture_of, best_on_rays
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import check_verbs
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolved
from stagewise.problem.words import percent, several
from stagewise.rules.optimum import best_point
from stagewise.simulation.users_fit import check_users
from stagewise.worlds.answers import Answers
from stagewise.worlds.own import answering

BEST_ON_RAYS = named(best_on_rays)


@dataclass(frozen=True, eq=False)
class Judge:
    """Who knows both the policy's promises and the world's truth."""

    world: Answers
    thresholds: Thresholds
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below
    limits: Floats  # (m,) signed thresholds; empty where there are none
    safe: Any  # features or arm; None: there is no safe action, or every round's set names its own
    safe_means: Floats  # (1 + m,) signed
    mixes: bool  # regret is measured against the best mixture

    def means_at(self, index: int, actions: Any) -> Floats:
        """Return the true means (1 + m,) of what is listed under an index, in the user's own direction.

        The safe action stands under −1, and at the end of the list.
        """
        if index not in (-1, actions.count):
            return self.world.means_at(index, actions)
        if actions.safe_of_round is None or actions.safe_of_round.place < 0:
            return self.world.means(self.safe_in(actions))
        return self.world.means_at(actions.safe_of_round.place, actions)

    def safe_in(self, actions: Any) -> Any:
        """Return the safe action of a round: features or arm; None: there is none."""
        return self.safe if actions.safe_of_round is None else actions.safe_of_round.features

    def safe_means_in(self, actions: Any) -> Floats:
        """Return its true means (1 + m,), signed."""
        return self.safe_means if actions.safe_of_round is None else self.means_at(-1, actions) * self.signs

    def safe_on_average(self) -> Floats:
        """Return what the safe action earns and costs (1 + m,), the mean over rounds, in the user's own direction."""
        if self.safe is not None:
            return self.safe_means * self.signs
        return self.world.mean_at_safe() if self.world.names_safe else np.full(self.signs.size, np.nan)

    def best(self, actions: Any) -> float:
        """Return the largest expected reward that this round's actions allowed under the thresholds."""
        world: Any = self.world
        if world.knows_points and not actions.is_list:
            parameters = world.parameters * self.signs[:, np.newaxis]
            return best_point(actions, parameters[0], parameters[1 : 1 + self.limits.size], self.limits)
        offered = actions.eligible if actions.eligible.size else slice(None)
        truths = np.column_stack([self.truths(actions)[:, offered], self.safe_means_in(actions)])
        return best_mixture_value(truths, self.limits) if self.mixes else BEST_ON_RAYS(truths, self.limits)

    def truths(self, actions: Any) -> Floats:
        """Return the true means (1 + m, K) of all that is listed, signed."""
        return self.world.truths(actions) * self.signs[:, np.newaxis]


def best_mixture_value(truths: Floats, limits: Floats) -> float:
    """Return the largest expected reward of a mixture of actions with true means (1 + m, K + 1), the safe one last."""
    m, row = limits.size, truths.shape[1]
    rule, basis = np.empty((3 + 2 * m, row)), np.empty(per_limit_size(m) - m) if m > 1 else None
    return best_mixture_of(truths, limits, rule, basis, np.empty(m + 2), np.empty(m + 2, dtype=np.int64))


def judge(policy: Any, world: Any) -> Judge:
    """Return who judges this policy in this world, or refuse the pair."""
    place = answering(world)
    check_verbs(policy)
    place.check(policy)
    if isinstance(policy, ContextCAPS) and place.known:
        check_users(policy, place)
    thresholds = judged_by(policy)
    place, m = place.under(thresholds.names), thresholds.values.size
    if m and m != place.costs:
        raise InvalidProblem(
            f"the policy has {several(m, 'limit')} and the world {several(place.costs, 'cost')}; they must agree"
        )
    check_limits_bind(place, thresholds)
    signs = np.ones(1 + place.costs)
    signs[1 : 1 + m] = thresholds.signs
    safe = None if place.names_safe else place.safe_place(getattr(policy, "safe_action", None))
    safe_means = safe_means_of(place, safe, signs)
    limits = thresholds.signs * thresholds.values
    if place.assumed and m and not np.all(safe_means[1:] <= limits) and (place.names_safe or safe is not None):
        raise InvalidProblem(
            f"the safe action really costs {(safe_means[1:] * signs[1:]).tolist()} in this world, above a threshold "
            f"of {thresholds.values.tolist()}; no policy can be safe there"
        )
    mixes = not place.offers_rays or bool(getattr(policy, "mixes", False))
    return Judge(place, thresholds, signs, limits, safe, safe_means, mixes)


def safe_means_of(world: Answers, safe: Any, signs: Floats) -> Floats:
    """Return the true means (1 + m,) of the safe action, signed: the largest ones where every round has its own."""
    if world.names_safe:
        return world.most_at_safe(signs)
    return np.zeros(signs.size) if safe is None else world.means(safe) * signs


def check_limits_bind(world: Answers, thresholds: Thresholds) -> None:
    """Refuse a limit beyond 1 where every outcome lies in [0, 1]: a run that is judged by it breaks nothing."""
    if not world.within_one:
        return
    for name, sign, value in zip(thresholds.names, thresholds.signs, thresholds.values.tolist(), strict=True):
        if sign > 0.0 and value > 1.0:
            raise InvalidProblem(
                f"the threshold of {name!r} is {value:g}, above 1, the highest possible cost, since outcomes of this "
                f"world are {world.outcomes}{percent(value)}"
            )


def judged_by(policy: Any) -> Thresholds:
    """Return what a policy's runs are judged by: of someone's own policy, its `threshold` and `safe_action`."""
    for name in ("watched", "thresholds"):
        if isinstance(found := getattr(policy, name, None), Thresholds):
            return found
    safe = getattr(policy, "safe_action", None)
    if getattr(policy, "threshold", None) is None or not isinstance(safe, SafeAction):
        return NO_THRESHOLDS
    return resolved(policy.threshold, safe)
