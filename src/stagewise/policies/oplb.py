"""OPLB: optimistic in the reward, pessimistic in the costs, one safe mixture over any set of actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from stagewise.kernels.compile import Floats
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.loop.round import MIXTURE, Form
from stagewise.kernels.promise import DISPUTED, NOT_FINITE, NOTHING_SAFE, WARMING
from stagewise.policies.compiled import Chosen
from stagewise.policies.grades import best_blend, graded, listing_of
from stagewise.policies.mixtures import Blend, decision_from, drawn, solved_blend
from stagewise.policies.policy import State
from stagewise.policies.rays import listed_of, own
from stagewise.policies.settings import check_method, gone_with
from stagewise.policies.sharpened import Sharpened
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


@dataclass(frozen=True, kw_only=True, eq=False)
class OPLB(Sharpened):
    """The paper's Algorithm 2, tractable: with probability 1 − δ every round's mixture has its expected cost in check.

        maximise E_π hoped(X)  subject to  E_π dearest_j(X) ≤ τ_j for every j

    a linear program whose solution mixes at most m + 1 actions (docs/theory/tractable-oplb.md). The guarantee is for
    the mixture, not for each action in it. `optimism="directional"`: constrain the optimistic costs instead, then mix
    with the safe action until the pessimistic ones are in check.

    `method="socp"`: the pessimistic cost of the mixture's mean instead of the mean pessimistic cost, which lets more
    mixtures in; one second-order cone program a round. `decision.gap` says what may be missing
    (docs/theory/oplb-in-three-grades.md).

    >>> import numpy as np
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = OPLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> policy.decide(policy.start(), np.eye(2)).probabilities.round(6)  # of both actions, then of the safe one
    array([0.5, 0. , 0.5])
    """

    form: ClassVar[Form] = Form(ridge=1, rule=MIXTURE)
    mixes: ClassVar[bool] = True
    theorem: ClassVar[str] = "mixtures"

    methods: ClassVar[tuple[str, ...]] = ("lp", "socp")
    gone: ClassVar[Mapping[str, str]] = gone_with("ExactOPLB")

    method: Literal["lp", "socp"] = "lp"
    """How the mixture is found: see above."""

    def __post_init__(self) -> None:
        check_method(self.method, self.methods, "ExactOPLB")
        super().__post_init__()
        if self.method != "lp" and self.form.roving:
            raise InvalidProblem(
                f"method is {self.method!r} and every round's set names its own safe action; its declared cost cuts "
                "bounds that only method 'lp' reads, so leave method out"
            )
        if self.optimism == "directional" and self.method != "lp":
            raise InvalidProblem(
                f"method is {self.method!r} with optimism 'directional'; directional mixtures obey optimistic costs, "
                "and those of a mean action leave no convex set to choose from, so only method 'lp' plays them"
            )
        if self.own_sets and self.method != "lp":
            raise InvalidProblem(
                f"own_sets is True with method {self.method!r}; a cone program bounds the mean action by the ellipsoid "
                "alone, so only method 'lp' reads sets of single actions"
            )

        if self.apart and self.method != "lp" and self.thresholds.values.size > 1:
            raise InvalidProblem(
                f"method is {self.method!r} with apart=True and {self.thresholds.values.size} limits; its cone program "
                "has one matrix for all costs, so leave apart out, or use method 'lp'"
            )

    def form_for(self, actions: Any) -> Form | None:
        """Return mixtures; the methods that call a solver are not compiled."""
        return self.form if self.method == "lp" else None

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        listed = listed_of(actions)
        of_round = self.entered(listed)
        seen, blend = self.chosen(self.form, state, listed.features, listed.eligible, draw, of_round), None
        if self.method != "lp" and -seen.code not in (WARMING, NOTHING_SAFE, NOT_FINITE) and seen.code > -DISPUTED:
            blend = self.graded(seen, state.memory)
            seen = seen._replace(code=drawn(blend.probabilities, uniform(draw.seed, draw.run, draw.round, POLICY, 0)))
        safe = self.safe_action.features if of_round is None else of_round.features
        action = own(listed.features[seen.code] if seen.code >= 0 else safe)
        decision = decision_from(seen, action, self.thresholds, draw.round, blend=blend)
        return self.explained(seen, state, decision, of_round)

    def graded(self, seen: Chosen, memory: Floats) -> Blend:
        """Return a better mixture than the linear program's, where a solver finds one."""
        return graded(listing_of(seen, memory), solved_blend(seen), best_blend)
