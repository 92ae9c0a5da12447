"""AlwaysSafe: the policy that always plays the safe action."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.model import RoundSpec
from stagewise.policies.decisions import SafeActionBasis
from stagewise.policies.policy import NOTHING, BasePolicy, PlayedAction, PolicyState
from stagewise.policies.rounds import assemble_arrays
from stagewise.policies.settings import copy_settings, get_round_safe_action, parse_safe_action, set_derived
from stagewise.problem.checks import check_array
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason, ReasonDetails


@dataclass(frozen=True, kw_only=True, eq=False)
class AlwaysSafe(BasePolicy):
    """Play the safe action in every round and learn nothing: the baseline for every learner.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> policy = AlwaysSafe(safe_action=SafeAction(arm=1, cost=0.0), threshold=0.1)
        >>> policy.decide(policy.start(), None).action
        1
    """

    safe_action: SafeAction
    """The action that is played."""
    threshold: Threshold
    """The limits on expected costs: a number, one per constraint, or a mapping by name."""

    thresholds: Thresholds = field(init=False, repr=False)

    learns: ClassVar[str] = NOTHING
    has_parts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        copy_settings(self)
        set_derived(self, thresholds=resolve_thresholds(self.threshold, parse_safe_action(self.safe_action)))

    def start(self) -> PolicyState:
        return PolicyState(np.empty(0))

    def fits(self, memory: Floats) -> bool:
        return memory.shape == (0,)

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        safe, limits = self.safe_action, self.thresholds
        features, index = safe.features, None
        if safe.is_per_round:
            of_round = get_round_safe_action(actions, type(self).__name__)
            features, index = of_round.features, None if of_round.safe_index < 0 else of_round.safe_index
        action, index, step = (features.copy(), index, 0.0) if safe.arm is None else (safe.arm, safe.arm, 1.0)
        reward, cause = self.basis.optimistic_reward, ReasonDetails(FallbackReason.ALWAYS_SAFE)
        fields = (action, index, step, None, reward, limits.at_safe, limits.values, cause, draw.round)
        return Decision(*fields)._with(self.basis)

    @cached_property
    def basis(self) -> SafeActionBasis:
        """The data of its explanations: the safe action."""
        label = "safe action" if self.safe_action.arm is None else f"arm {self.safe_action.arm}"
        optimistic_reward = 1.0 if self.safe_action.reward is None else self.safe_action.reward
        return SafeActionBasis(self.thresholds, label, optimistic_reward, "always played")

    def check_logged_actions(self, actions: Any) -> Floats:
        """Return the logged actions; nothing is learned from them."""
        rows = check_array(actions, "the logged actions", InvalidActions)
        if rows.ndim == 0:
            rule = "a list with one action per row"
            raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "the value of the logged actions", rows.item(), rule)
        return rows

    def learn_in_place(self, state: PolicyState, played: PlayedAction, values: Floats) -> PolicyState:
        return state

    def learn_log(self, state: PolicyState, actions: Any, values: Any) -> PolicyState:
        return state

    def cache_offered(self, state: PolicyState, decision: Decision) -> PolicyState:
        return state

    def get_round_spec(self, actions: Any) -> RoundSpec:
        """Return how compiled loops play this policy."""
        return RoundSpec()

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        """Return the arrays of compiled loops: no models and no limits."""
        return assemble_arrays((0, 0, -1), np.zeros(3), np.zeros(dimension), ())
