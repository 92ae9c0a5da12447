"""Settings of the policies with CAPS' regret certificate."""

import math
from dataclasses import dataclass, field

from stagewise.engine.layout import CERTIFIED, ENFORCES_LIMITS, OFFERS_SAFE
from stagewise.policies.settings import Optimism
from stagewise.problem.checks import LARGEST, check_number, check_positive
from stagewise.problem.errors import ErrorCode, InvalidProblem


@dataclass(frozen=True, kw_only=True, eq=False)
class CertificateSettings:
    """Settings of a policy that plays posterior-sampling proposals with certified regret (docs/theory/caps.md)."""

    posterior_scale: float = 0.7
    """ν: the scale of posterior samples, in posterior standard deviations; 0: greedy."""
    certificate_factor: float = 5.0
    """C ≥ 1: the largest certified regret of a proposal, in units of its uncertainty."""
    reward_bound: float = 1.0
    """An upper bound on all mean rewards."""
    optimism: Optimism = field(init=False, default="inflated")
    reward_confidence_scale: float | None = field(init=False, default=None)
    cost_confidence_scale: float = field(init=False, default=1.0)

    @property
    def switches(self) -> int:
        """The switches of its rule: choices are certified."""
        return OFFERS_SAFE | ENFORCES_LIMITS | CERTIFIED

    def certificate_numbers(self, safe_reward: float | None) -> list[float]:
        """Return ν, C and the largest mean reward, checked."""
        if not 0.0 <= check_number(self.posterior_scale, "posterior_scale") < LARGEST:
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "posterior_scale is {posterior_scale}; it must be a number of standard deviations, at least 0",
                posterior_scale=self.posterior_scale,
            )
        if not 1.0 <= check_number(self.certificate_factor, "certificate_factor") < math.inf:
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "certificate_factor is {certificate_factor}; it must be at least 1, the factor of the "
                "optimistic choice itself",
                certificate_factor=self.certificate_factor,
            )
        most = check_positive(self.reward_bound, "reward_bound")
        if safe_reward is not None and safe_reward > most:
            raise InvalidProblem(
                ErrorCode.BOUND_EXCEEDED,
                "the safe action's reward is {safe_reward}, above reward_bound {most:g}; raise "
                "reward_bound to the largest mean reward",
                safe_reward=safe_reward,
                most=most,
            )
        return [float(self.posterior_scale), float(self.certificate_factor), most]
