"""What a run is judged by: the thresholds, the truth at the safe action, and the best that each round allowed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.bounds import per_limit_size
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.loop.best import best_mixture_of, best_on_rays
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import check_verbs
from stagewise.problem.action_set import ActionSet
from stagewise.problem.checks import array, missing
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolved
from stagewise.problem.words import percent, several
from stagewise.rules.optimum import best_point
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.context import ContextWorld
from stagewise.worlds.linear import LinearWorld
from stagewise.worlds.logged import LoggedWorld
from stagewise.worlds.table import TableWorld
from stagewise.worlds.user_world import UserWorld
from stagewise.worlds.world import NoisyWorld, World

BEST_ON_RAYS = named(best_on_rays)
OURS = (LinearWorld, ArmsWorld, TableWorld, ContextWorld, LoggedWorld)
WITHIN_ONE = ("bernoulli", "clipped-gaussian")  # outcomes that lie in [0, 1]
ASKED = ("costs", "actions_in", "means", "outcome", "description")  # of a world of someone's own


@dataclass(frozen=True, eq=False)
class Judge:
    """Who knows both the policy's promises and the world's truth."""

    world: World
    thresholds: Thresholds
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below
    limits: Floats  # (m,) signed thresholds; empty where there are none
    safe: Any  # features or arm; None: there is no safe action, or every round's set names its own
    safe_means: Floats  # (1 + m,) signed
    mixes: bool  # regret is measured against the best mixture

    def means(self, place: Any) -> Floats:
        """Return the true means of an action or arm, in the user's own direction."""
        return true_means(self.world, place)

    def means_at(self, index: int, actions: Any) -> Floats:
        """Return the same of what is listed under an index; of the safe action under −1 and at the end of the list."""
        if isinstance(self.world, UserWorld):
            place = index if 0 <= index < actions.count else actions.safe_of_round.place
            return self.world.means_of(place, actions.at(place))
        return self.means(self.safe_in(actions) if index in (-1, actions.count) else actions.at(index))

    def safe_in(self, actions: Any) -> Any:
        """Return the safe action of a round: features or arm; None: there is none."""
        return self.safe if actions.safe_of_round is None else actions.safe_of_round.features

    def safe_means_in(self, actions: Any) -> Floats:
        """Return its true means (1 + m,), signed."""
        return self.safe_means if actions.safe_of_round is None else self.means_at(-1, actions) * self.signs

    def safe_on_average(self) -> Floats:
        """Return what the safe action earns and costs (1 + m,), the mean over rounds, in the user's own direction."""
        world: Any = self.world
        if self.safe is not None:
            return self.safe_means * self.signs
        if type(world) in OURS and world.actions.names_safe:
            return np.asarray(world.actions.mean_at_safe(world.parameters))
        return np.full(1 + world.costs, np.nan)  # there is none

    def best(self, actions: Any) -> float:
        """Return the largest expected reward that this round's actions allowed under the thresholds."""
        if isinstance(self.world, LinearWorld) and not actions.listed:
            parameters = self.world.parameters * self.signs[:, None]
            return best_point(actions, parameters[0], parameters[1 : 1 + self.limits.size], self.limits)
        offered = actions.eligible if actions.eligible.size else slice(None)
        truths = np.column_stack([self.truths(actions)[:, offered], self.safe_means_in(actions)])
        return best_blend(truths, self.limits) if self.mixes else BEST_ON_RAYS(truths, self.limits)

    def truths(self, actions: Any) -> Floats:
        """Return the true means (1 + m, K) of all that is listed, signed."""
        if isinstance(self.world, ArmsWorld | TableWorld):
            return self.world.table * self.signs[:, None]
        if not isinstance(actions, ActionSet) or not actions.listed:
            raise InvalidProblem(
                f"the world's actions are {type(actions).__name__}; a world of one's own lists them as Arms, Finite or "
                "Rays, since regret is measured against the best mixture of what is listed"
            )
        means = np.column_stack([self.means_at(i, actions) for i in range(actions.count)])
        return means * self.signs[:, None]


def best_blend(truths: Floats, limits: Floats) -> float:
    """Return the largest expected reward of a mixture of actions with true means (1 + m, K + 1), the safe one last."""
    m, row = limits.size, truths.shape[1]
    rule, basis = np.empty((3 + 2 * m, row)), np.empty(per_limit_size(m) - m) if m > 1 else None
    return best_mixture_of(truths, limits, rule, basis, np.empty(m + 2), np.empty(m + 2, dtype=np.int64))


