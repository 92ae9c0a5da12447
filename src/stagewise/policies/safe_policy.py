"""The settings of every policy that keeps limits."""

from dataclasses import dataclass, field

from stagewise.kernels.compile import Floats, Ints
from stagewise.policies.ceilings import UNIT, CostBound
from stagewise.policies.compiled import CompiledPolicy
from stagewise.policies.learning import Learning
from stagewise.policies.settings import Optimism
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLearning(Learning):
    """A policy that hopes for rewards, fears for costs, and knows one action to be safe."""

    safe_action: SafeAction
    """The one action that is known to be safe before anything is learned."""
    threshold: Threshold
    """What every round's expected costs must stay under: a number, one per constraint, or a mapping from names."""
    delta: float = 0.05
    """The whole statement holds with probability 1 − δ."""
    optimism: Optimism = "inflated"
    """Hope for more where costs are uncertain ("inflated"), or by how cheap actions may be ("directional")."""
    reward_scale: float | None = None
    """α_r of inflated optimism: α_r − 1 radii of the costs add to the hoped reward; None: the theorem's choice."""
    watch: bool = True
    """Hold what was declared against the data; a contradiction plays the safe action (docs/theory/watch.md)."""

    thresholds: Thresholds = field(init=False, repr=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class SafePolicy(SafeLearning, CompiledPolicy):
    """The settings of a policy that keeps limits, and whose rounds are kernels."""

    cost_bound: CostBound = UNIT
    """A-priori bound on mean costs, or one for each. Left at "unit" it is 1, and checked; None: there is none."""
    cost_scale: float = 1.0
    """α_c: how many radii are added to costs."""
    share_delta: bool = True
    """Split δ over the reward and the constraints; if not, each has its own δ."""

    layout: Ints = field(init=False, repr=False)
    settings: Floats = field(init=False, repr=False)
