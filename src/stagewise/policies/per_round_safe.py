"""Policies whose safe action can differ by round: the action set names it."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import SAFE_INDEX, set_round_safe_action
from stagewise.policies.baseline import get_round_safe_action, reject_round_safe_action
from stagewise.policies.compiled_policy import CompiledPolicy
from stagewise.problem.checks import check_number, check_size
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import RoundSafeAction, SafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision

SET_SAFE = as_python(set_round_safe_action)
LOWEST = 0.0  # default lower bound of a mean reward


class PerRoundSafePolicy(CompiledPolicy):
    """A policy whose safe action can differ by round; its settings are then built for each round."""

    safe_action: SafeAction
    dimension: Any

    @cached_property
    def layouts_by_safe_index(self) -> dict[int, Ints]:
        """The layouts by the index of the safe action."""
        return {}

    @cached_property
    def token(self) -> object:
        """The mark of action sets that this policy has checked; copies share it."""
        return object()

    def check_offered(self, listed: Any) -> RoundSafeAction | None:
        """Check an action set (once, if it names no safe action), and return the safe action that it names."""
        if listed.fits is self.token:
            return None
        of_round = self.get_round_safe_action(self.check_actions(listed))
        if of_round is None:
            listed.fits = self.token
        return of_round

    def get_round_safe_action(self, listed: Any) -> RoundSafeAction | None:
        """Return the safe action that a set names, with signed costs; None: it is the same in every round."""
        kind = type(self).__name__
        if not self.round_spec.per_round_safe:
            reject_round_safe_action(listed, kind)
            return None
        of_round = get_round_safe_action(listed, kind)
        reward = self.safe_action.reward
        least = LOWEST if reward is None else float(reward)
        if of_round.reward is not None:
            least = max(least, check_number(of_round.reward, "safe_reward", InvalidActions))
        if of_round.safe_index < 0:
            self.check_actions(type(listed).from_view(of_round.features[np.newaxis]))
        return RoundSafeAction(
            of_round.safe_index, of_round.features.copy(), get_declared_costs(of_round.cost, self.thresholds), least
        )

    def get_round_arrays(self, of_round: RoundSafeAction) -> tuple[Ints, Floats]:
        settings = self.settings.copy()
        SET_SAFE(self.layout, settings, of_round.features, of_round.reward, of_round.cost)
        if of_round.safe_index not in self.layouts_by_safe_index:
            layout = self.layout.copy()
            layout[SAFE_INDEX] = of_round.safe_index
            self.layouts_by_safe_index[of_round.safe_index] = layout
        return self.layouts_by_safe_index[of_round.safe_index], settings

    def get_safe_action(self, decision: Decision) -> tuple[Any, int, float]:
        of_round: RoundSafeAction | None = decision._safe
        if of_round is None:
            return super().get_safe_action(decision)
        return of_round.features.copy(), of_round.safe_index, 0.0

    def check_round_safe_action(self, of_round: RoundSafeAction | None) -> RoundSafeAction | None:
        """Return the safe action of a played round; None: it is unknown."""
        if of_round is None or not self.round_spec.per_round_safe:
            return None
        sizes = (self.dimension, self.thresholds.values.size)
        try:
            fits = (of_round.features.size, of_round.cost.size) == sizes and -1 <= of_round.safe_index < 2**62
            fits = fits and math.isfinite(of_round.features.sum() + of_round.cost.sum() + of_round.reward)
        except (AttributeError, TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidOutcome(
                ErrorCode.UNKNOWN_DECISION,
                "the decision's safe action is {of_round}, which is not from a round of this {name}",
                of_round=safe_repr(of_round),
                name=type(self).__name__,
            )
        return of_round


def get_declared_costs(round_cost: Any, thresholds: Thresholds) -> Floats:
    """Return the signed upper bounds (m,) on the costs of a round's safe action, from the policy or the set."""
    signs, declared = thresholds.signs, thresholds.safe
    if round_cost is None:
        if declared is None:
            raise InvalidActions(
                ErrorCode.SAFE_COST_UNKNOWN,
                "the cost of the round's safe action has no bound; give SafeAction(cost=...) to the "
                "policy, or safe_cost= to the action set",
            )
        return np.asarray(thresholds.signed_safe)
    costs = signs * thresholds.costs(round_cost, InvalidActions, "safe_cost")
    for name, sign, cost, limit, value in zip(
        thresholds.names, signs, costs, thresholds.limits, thresholds.values, strict=True
    ):
        if not cost < limit:
            side = "below" if sign > 0 else "above"
            raise InvalidActions(
                ErrorCode.SAFE_ACTION_OVER_LIMIT,
                "safe_cost of {name!r} is {sign:g}, and its threshold is {value:g}; the cost of the "
                "round's safe action must be strictly {side} the threshold",
                name=name,
                sign=sign * cost,
                value=value,
                side=side,
            )
    if declared is not None and np.any(costs > signs * declared):
        raise InvalidActions(
            ErrorCode.CONFLICTING_SETTINGS,
            "safe_cost is {signs}, and SafeAction declares {declared} for all rounds; a round's cost "
            "can only be tighter, so declare the larger cost for all rounds, or none",
            signs=safe_repr((signs * costs).tolist()),
            declared=safe_repr(declared.tolist()),
        )
    return np.asarray(costs)


def get_dimension(value: Any, safe: SafeAction) -> int:
    """Return the number of features: the safe action's own, or the setting where it has none."""
    if not safe.is_per_round:
        if value is not None and check_size(value, "dimension") != safe.dimension:
            raise InvalidProblem(
                ErrorCode.UNUSED_SETTING,
                "dimension is {value} and the safe action has {dimension} features; leave dimension out, "
                "since the features determine it",
                value=safe_repr(value),
                dimension=safe.dimension,
            )
        return safe.dimension
    if value is None:
        raise InvalidProblem(
            ErrorCode.MISSING_VALUE,
            "the safe action has no features, so every round names its own; give dimension, the "
            "number of features of an action",
        )
    return check_size(value, "dimension")
