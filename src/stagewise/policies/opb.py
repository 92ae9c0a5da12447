"""OPB: optimistic in the reward, pessimistic in the costs, one safe mixture over arms."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.layout import ENFORCES_LIMITS, OFFERS_SAFE, SAFE_INDEX
from stagewise.engine.limits import HORIZON_EXCEEDED
from stagewise.engine.model import Rule
from stagewise.models.arms import ArmsModel, split_delta
from stagewise.policies.arms_policy import ArmsPolicy, eligible_arms, most_pulls
from stagewise.policies.arrays import NOTHING, assemble_arrays, build_round_spec
from stagewise.policies.baseline import check_safe_range, require_arm
from stagewise.policies.cost_bounds import compute_ceilings, parse_cost_bounds
from stagewise.policies.mixture_decision import build_mixture_decision
from stagewise.policies.policy import State
from stagewise.policies.safe_mixture import RoundActions, build_safe_decision
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import (
    CAUSES,
    build_constraint_settings,
    copy_settings,
    get_optimism_switch,
    set_derived,
)
from stagewise.problem.checks import check_bool, check_size
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.thresholds import resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import MIXTURE


@dataclass(frozen=True, kw_only=True, eq=False)
class OPB(ArmsPolicy, SafePolicy):
    """The paper's Algorithm 3: with probability 1 − δ the mixture of every round keeps its limits in expectation.

    The cost of an arm that was never pulled can be as large as `cost_bound`. Outcomes lie in [0, 1] and have
    likelihood-ratio intervals (`radius="kl"`), which are narrow where costs are rare, such as one opt-out in a hundred
    (docs/theory/arms.md). With `noise`, outcomes can be any R-sub-Gaussian numbers ("hoeffding"); "paper" assumes that
    they are 1-sub-Gaussian. Without a horizon the intervals hold for all rounds.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import Arms
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> policy.decide(policy.start(), Arms(3), RandomKey()).probabilities
        array([0.8, 0.2, 0. , 0. ])
    """

    separate_models: bool = False
    """Learn each signal when it arrives, without waiting for the others, in a model of its own."""

    model: ArmsModel = field(init=False, repr=False)

    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True
    theorem: ClassVar[str] = "arms"

    def __post_init__(self) -> None:
        copy_settings(self)
        check_bool(self.separate_models, "separate_models")
        self.set_default_radius()
        safe = require_arm(self.safe_action, check_size(self.arms, "arms"))
        thresholds = resolve_thresholds(self.threshold, safe)
        ceilings = compute_ceilings(thresholds, self.cost_bound, 0.0 if self.requires_unit_range else None)
        bounds = parse_cost_bounds(self.cost_bound, thresholds.names)
        if not np.isfinite(bounds).all():
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE,
                "cost_bound is None; it must be a number, since an arm without data could otherwise have "
                "any cost and would never be tried",
            )
        if self.requires_unit_range:
            check_safe_range(safe, thresholds, "rescale, or give `noise`")
        constraints = build_constraint_settings(
            thresholds, ceilings, self.reward_confidence_scale, self.cost_confidence_scale, self.check_assumptions
        )
        signals = count_shares(len(thresholds.names), check_bool(self.split_delta, "split_delta"))
        assumptions = (thresholds, signals, max(1.0, *bounds), safe.reward, thresholds.signed_safe)
        model = replace(self.build_model(*assumptions), separate_models=self.separate_models)
        head, blocks = (self.switches, 0, int(safe.arm or 0)), tuple(model.build_blocks())
        set_derived(self, thresholds=thresholds, model=model)
        layout, settings = assemble_arrays(head, constraints, NOTHING, blocks, last=self.last_numbers())
        spec = build_round_spec(blocks, self.rule, thresholds.values.size)
        set_derived(self, layout=layout, settings=settings, round_spec=spec)

    @property
    def switches(self) -> int:
        """The switches of its rule (see `kernels.constraints`)."""
        return OFFERS_SAFE | ENFORCES_LIMITS | get_optimism_switch(self)

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        signals = count_shares(m, self.split_delta)
        if self.radius != "rates":
            return (delta / signals,) * (1 + m)
        upper, other = split_delta(signals - 1)
        return (delta * 2.0 * other, *([delta * (upper + other)] * m))

    def last_numbers(self) -> list[float]:
        """Return the last numbers of the settings, which its rule reads."""
        return []

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        eligible, safe_index = eligible_arms(actions, self.arms), int(self.layout[SAFE_INDEX])
        if self.horizon is not None and most_pulls(self.round_spec.models, self.layout, state.memory) >= self.horizon:
            offer = RoundActions(self.arms, eligible, safe_index, safe_index, None)  # the radii hold up to the horizon
            return build_safe_decision(offer, self.thresholds, draw.round, CAUSES[HORIZON_EXCEEDED])
        result = self.play_round(self.round_spec, state, self.no_features, eligible, draw)
        arm = result.code if result.code >= 0 else safe_index
        return self.attach_cause(result, state, build_mixture_decision(result, arm, self.thresholds, draw.round))


def count_shares(costs: int, split_delta: bool) -> int:
    """Return the number of signals that share δ; without sharing, as for one cost."""
    return 1 + (costs if split_delta else 1)
