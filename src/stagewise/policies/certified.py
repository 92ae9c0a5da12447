"""What the policies under CAPS' certificate share: their settings, and what kernels read of them."""

import math
from dataclasses import dataclass, field

from stagewise.kernels.layout import CERTIFIED, OFFERS_SAFE, RETURNS
from stagewise.policies.settings import Optimism
from stagewise.problem.checks import LARGEST, number, positive
from stagewise.problem.errors import InvalidProblem


@dataclass(frozen=True, kw_only=True, eq=False)
class Certified:
    """Settings of a policy that plays what a draw proposes if its regret is certified (docs/theory/caps.md)."""

    spread: float = 0.7
    """ν: how wide the draws are, in posterior standard deviations; 0: greedy."""
    patience: float = 5.0
    """C ≥ 1: how much regret a proposal may cost, in units of what is unknown of it."""
    reward_bound: float = 1.0
    """The largest mean reward there is."""
    optimism: Optimism = field(init=False, default="inflated")
    reward_scale: float | None = field(init=False, default=None)
    cost_scale: float = field(init=False, default=1.0)

    @property
    def switches(self) -> int:
        """The switches of its rule: a choice is certified."""
        return OFFERS_SAFE | RETURNS | CERTIFIED

    def certificate_numbers(self, safe_reward: float | None) -> list[float]:
        """Return ν, C and the largest mean reward, checked."""
        if not 0.0 <= number(self.spread, "spread") < LARGEST:
            raise InvalidProblem(f"spread is {self.spread}; it is a number of standard deviations, 0 or more")
        if not 1.0 <= number(self.patience, "patience") < math.inf:
            raise InvalidProblem(
                f"patience is {self.patience}; it must be 1 or more, which is what the optimistic choice itself needs"
            )
        most = positive(self.reward_bound, "reward_bound")
        if safe_reward is not None and safe_reward > most:
            raise InvalidProblem(
                f"the safe action's reward is {safe_reward}, above reward_bound {most:g}; "
                "raise reward_bound to the largest mean reward there is"
            )
        return [float(self.spread), float(self.patience), most]
