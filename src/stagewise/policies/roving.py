"""A safe action of the round: what a policy makes of a set that names one, and of what is declared of it."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import HOME, set_safe_of_round
from stagewise.policies.baseline import named_safe, refuse_safe
from stagewise.policies.compiled import CompiledPolicy
from stagewise.problem.checks import number, shown, size_of
from stagewise.problem.errors import InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.round_safe import SafeOfRound
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision

SET_SAFE = named(set_safe_of_round)
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

    def entered(self, listed: Any) -> SafeOfRound | None:
        """Check a set, once where rounds do not differ, and return the safe action that it names."""
        if listed.fits is self.token:
            return None
        of_round = self.safe_named_by(self.fitting(listed))
        if of_round is None:
            listed.fits = self.token
        return of_round

    def safe_named_by(self, listed: Any) -> SafeOfRound | None:
        """Return the safe action that a set names, with signed costs; None: it is always the same."""
        kind = type(self).__name__
        if not self.form.roving:
            refuse_safe(listed, kind)
            return None
        of_round = named_safe(listed, kind)
        reward = self.safe_action.reward
        least = LOWEST if reward is None else float(reward)
        if of_round.reward is not None:
            least = max(least, number(of_round.reward, "safe_reward", InvalidActions))
        if of_round.place < 0:
            self.fitting(type(listed).borrowed(of_round.features[np.newaxis]))
        return SafeOfRound(
            of_round.place, of_round.features.copy(), declared_costs(of_round.cost, self.thresholds), least
        )

    def at_safe(self, of_round: SafeOfRound) -> tuple[Ints, Floats]:
        settings = self.settings.copy()
        SET_SAFE(self.layout, settings, of_round.features, of_round.reward, of_round.cost)
        if of_round.place not in self.homes:
            layout = self.layout.copy()
            layout[HOME] = of_round.place
            self.homes[of_round.place] = layout
        return self.homes[of_round.place], settings

    def safe_in(self, decision: Decision) -> tuple[Any, int, float]:
        of_round: SafeOfRound | None = decision._safe
        if of_round is None:
            return super().safe_in(decision)
        return of_round.features.copy(), of_round.place, 0.0

    def safe_played(self, of_round: SafeOfRound | None) -> SafeOfRound | None:
        """Return the safe action of a round that this policy has played; None: nothing is known of it."""
        if of_round is None or not self.form.roving:
            return None
        sizes = (self.dimension, self.thresholds.values.size)
        try:
            fits = (of_round.features.size, of_round.cost.size) == sizes and -1 <= of_round.place < 2**62
            fits = fits and math.isfinite(of_round.features.sum() + of_round.cost.sum() + of_round.reward)
        except (AttributeError, TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidOutcome(
                f"the decision's safe action is {shown(of_round)}, which is none of this {type(self).__name__}'s rounds"
            )
        return of_round


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
