"""What is played in each run, and the oracle that scores it: true means, limits and the optimum of each round."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.mixture_program import compute_optimal_mixture_value, compute_optimal_value_on_rays
from stagewise.engine.workspace import per_limit_size
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.policy import check_policy_protocol
from stagewise.policies.problem import Problem
from stagewise.problem.checks import find_missing_attributes
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.formatting import format_count, suggest_percent
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import NO_THRESHOLDS, Thresholds, resolve_thresholds
from stagewise.rules.relaxation import compute_best_value
from stagewise.worlds.noisy_world import NoisyWorld
from stagewise.worlds.world import BaseWorld, World, as_world

BEST_ON_RAYS = as_python(compute_optimal_value_on_rays)


Family = World | Callable[[int], Any]  # a world; or run → its world, or its policy and its world


class PolicyWorlds:
    """The policy and the world of every run, in a form that can be sent to a worker."""

    def __init__(self, policy: Any, world: Any, drawn: dict[int, tuple[Any, Any]] | None = None) -> None:
        self.policy, self.world = policy.build_indexed_policy() if isinstance(policy, Problem) else policy, world
        self.drawn = drawn  # beforehand, for functions that cannot be sent
        draws = callable(world) and (isinstance(world, type) or bool(find_missing_attributes(world, ["means"])))
        self.fixed = drawn is None and not draws  # all runs have the same policy and world
        self.described = not find_missing_attributes(world, ["description"])
        self.sendable: bool | None = None  # not known yet

    def __call__(self, run: int) -> tuple[Any, Any]:
        if self.drawn is not None:
            return self.drawn[run]
        found = self.world if self.fixed else draw_world(self.world, run)
        both = found if isinstance(found, tuple) else (self.policy, found)
        if len(both) != 2 or both[0] is None:
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE,
                "policy is missing; give an object with start, decide and learn, or let the function "
                "that draws worlds return a policy and a world",
            )
        policy, world = both
        is_named = isinstance(world, NoisyWorld) and world.names
        return policy, world.reorder_costs(get_thresholds(policy).names) if is_named else world

    def make_picklable(self, runs: Sequence[int]) -> "PolicyWorlds":
        """Return the pairs of these runs so that another process can have them."""
        if self.sendable is None:
            try:
                self.sendable = bool(pickle.dumps(self.world))
            except (pickle.PicklingError, AttributeError, TypeError):
                self.sendable = False
        return self if self.sendable else PolicyWorlds(None, None, {run: self(run) for run in runs})

    def description(self) -> dict[str, Any]:
        """Return what is played in, as plain values."""
        world: Any = self.world
        if self.described:
            described: dict[str, Any] = world.description()
            return described if "family" in described else {"family": "fixed", "world": described}
        name = f"{getattr(world, '__module__', '')}.{getattr(world, '__qualname__', type(world).__qualname__)}"
        return {"family": "callable", "name": name, "draws_policies": self.policy is None}


def draw_world(family: Callable[[int], Any], run: int) -> Any:
    """Return what a function draws for a run, or say what it did instead."""
    if isinstance(family, type):
        rule = "an object of that class, or a function of a run's number"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "world", family, rule)
    try:
        return family(run)
    except StagewiseError:
        raise
    except Exception as reason:
        template = "the world function raised {name} for run {run}; it must return the run's world"
        raise InvalidProblem(ErrorCode.CALLBACK_FAILED, template, name=type(reason).__name__, run=run) from reason


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
    if isinstance(policy, SafeContextPosteriorSampling) and adapted.is_builtin:
        check_users(policy, adapted)
    thresholds = get_thresholds(policy)
    adapted, m = adapted.reorder_costs(thresholds.names), thresholds.values.size
    adapted = adapted.with_times(bool(getattr(policy, "needs_times", False)))
    if m and m != adapted.costs:
        template = "the policy has {m} and the world has {costs}; they must agree"
        data = {"m": format_count(m, "limit"), "costs": format_count(adapted.costs, "cost")}
        raise InvalidProblem(ErrorCode.WORLD_MISMATCH, template, **data)
    check_limits_bind(adapted, thresholds)
    signs = np.ones(1 + adapted.costs)
    signs[1 : 1 + m] = thresholds.signs
    safe = None if adapted.names_safe else adapted.get_safe_action(getattr(policy, "safe_action", None))
    safe_means = get_safe_means(adapted, safe, signs)
    limits = thresholds.signs * thresholds.values
    if adapted.assumed and m and not np.all(safe_means[1:] <= limits) and (adapted.names_safe or safe is not None):
        template = (
            "the safe action's true cost is {safe_means} in this world, above a threshold of "
            "{values}; no policy can be safe there"
        )
        data = {"safe_means": (safe_means[1:] * signs[1:]).tolist(), "values": thresholds.values.tolist()}
        raise InvalidProblem(ErrorCode.SAFE_ACTION_OVER_LIMIT, template, **data)
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
            template = (
                "the threshold of {name!r} is {value:g}, above 1, the highest possible cost, since "
                "outcomes of this world are {outcomes}{value_2}"
            )
            data = {"name": name, "value": value, "outcomes": world.outcomes, "value_2": suggest_percent(value)}
            raise InvalidProblem(ErrorCode.LIMIT_NEVER_BINDS, template, **data)


def get_thresholds(policy: Any) -> Thresholds:
    """Return what a policy's runs are judged by: of someone's own policy, its `threshold` and `get_safe_action`."""
    for name in ("evaluation_thresholds", "thresholds"):
        if isinstance(found := getattr(policy, name, None), Thresholds):
            return found
    safe = getattr(policy, "safe_action", None)
    if getattr(policy, "threshold", None) is None or not isinstance(safe, SafeAction):
        return NO_THRESHOLDS
    return resolve_thresholds(policy.threshold, safe)


def check_users(policy: SafeContextPosteriorSampling, world: BaseWorld) -> None:
    users = world.plain_users
    if users is None:
        need = 'a problem with a context needs ContextWorld(..., features="plain")'
        raise InvalidProblem(
            ErrorCode.WORLD_MISMATCH, "the world is a {type_name}; {need}", type_name=world.type_name, need=need
        )
    for word, ours, theirs in (
        ("actions", policy.actions, users.count),
        ("numbers about a user", policy.context, users.context),
        ("segment columns", policy.segments, users.segment_columns),
        ("the index of the safe action", policy.safe_action.arm, users.safe),
    ):
        if ours != theirs:
            template = (
                "{word}: the problem has {ours} and the world has {theirs}; a world's table has a row "
                "for each action, with a constant and then a weight for each context number"
            )
            raise InvalidProblem(ErrorCode.WORLD_MISMATCH, template, word=word, ours=ours, theirs=theirs)
