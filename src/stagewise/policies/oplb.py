"""OPLB: one safe mixture of the listed actions per round."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from stagewise.engine.compile import Floats
from stagewise.engine.limits import BOUNDS_NOT_FINITE, CONTRADICTED, NO_CERTIFIED_ACTION, SAFE_ACTION_COST_UNCERTAIN
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.random import POLICY, uniform
from stagewise.policies.compiled_policy import RoundResult
from stagewise.policies.mixture_decision import BoundedMixture, build_mixture_decision, read_mixture, sample_code
from stagewise.policies.per_candidate_bounds import PerCandidateBounds
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import copy_action, parse_listed_actions
from stagewise.policies.settings import check_method
from stagewise.policies.socp import build_action_bounds, refine_mixture, solve_socp
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import MIXTURE


@dataclass(frozen=True, kw_only=True, eq=False)
class OPLB(PerCandidateBounds):
    """The paper's Algorithm 2, tractable: with probability 1 − δ every round's mixture keeps its limits in expectation.

        maximise E_π optimistic_reward(X)  subject to  E_π pessimistic_cost_j(X) ≤ τ_j for every j

    This is a linear program, whose solution mixes at most m + 1 actions (docs/theory/tractable-oplb.md). The guarantee
    is for the mixture, not for each action in it. `optimism="directional"` constrains the optimistic costs instead and
    then mixes with the safe action until the pessimistic costs are within the limits.

    `method="socp"` bounds the cost of the mixture's mean action instead of the mean of the actions' bounds, which
    allows more mixtures and solves one second-order cone program per round. `decision.solver_gap` bounds the error
    of the solver (docs/theory/oplb-in-three-grades.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = OPLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> policy.decide(policy.start(), np.eye(2)).probabilities.round(6)  # of both actions, then of the safe action
        array([0.5, 0. , 0.5])
    """

    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True
    theorem: ClassVar[str] = "mixtures"

    methods: ClassVar[tuple[str, ...]] = ("lp", "socp")

    method: Literal["lp", "socp"] = "lp"
    """The program that finds the mixture: see above."""

    def __post_init__(self) -> None:
        check_method(self.method, self.methods, "ExactOPLB")
        super().__post_init__()
        if self.method != "lp" and self.round_spec.per_round_safe:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "method is {method!r} and every round names its own safe action; leave method out, since "
                "only method 'lp' uses the declared cost",
                method=self.method,
            )
        if self.optimism == "directional" and self.method != "lp":
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "method is {method!r} and optimism is 'directional'; use method 'lp', since directional "
                "optimism leaves no convex set for the other methods",
                method=self.method,
            )
        if self.per_action_bounds and self.method != "lp":
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "per_action_bounds is True and method is {method!r}; use method 'lp', since the cone "
                "program uses the ellipsoid alone",
                method=self.method,
            )

        if self.separate_models and self.method != "lp" and self.thresholds.values.size > 1:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "method is {method!r} with separate_models=True and {size} limits; leave "
                "separate_models out or use method 'lp', since the cone program has one matrix for all "
                "costs",
                method=self.method,
                size=self.thresholds.values.size,
            )

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec for mixtures; the methods that call a solver are not compiled."""
        return self.round_spec if self.method == "lp" else None

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        listed = parse_listed_actions(actions)
        of_round = self.check_offered(listed)
        result, blend = self.play_round(self.round_spec, state, listed.features, listed.eligible, draw, of_round), None
        if (
            self.method != "lp"
            and -result.code not in (SAFE_ACTION_COST_UNCERTAIN, NO_CERTIFIED_ACTION, BOUNDS_NOT_FINITE)
            and result.code > -CONTRADICTED
        ):
            blend = self.refine(result, state.memory)
            result = result._replace(
                code=sample_code(blend.probabilities, uniform(draw.seed, draw.run, draw.round, POLICY, 0))
            )
        safe = self.safe_action.features if of_round is None else of_round.features
        action = copy_action(listed.features[result.code] if result.code >= 0 else safe)
        decision = build_mixture_decision(result, action, self.thresholds, draw.round, blend=blend)
        return self.attach_cause(result, state, decision, of_round)

    def refine(self, result: RoundResult, memory: Floats) -> BoundedMixture:
        """Return the solver's mixture where it is better than the linear program's."""
        return refine_mixture(build_action_bounds(result, memory), read_mixture(result), solve_socp)
