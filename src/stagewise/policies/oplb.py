"""OPLB: optimistic in the reward, pessimistic in the costs, one safe mixture over any set of actions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels import linear, oplb
from stagewise.kernels.blend import odds_size
from stagewise.kernels.draw import POLICY, uniform
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.mixtures import decision_from_mixture
from stagewise.policies.policy import State
from stagewise.policies.rays import own
from stagewise.problem.actions import Arms, Finite, Listed
from stagewise.problem.convex import Convex
from stagewise.problem.errors import InvalidActions
from stagewise.problem.polytope import Box, Polytope
from stagewise.records.decision import Decision
from stagewise.records.draw import FIRST, Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class OPLB(LinearPolicy):
    """The paper's Algorithm 2, tractable: with probability 1 − δ every round's mixture has its expected cost in check.

        maximise E_π hoped(X)  subject to  E_π dearest_j(X) ≤ τ_j for every j

    a linear program whose solution mixes at most m + 1 actions (docs/theory/tractable-oplb.md). The guarantee is for
    the mixture, not for each action in it. `optimism="directional"`: constrain the optimistic costs instead, then mix
    with the safe action until the pessimistic ones are in check.
    """

    def decide(self, state: State, actions: Any, draw: Draw = FIRST) -> Decision:
        """Draw an action from the best safe mixture."""
        listed = self.fitting(listed_of(actions))
        flags, numbers = self.flags, self.numbers
        d, m, count = self.dimension, self.thresholds.values.size, len(listed.features)
        sheet = np.empty(linear.sheet_size(d, m, count))
        work = np.empty(linear.work_size(d, m, 0))
        flat, support = np.empty(odds_size(m, count)), np.empty(m + 2, dtype=np.int64)
        lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
        code = oplb.decide(
            listed.features, listed.eligible, flags, numbers, state.memory, sheet, work, flat, support, lottery
        )
        action = own(sheet[sheet.size - d :])
        news = bool(sheet[sheet.size - d - 1])
        return decision_from_mixture(
            code, action, flat, support, count, -1, listed.eligible, self.thresholds, draw.round, listed.features, news
        )


def listed_of(actions: Any) -> Listed:
    """Return listed actions: a table of numbers as a finite set, rays by their ends and polytopes by their vertices.

    That suffices: every other point is a mixture of these.
    """
    if isinstance(actions, Listed):
        return actions
    if isinstance(actions, Arms):
        raise InvalidActions("the actions are Arms, which have no features; this policy needs Finite or Rays")
    if isinstance(actions, Box | Polytope):
        return Finite.borrowed(actions.vertices)
    if isinstance(actions, Convex):
        raise InvalidActions(
            f"the actions are a {type(actions).__name__}, whose extreme points are infinitely many; this policy needs "
            "a list: Finite, Rays, Box or Polytope"
        )
    return Finite.borrowed(actions)
