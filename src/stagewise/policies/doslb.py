"""DOSLB: optimistic in the reward and in the costs. It violates limits."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from stagewise.engine.model import RoundSpec
from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.mixture_decision import GET_DECISION_VIEWS, OPTIMISTIC_COSTS, build_mixture_decision
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import copy_action
from stagewise.policies.settings import Optimism
from stagewise.problem.actions import ActionSet
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import MIXTURE


@dataclass(frozen=True, kw_only=True, eq=False)
class DOSLB(LCLUCB):
    """The doubly optimistic learner (Chen, Gangrade, Saligrama 2022). **It violates its limits**: for comparison only.

    On rays it is `ROFUL`, and on a finite set the directional `OPLB`, without the last step that makes those safe: a
    cost that is plausibly within its threshold is treated as if it were. Its authors bound the sum of its violations
    by the order of √T; it can violate a limit in every round (docs/explanation/comparison.md). Its regret is small or
    negative, since it does not pay for safety.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = DOSLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> decision = policy.decide(policy.start(), np.eye(2), RandomKey())
        >>> decision.step_size, bool(decision.pessimistic_cost[0] > 0.5)
        (1.0, True)
    """

    optimism: Optimism = field(init=False, default="directional")
    per_action_bounds: bool = field(init=False, default=False)

    returns: ClassVar[bool] = False
    theorem: ClassVar[str] = ""

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        return self.round_spec if actions.between else self.round_spec._replace(rule=MIXTURE)

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        if isinstance(actions, ActionSet) and not actions.between:
            listed = self.check_actions(actions.as_list())
            of_round, round_spec = (
                self.get_round_safe_action(listed),
                self.round_spec._replace(rule=MIXTURE),
            )
            result = self.play_round(round_spec, state, listed.features, listed.eligible, draw, of_round)
            action = copy_action(GET_DECISION_VIEWS(result.layout, result.answer).action)
            decision = build_mixture_decision(result, action, self.thresholds, draw.round, why=OPTIMISTIC_COSTS)
            return self.attach_cause(result, state, decision, of_round)
        return super().choose(state, actions, draw)
