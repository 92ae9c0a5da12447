"""Safe-LTS: linear Thompson sampling on the pessimistically safe set, the baseline of the paper's experiments."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from stagewise.engine.model import Rule
from stagewise.models.ridge import AUTHORS, PLAIN, THEORY
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.policies.settings import Optimism
from stagewise.problem.checks import check_choice
from stagewise.problem.errors import InvalidProblem
from stagewise.rules.ray import SAMPLED_RAY

INFLATIONS = {"theory": THEORY, "none": PLAIN, "authors": AUTHORS}


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLTS(LinearPolicy):
    """Safe-LTS (Moradipari, Amani, Alizadeh, Thrampoulidis 2019), on rays from any safe action.

    Play the longest safe step on the ray that is best for a sampled θ̃ ~ N(θ̂, (inflation · β_r)² V⁻¹). The inflation is
    "theory" (1 + 2LS/(τ − c₀), as in its authors' regret proof, for x₀ = 0 and equal noises), "none" (1; equally safe,
    without a regret proof, often better) or "authors" (√n/min(1, τ), as in the authors' public code).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.records.random_key import RandomKey
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = SafeLTS(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> policy.decide(policy.start(), np.eye(2), RandomKey(seed=1)).pessimistic_cost.round(6)
        array([0.5])
    """

    inflation: Literal["theory", "none", "authors"] = "theory"
    """The scale of the samples of θ̃, in radii: see above."""
    optimism: Optimism = field(init=False, repr=False, default="inflated")
    per_action_bounds: bool = field(init=False, repr=False, default=False)

    rule: ClassVar[Rule] = SAMPLED_RAY
    inflates: ClassVar[bool] = False  # the uncertainty of costs does not raise a sampled reward

    @property
    def sampling(self) -> int:
        return INFLATIONS[self.inflation]

    def __post_init__(self) -> None:
        check_choice(self.inflation, tuple(INFLATIONS), "inflation")
        super().__post_init__()
        least = float((self.thresholds.signs * self.thresholds.values).min())
        if self.inflation == "authors" and not least > 0.0:
            remedy = "choose another, since this one divides by the threshold and needs upper limits greater than 0"
            raise InvalidProblem.conflict("inflation", self.inflation, f"a threshold is {least:g}", remedy)

    @property
    def is_optimistic(self) -> bool:
        """False: a sampled reward is not an upper confidence bound."""
        return False
