"""Safe-LTS: linear Thompson sampling on the pessimistically safe set, the baseline of the paper's experiments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from stagewise.kernels.loop.round import RAYS, Form
from stagewise.kernels.signals.sampling import AUTHORS, PLAIN, THEORY
from stagewise.policies.linear import LinearPolicy
from stagewise.policies.settings import Optimism
from stagewise.problem.checks import one_of
from stagewise.problem.errors import InvalidProblem

INFLATIONS = {"theory": THEORY, "none": PLAIN, "authors": AUTHORS}


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeLTS(LinearPolicy):
    """Safe-LTS (Moradipari, Amani, Alizadeh, Thrampoulidis 2019), on rays from any safe action.

    Play the longest safe step on the ray that is best for a sampled θ̃ ~ N(θ̂, (inflation · β_r)² V⁻¹). The inflation is
    "theory" (1 + 2LS/(τ − c₀), what its authors' regret proof needs; that is for x₀ = 0 and equal noises), "none" (1;
    as safe, no regret proof, often better) or "authors" (√n/min(1, τ), as in the authors' public code).

    >>> import numpy as np
    >>> from stagewise.records.draw import Draw
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = SafeLTS(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
    >>> policy.decide(policy.start(), np.eye(2), Draw(seed=1)).dearest.round(6)
    array([0.5])
    """

    inflation: Literal["theory", "none", "authors"] = "theory"
    """How far θ̃ is drawn from θ̂, in radii: see above."""
    optimism: Optimism = field(init=False, repr=False, default="inflated")

    @property
    def sampling(self) -> int:
        return INFLATIONS[self.inflation]

    def __post_init__(self) -> None:
        one_of(self.inflation, tuple(INFLATIONS), "inflation")
        super().__post_init__()
        least = float((self.thresholds.signs * self.thresholds.values).min())
        if self.inflation == "authors" and not least > 0.0:
            raise InvalidProblem(
                f"inflation is 'authors' and a threshold is {least:g}; that inflation divides by the threshold, "
                "so it needs thresholds from above that are greater than 0"
            )

    form: ClassVar[Form] = Form(ridge=1, rule=RAYS, sampled=1)
    gone: ClassVar[Mapping[str, str]] = {"optimism": "from SafeLTS, which samples instead; leave it out"}
    inflates: ClassVar[bool] = False  # a sampled reward is not raised by the costs' uncertainty

    @property
    def hopes(self) -> bool:
        """A sampled reward is none that is promised to be large enough."""
        return False