def judge(policy: Any, world: World) -> Judge:
    """Return who judges this policy in this world, or refuse the pair."""
    check_world(world)
    check_verbs(policy)
    arms = getattr(policy, "arms", None)
    if isinstance(world, ArmsWorld) and arms is not None and arms != world.actions.count:  # loops check no bounds
        raise InvalidProblem(f"the policy has {arms} arms and the world {world.actions.count}; they must agree")
    if isinstance(policy, ContextCAPS) and type(world) in OURS:
        check_users(policy, world)
    thresholds = judged_by(policy)
    world = world.under(thresholds.names) if isinstance(world, NoisyWorld) else world
    m = thresholds.values.size
    if m and m != world.costs:
        raise InvalidProblem(
            f"the policy has {several(m, 'limit')} and the world {several(world.costs, 'cost')}; they must agree"
        )
    check_reach(world, thresholds)
    signs = np.ones(1 + world.costs)
    signs[1 : 1 + m] = thresholds.signs
    action = getattr(policy, "safe_action", None)
    moving = type(world) in OURS and world.actions.names_safe  # type: ignore[attr-defined]
    safe = None if moving else safe_place(action, world)
    safe_means = np.zeros(1 + world.costs) if safe is None else true_means(world, safe) * signs
    limits = thresholds.signs * thresholds.values
    if moving:
        safe_means[:] = world.actions.most_at_safe(world.parameters * signs[:, None])  # type: ignore[attr-defined]
    assumed = not isinstance(world, UserWorld) or world.assumed
    if assumed and (moving or safe is not None) and m and not np.all(safe_means[1:] <= limits):
        raise InvalidProblem(
            f"the safe action really costs {(safe_means[1:] * signs[1:]).tolist()} in this world, above a threshold "
            f"of {thresholds.values.tolist()}; no policy can be safe there"
        )
    mixes = not isinstance(world, LinearWorld) or not world.offers_rays or bool(getattr(policy, "mixes", False))
    return Judge(world, thresholds, signs, limits, safe, safe_means, mixes)


def check_reach(world: Any, thresholds: Thresholds) -> None:
    """Refuse a limit beyond 1 where every outcome lies in [0, 1]: a run that is judged by it breaks nothing."""
    if getattr(world, "outcomes", None) not in WITHIN_ONE:
        return
    for name, sign, value in zip(thresholds.names, thresholds.signs, thresholds.values.tolist(), strict=True):
        if sign > 0.0 and value > 1.0:
            raise InvalidProblem(
                f"the threshold of {name!r} is {value:g}, above 1, the highest possible cost, since outcomes of this "
                f"world are {world.outcomes}{percent(value)}"
            )


def check_users(policy: ContextCAPS, world: Any) -> None:
    """Refuse a world whose users are told of otherwise than a policy in a context is told of its own."""
    if not isinstance(world, UserWorld) or world.actions.crossed:
        raise InvalidProblem(
            f"the world is {type(world).__name__}; actions in a context are played for users, in a "
            'ContextWorld(..., features="plain")'
        )
    users = world.actions
    for word, ours, theirs in (
        ("actions", policy.actions, users.count),
        ("numbers about a user", policy.context, users.context),
        ("divisions into segments", policy.segments, users.divisions),
    ):
        if ours != theirs:
            raise InvalidProblem(
                f"{word}: the problem has {ours} and the world {theirs}; a world's table has a row for each action, "
                "and in it a constant and then a number for each of the context's"
            )
    if users.safe != policy.safe_action.arm:
        raise InvalidProblem(
            f"the world's safe action is {users.safe}, and the problem's {policy.safe_action.arm}, counted from 0; "
            "they must agree"
        )


def true_means(world: Any, place: Any) -> Floats:
    """Return what a world answers for an action; one of someone's own may answer anything, and NaN breaks no limit."""
    means: Floats = world.means(place)
    if type(world) in OURS:
        return means
    given = array(means, "the world's means")
    if given.shape != (1 + world.costs,):
        raise InvalidProblem(
            f"the world's means have shape {given.shape}; they must be the reward's and then {world.costs} of costs"
        )
    return given


def check_world(world: Any) -> None:
    """Refuse what is no world, and a world that answers other means than the truth it is judged by."""
    lacking = missing(world, ASKED)
    if isinstance(world, type) or lacking:
        raise InvalidProblem(
            f"world is a {type(world).__name__} without {', '.join(lacking)}; it must be a LinearWorld, an ArmsWorld, "
            f"a TableWorld, or any object with {', '.join(ASKED)}"
        )
    for kind in OURS:
        if isinstance(world, kind) and type(world).means is not kind.means:
            raise InvalidProblem(
                f"{type(world).__name__} is a {kind.__name__} with means of its own, and its runs would be judged by "
                f"the {kind.__name__}'s; write it as a world by itself"
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


def safe_place(action: SafeAction | None, world: World) -> Any:
    """Return the safe action's features or arm."""
    if action is None:
        return np.zeros(world.parameters.shape[1]) if isinstance(world, LinearWorld) else None
    if isinstance(world, ArmsWorld):
        if action.arm is None or action.arm >= world.actions.count:
            raise InvalidProblem(f"the safe action is {action.arm!r}; it must be one of the world's arms")
        return action.arm
    if isinstance(world, TableWorld):
        return None if action.features is None else world.actions.features[world.row(action.features)]
    if not isinstance(world, LinearWorld):
        return action.features if action.arm is None else action.arm
    if action.features is None or action.features.size != world.parameters.shape[1]:
        raise InvalidProblem("the safe action's features do not fit the world's")
    return np.ascontiguousarray(action.features)
