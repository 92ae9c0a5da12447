"""Sets of their own for candidates that come back: a setting of the linear policies, and what it shares δ into."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import NOISY, RARE
from stagewise.kernels.signals.own import edge, narrow, own_of
from stagewise.models.arms import lows_of
from stagewise.models.linear import LinearModel
from stagewise.models.part import parts_in
from stagewise.policies.baseline import baseline_of
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.policy import State
from stagewise.policies.settings import probability, settle
from stagewise.problem.checks import switch
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds

OWN_OF, NARROW = named(own_of), named(narrow)

# Shares of δ: the reward's ellipsoid, the costs' ellipsoids, the upper ends of the costs' own sets, all other own ends.
REWARD_SHARE, COST_SHARE, UPPER_SHARE, OTHER_SHARE = 0.1, 0.1, 0.65, 0.15


@dataclass(frozen=True, kw_only=True, eq=False)
class Sharpened(LinearPolicy):
    """A linear policy whose candidates may have sets of their own beside the ellipsoid (docs/theory/caps.md)."""

    own_sets: bool = False
    """Give candidates that come back sets of their own; pays where actions are the same in every round."""

    def __post_init__(self) -> None:
        roving = baseline_of(self.safe_action).of_the_round
        settle(self, form=self.form._replace(sharp=int(switch(self.own_sets, "own_sets") and not roving)))
        if self.own_sets and self.chosen_own and roving:
            raise InvalidProblem(
                "own_sets is True and every round's set names its own safe action; nothing is followed then, so leave "
                "own_sets out"
            )
        if self.own_sets and not switch(self.share_delta, "share_delta"):
            raise InvalidProblem(
                "own_sets is True and share_delta is False; leave share_delta out, since own sets stand beside the "
                "ellipsoids only where δ is shared among all of them"
            )
        super().__post_init__()

    @property
    def chosen_own(self) -> bool:
        """Whether `own_sets` is a setting of this policy."""
        return any(one.name == "own_sets" and one.init for one in fields(self))

    @property
    def keeps_own(self) -> bool:
        """Whether candidates have sets of their own: not where nothing is followed."""
        return self.own_sets and not self.safe_action.of_the_round

    @property
    def by_counts(self) -> bool:
        """Whether own sets are made of counts: of every signal, the reward too, outcomes are to lie in [0, 1]."""
        return False

    def assumed(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return what is assumed of the signals, with δ shared between ellipsoids and sets of their own."""
        model, m = super().assumed(safe, thresholds), thresholds.values.size
        if not self.keeps_own:
            return model
        ellipsoids = np.array([REWARD_SHARE, *np.full(m, COST_SHARE / m)])
        other = np.full(1 + m, OTHER_SHARE / (m + 2))
        upper = np.array([other[0], *np.full(m, UPPER_SHARE / m)])
        delta = probability(self.delta, "delta")
        ends = np.minimum(delta * np.array([other, upper]), 0.5)
        edges: Floats = -np.log(ends) if self.by_counts else np.vectorize(edge)(ends)
        own_sets = np.vstack([edges, lows_of(thresholds.signs)])
        sharp = RARE if self.by_counts else NOISY
        return replace(model, confidence=-np.log(delta * ellipsoids), sharp=sharp, own=own_sets)

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        if not self.keeps_own:
            return super().interval_shares
        cost = (COST_SHARE + UPPER_SHARE) / m + OTHER_SHARE / (m + 2)
        return (delta * (REWARD_SHARE + 2.0 * OTHER_SHARE / (m + 2)), *([delta * cost] * m))

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Take in a log as one batch: all its rows together narrow what is kept of candidates, not each on its way.

        The rows may stand in any order, so that what is seen before the last of them is no belief of any time.
        """
        if not self.keeps_own:
            return super().learn_log(state, actions, values)
        before = state.memory.copy()
        state = super().learn_log(state, actions, values)
        for part, old in zip(parts_in(self.layout, state.memory), parts_in(self.layout, before), strict=True):
            if part.sharp > 0:
                ends, kept = OWN_OF(part), OWN_OF(old)
                ends.lows[:], ends.highs[:] = kept.lows, kept.highs
                NARROW(part, self.settings, np.empty(part.width))
        return state
