"""The oracle that scores a run: true means, limits and the optimum of each round."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.mixture_program import compute_optimal_mixture_value, compute_optimal_value_on_rays
from stagewise.engine.workspace import per_limit_size
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import check_policy_protocol
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import format_count, suggest_percent
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolve_thresholds
from stagewise.rules.convex import compute_best_value
from stagewise.simulation.context_checks import check_users
from stagewise.worlds.base_world import BaseWorld
from stagewise.worlds.custom_world import as_world

BEST_ON_RAYS = as_python(compute_optimal_value_on_rays)


@dataclass(frozen=True, eq=False)
class Oracle:
    """The policy's limits together with the world's true means."""

    world: BaseWorld
    thresholds: Thresholds
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below
    limits: Floats  # (m,) signed thresholds; empty where there are none
    safe: Any  # features or arm; None: there is no safe action, or every round's set names its own
    safe_means: Floats  # (1 + m,) signed
    mixes: bool  # regret is measured against the best mixture

    def means_at(self, index: int, actions: Any) -> Floats:
        """Return the true means (1 + m,) of the action with an index, in the user's direction.

        The safe action has the index −1 and that after the list.
        """
        if index not in (-1, actions.count):
            return self.world.means_at(index, actions)
        if actions.round_safe_action is None or actions.round_safe_action.safe_index < 0:
            return self.world.means(self.safe_in(actions))
        return self.world.means_at(actions.round_safe_action.safe_index, actions)

    def safe_in(self, actions: Any) -> Any:
        """Return the safe action of a round: features or arm; None if there is none."""
        return self.safe if actions.round_safe_action is None else actions.round_safe_action.features

    def safe_means_in(self, actions: Any) -> Floats:
        """Return the signed true means (1 + m,) of the round's safe action."""
        return self.safe_means if actions.round_safe_action is None else self.means_at(-1, actions) * self.signs

    def safe_on_average(self) -> Floats:
        """Return the means (1 + m,) of the safe action, averaged over rounds, in the user's direction."""
        if self.safe is not None:
            return self.safe_means * self.signs
        return self.world.mean_at_safe() if self.world.names_safe else np.full(self.signs.size, np.nan)

    def best(self, actions: Any) -> float:
        """Return the largest expected reward that the round's actions allow under the limits."""
        world: Any = self.world
        if world.has_linear_means and not actions.is_list:
            parameters = world.parameters * self.signs[:, np.newaxis]
            return compute_best_value(actions, parameters[0], parameters[1 : 1 + self.limits.size], self.limits)
        offered = actions.eligible if actions.eligible.size else slice(None)
        truths = np.column_stack([self.truths(actions)[:, offered], self.safe_means_in(actions)])
        return compute_best_mixture(truths, self.limits) if self.mixes else BEST_ON_RAYS(truths, self.limits)

    def truths(self, actions: Any) -> Floats:
        """Return the signed true means (1 + m, K) of all listed actions."""
        return self.world.truths(actions) * self.signs[:, np.newaxis]


def compute_best_mixture(truths: Floats, limits: Floats) -> float:
    """Return the largest expected reward of a mixture of actions with true means (1 + m, K + 1), the safe one last."""
    m, row = limits.size, truths.shape[1]
    rule, basis = np.empty((3 + 2 * m, row)), np.empty(per_limit_size(m) - m) if m > 1 else None
    return compute_optimal_mixture_value(truths, limits, rule, basis, np.empty(m + 2), np.empty(m + 2, dtype=np.int64))


def build_oracle(policy: Any, world: Any) -> Oracle:
    """Return the oracle of a policy in a world, or raise if they do not fit."""
    adapted = as_world(world)
    check_policy_protocol(policy)
    adapted.check(policy)
    if isinstance(policy, ContextCAPS) and adapted.is_builtin:
        check_users(policy, adapted)
    thresholds = get_thresholds(policy)
    adapted, m = adapted.reorder_costs(thresholds.names), thresholds.values.size
    if m and m != adapted.costs:
        raise InvalidProblem(
            ErrorCode.WORLD_MISMATCH,
            "the policy has {m} and the world has {costs}; they must agree",
            m=format_count(m, "limit"),
            costs=format_count(adapted.costs, "cost"),
        )
    check_limits_bind(adapted, thresholds)
    signs = np.ones(1 + adapted.costs)
    signs[1 : 1 + m] = thresholds.signs
    safe = None if adapted.names_safe else adapted.get_safe_action(getattr(policy, "safe_action", None))
    safe_means = get_safe_means(adapted, safe, signs)
    limits = thresholds.signs * thresholds.values
    if adapted.assumed and m and not np.all(safe_means[1:] <= limits) and (adapted.names_safe or safe is not None):
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_OVER_LIMIT,
            "the safe action's true cost is {safe_means} in this world, above a threshold of "
            "{values}; no policy can be safe there",
            safe_means=(safe_means[1:] * signs[1:]).tolist(),
            values=thresholds.values.tolist(),
        )
    mixes = not adapted.offers_rays or bool(getattr(policy, "mixes", False))
    return Oracle(adapted, thresholds, signs, limits, safe, safe_means, mixes)


def get_safe_means(world: BaseWorld, safe: Any, signs: Floats) -> Floats:
    """Return the signed true means (1 + m,) of the safe action: the largest ones if every round has its own."""
    if world.names_safe:
        return world.max_at_safe(signs)
    return np.zeros(signs.size) if safe is None else world.means(safe) * signs


def check_limits_bind(world: BaseWorld, thresholds: Thresholds) -> None:
    """Raise if a limit is beyond 1 and every outcome lies in [0, 1], since it could not be violated."""
    if not world.is_bounded:
        return
    for name, sign, value in zip(thresholds.names, thresholds.signs, thresholds.values.tolist(), strict=True):
        if sign > 0.0 and value > 1.0:
            raise InvalidProblem(
                ErrorCode.LIMIT_NEVER_BINDS,
                "the threshold of {name!r} is {value:g}, above 1, the highest possible cost, since "
                "outcomes of this world are {outcomes}{value_2}",
                name=name,
                value=value,
                outcomes=world.outcomes,
                value_2=suggest_percent(value),
            )


def get_thresholds(policy: Any) -> Thresholds:
    """Return what a policy's runs are judged by: of someone's own policy, its `threshold` and `get_safe_action`."""
    for name in ("evaluation_thresholds", "thresholds"):
        if isinstance(found := getattr(policy, name, None), Thresholds):
            return found
    safe = getattr(policy, "safe_action", None)
    if getattr(policy, "threshold", None) is None or not isinstance(safe, SafeAction):
        return NO_THRESHOLDS
    return resolve_thresholds(policy.threshold, safe)
