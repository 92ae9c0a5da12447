"""A safe action of the round: what a policy makes of a set that names one, and of what is declared of it."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import HOME, set_start
from stagewise.policies.baseline import named_start, refuse_start
from stagewise.policies.compiled import CompiledPolicy
from stagewise.problem.checks import number, shown, size_of
from stagewise.problem.errors import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.start import Start
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision

SET_START = named(set_start)
LOWEST = 0.0  # what a mean reward is at least where nothing is said: rewards lie in [0, 1]


class RovingPolicy(CompiledPolicy):
    """A policy whose safe action may be another one in every round: then its settings are made for each."""

    safe_action: SafeAction
    dimension: Any

    @cached_property
    def homes(self) -> dict[int, Ints]:
        """The layouts by where the safe action stands in the list."""
        return {}

    @cached_property
    def token(self) -> object:
        """What a set is marked with that this policy can choose from; a copy has the same settings, and the same."""
        return object()

    def entered(self, listed: Any) -> Start | None:
        """Check a set, once where rounds do not differ, and return the safe action that it names."""
        if listed.fits is self.token:
            return None
        start = self.started(self.fitting(listed))
        if start is None:
            listed.fits = self.token
        return start

    def started(self, listed: Any) -> Start | None:
        """Return the safe action that a set names, with signed costs; None: it is always the same."""
        kind = type(self).__name__
        if not self.form.roving:
            refuse_start(listed, kind)
            return None
        start = named_start(listed, kind)
        reward = self.safe_action.reward
        least = LOWEST if reward is None else float(reward)
        if start.reward is not None:
            least = max(least, number(start.reward, "safe_reward", InvalidActions))
        if start.place < 0:
            self.fitting(type(listed).borrowed(start.features[np.newaxis]))
        return Start(start.place, start.features.copy(), declared_costs(start.cost, self.thresholds), least)

    def at_start(self, start: Start) -> tuple[Ints, Floats]:
        settings = self.settings.copy()
        SET_START(self.layout, settings, start.features, start.reward, start.cost)
        if start.place not in self.homes:
            layout = self.layout.copy()
            layout[HOME] = start.place
            self.homes[start.place] = layout
        return self.homes[start.place], settings

    def safe_in(self, decision: Decision) -> tuple[Any, int, float]:
        start: Start | None = decision._start
        if start is None:
            return super().safe_in(decision)
        return start.features.copy(), start.place, 0.0

    def begun_at(self, start: Start | None) -> Start | None:
        """Return the safe action of a round that this policy has played; None: nothing is known of it."""
        if start is None or not self.form.roving:
            return None
        sizes = (self.dimension, self.thresholds.values.size)
        try:
            fits = (start.features.size, start.cost.size) == sizes and -1 <= start.place < 2**62
            fits = fits and math.isfinite(start.features.sum() + start.cost.sum() + start.reward)
        except (AttributeError, TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidOutcome(
                f"the decision's safe action is {shown(start)}, which is none of this {type(self).__name__}'s rounds"
            )
        return start


def declared_costs(given: Any, thresholds: Thresholds) -> Floats:
    """Return what a round's safe action costs at most (m,), signed: what the policy or the set declares."""
    signs, known = thresholds.signs, thresholds.safe
    if given is None:
        if known is None:
            raise InvalidActions(
                "nothing bounds the cost of the round's safe action; give the policy SafeAction(cost=...), or the set "
                "safe_cost="
            )
        return np.asarray(thresholds.signed_safe)
    costs = signs * thresholds.costs(given, InvalidActions, "safe_cost")
    for name, sign, cost, limit, value in zip(
        thresholds.names, signs, costs, thresholds.limits, thresholds.values, strict=True
    ):
        if not cost < limit:
            side = "below" if sign > 0 else "above"
            raise InvalidActions(
                f"safe_cost of {name!r} is {sign * cost:g}, which leaves no slack against its threshold {value:g}; the "
                f"round's safe action must be strictly {side} it"
            )
    if known is not None and np.any(costs > signs * known):
        raise InvalidActions(
            f"safe_cost is {shown((signs * costs).tolist())}, and SafeAction declares {shown(known.tolist())} for all "
            "rounds; this round's can only be tighter, so declare the larger one for all, or none"
        )
    return np.asarray(costs)


def dimension_of(given: Any, safe: SafeAction) -> int:
    """Return the number of features: the safe action's own, or the setting where it has none."""
    if not safe.of_the_round:
        if given is not None and size_of(given, "dimension") != safe.dimension:
            raise InvalidProblem(
                f"dimension is {shown(given)} and the safe action has {safe.dimension} features; leave it out, since "
                "the features say it"
            )
        return safe.dimension
    if given is None:
        raise InvalidProblem(
            "the safe action has no features, so every round's set names its own; then give dimension, the number of "
            "features that actions have"
        )
    return size_of(given, "dimension")
