"""OPLB: optimistic in the reward, pessimistic in the costs, one safe mixture over any set of actions."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels import linear, oplb
from stagewise.kernels.blend import odds_size
from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.promise import NOT_FINITE, NOTHING_SAFE, WARMING
from stagewise.policies.cones import graded, listing_of
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.mixtures import SAFEST, Blend, decision_from_blend, drawn, solved_blend
from stagewise.policies.policy import State
from stagewise.policies.rays import own
from stagewise.problem.actions import Arms, Finite, Listed
from stagewise.problem.checks import one_of, positive, whole_at_least
from stagewise.problem.convex import Convex
from stagewise.problem.errors import InvalidActions, InvalidProblem
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

    `method="socp"`: the pessimistic cost of the mixture's mean instead of the mean pessimistic cost, which lets more
    mixtures in; one second-order cone program a round. `method="exact"`: the paper's own problem, the hoped reward
    being that of the mean too; climbed and closed in until value and bound are `tolerance` apart, or `budget` programs
    were solved. `decision.gap` says what may be missing (docs/theory/oplb-in-three-grades.md).
    """

    method: str = "lp"  # or "socp", "exact"
    tolerance: float = 1e-3  # of "exact": the gap that is good enough
    budget: int = 300  # of "exact": cone programs a round at most

    def __post_init__(self) -> None:
        one_of(self.method, ("lp", "socp", "exact"), "method")
        positive(self.tolerance, "tolerance")
        object.__setattr__(self, "budget", whole_at_least(self.budget, "budget", 1))
        super().__post_init__()
        if self.optimism == "directional" and self.method != "lp":
            raise InvalidProblem(
                f"method is {self.method!r} with optimism 'directional'; directional mixtures obey optimistic costs, "
                "and those of a mean action leave no convex set to choose from, so only method 'lp' plays them"
            )

    def decide(self, state: State, actions: Any, draw: Draw = FIRST) -> Decision:
        """Draw an action from the best safe mixture."""
        listed = self.fitting(listed_of(actions))
        program = programmed(self, state, listed, draw)
        code, sheet, flat, support, lottery = program
        d, m, count = self.dimension, self.thresholds.values.size, len(listed.features)
        blend = solved_blend(flat, support, m, count)
        if self.method != "lp" and -code not in (WARMING, NOTHING_SAFE, NOT_FINITE):
            told = (self.flags, self.numbers, state.memory)
            seen = listing_of(listed.features, listed.eligible, *told, sheet, flat, support)
            blend = graded(seen, blend, self.method, self.tolerance, self.budget)
            code = drawn(blend.probabilities, lottery)
            sheet[sheet.size - d :] = listed.features[code] if code >= 0 else self.safe_action.features
        return program.decision(self, listed, draw, code, blend)


class Programmed(NamedTuple):
    """What the linear program over a list came to."""

    code: int  # the action drawn, or minus the reason for the safe one
    sheet: Floats
    flat: Floats
    support: Ints
    lottery: float

    def decision(
        self, policy: LinearPolicy, listed: Listed, draw: Draw, code: int, blend: Blend, why: str = SAFEST
    ) -> Decision:
        """Return the decision to play what the code says, drawn from this mixture."""
        d = policy.dimension
        action, news = own(self.sheet[self.sheet.size - d :]), bool(self.sheet[self.sheet.size - d - 1])
        shown = (self.flat, self.support, len(listed.features), -1, listed.eligible)
        offered = listed.features
        return decision_from_blend(code, action, blend, *shown, policy.thresholds, draw.round, offered, news, why)


def programmed(policy: LinearPolicy, state: State, listed: Listed, draw: Draw) -> Programmed:
    """Solve the linear program over the listed actions."""
    d, m, count = policy.dimension, policy.thresholds.values.size, len(listed.features)
    sheet, work = np.empty(linear.sheet_size(d, m, count)), np.empty(linear.work_size(d, m, 0))
    flat, support = np.empty(odds_size(m, count)), np.empty(m + 2, dtype=np.int64)
    lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    told = (policy.flags, policy.numbers, state.memory)
    code = oplb.decide(listed.features, listed.eligible, *told, sheet, work, flat, support, lottery)
    return Programmed(code, sheet, flat, support, lottery)


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
