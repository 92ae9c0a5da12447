"""OPLB: optimistic in the reward, pessimistic in the costs, one safe mixture over any set of actions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels import linear, oplb
from stagewise.kernels.promise import DISPUTED, NOT_FINITE, NOTHING_SAFE, WARMING
from stagewise.policies.grades import graded, listing_of
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.listed import listed_of, programmed
from stagewise.policies.mixtures import drawn
from stagewise.policies.policy import State
from stagewise.problem.checks import one_of, positive, whole_at_least
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


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

    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = OPLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> policy.decide(policy.start(), np.eye(2)).probabilities.round(6)  # of both actions, then of the safe one
    array([0.5, 0. , 0.5])
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

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Draw an action from the best safe mixture."""
        listed, work = (
            self.fitting(listed_of(actions)),
            linear.work_size(self.dimension, self.thresholds.values.size, 0),
        )
        program = programmed(oplb.decide, self, state, listed, draw, np.empty(work))
        if program.code <= -DISPUTED:
            return self.explained(program.code, state, program.decision())
        if self.method == "lp" or -program.code in (WARMING, NOTHING_SAFE, NOT_FINITE):
            return program.decision()
        told, written = (self.flags, self.numbers, state.memory), program.written
        seen = listing_of(listed.features, listed.eligible, *told, program.sheet, written.flat, written.support)
        blend = graded(seen, program.blend, self.method, self.tolerance, self.budget)
        code = drawn(blend.probabilities, program.lottery)
        program.sheet[-self.dimension :] = listed.features[code] if code >= 0 else self.safe_action.features
        return program._replace(code=code, blend=blend).decision()
