"""UCB: the unconstrained learner over arms."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.layout import ENFORCES_LIMITS
from stagewise.engine.model import RoundSpec
from stagewise.models.arms import ARMS
from stagewise.policies.arms_policy import ArmsPolicy, eligible_arms
from stagewise.policies.arrays import assemble_arrays
from stagewise.policies.base_policy import REWARD
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import build_ray_decision
from stagewise.policies.settings import build_constraint_settings, copy_settings, set_derived
from stagewise.policies.unconstrained import UnconstrainedPolicy
from stagewise.problem.checks import check_size
from stagewise.problem.thresholds import NO_THRESHOLDS
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.ray import RAY


@dataclass(frozen=True, kw_only=True, eq=False)
class UCB(ArmsPolicy, UnconstrainedPolicy):
    """The unconstrained learner over arms: play the largest mean plus radius. It ignores limits.

    `threshold` only measures the violations of its runs.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import Arms
        >>> policy = UCB(arms=2)
        >>> policy.decide(policy.start(), Arms(2)).action
        0
    """

    layout: Ints = field(init=False, repr=False)
    settings: Floats = field(init=False, repr=False)

    round_spec: ClassVar[RoundSpec] = RoundSpec((ARMS,), RAY)
    learns: ClassVar[str] = REWARD

    def __post_init__(self) -> None:
        copy_settings(self)
        self.set_default_radius()
        check_size(self.arms, "arms")
        model = self.build_model(NO_THRESHOLDS, 1, 1.0, 0.0, np.empty(0))
        constraints = build_constraint_settings(NO_THRESHOLDS, np.empty(0), None, 1.0)
        layout, settings = assemble_arrays(
            (ENFORCES_LIMITS, 0, -1), constraints, np.empty(0), tuple(model.build_blocks())
        )
        set_derived(self, layout=layout, settings=settings)
        _ = self.evaluation_thresholds

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        result = self.play_round(self.round_spec, state, self.no_features, eligible_arms(actions, self.arms), draw)
        decision = build_ray_decision(result, NO_THRESHOLDS, draw.round, "arm")
        return decision._replace(action=result.code, step_size=1.0)._with(decision._table)
