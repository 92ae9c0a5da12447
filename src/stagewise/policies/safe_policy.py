"""Settings of the policies that keep limits."""

from dataclasses import dataclass, field

from stagewise.engine.compile import Floats, Ints
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.compiled_policy import CompiledPolicy
from stagewise.policies.cost_bounds import UNIT, CostBound
from stagewise.policies.settings import Optimism
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeBasePolicy(BasePolicy):
    """A policy with optimistic rewards, pessimistic costs and a safe action."""

    safe_action: SafeAction
    """The action that is known to be safe before learning."""
    threshold: Threshold
    """The limits on every round's expected costs: a number, one per constraint, or a mapping by name."""
    delta: float = 0.05
    """The guarantee holds with probability 1 − δ."""
    optimism: Optimism = "inflated"
    """Raise optimistic rewards where costs are uncertain ("inflated"), or use optimistic costs ("directional")."""
    reward_confidence_scale: float | None = None
    """α_r of inflated optimism: α_r − 1 cost radii are added to the optimistic reward; None: the theorem's choice."""
    check_assumptions: bool = True
    """Test the declared assumptions online; a contradiction plays the safe action (docs/theory/watch.md)."""

    thresholds: Thresholds = field(init=False, repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class SafePolicy(SafeBasePolicy, CompiledPolicy):
    """Settings of a policy that keeps limits and runs on compiled kernels."""

    cost_bound: CostBound = UNIT
    """A-priori bound on mean costs, or one for each; "unit": 1, which is checked; None: no bound."""
    cost_confidence_scale: float = 1.0
    """α_c: the number of radii added to costs."""
    split_delta: bool = True
    """Share δ among the reward and the constraints; otherwise each has its own δ."""

    layout: Ints = field(init=False, repr=False)
    settings: Floats = field(init=False, repr=False)
