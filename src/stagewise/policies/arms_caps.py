"""CAPS over arms: certified posterior sampling of one safe mixture per round."""

from dataclasses import dataclass
from typing import ClassVar

from stagewise.engine.model import Rule
from stagewise.models.arms import ArmRadius
from stagewise.policies.certificate_settings import CertificateSettings
from stagewise.policies.opb import OPB
from stagewise.rules.certified import CERTIFIED_MIXTURE


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsCAPS(CertificateSettings, OPB):
    """Certified posterior sampling over arms: with probability 1 − δ every round's mixture keeps its limits.

    A posterior sample of every arm's means proposes a safe mixture. It is played if the data certify that its regret
    is at most C times its uncertainty; otherwise the optimistic mixture, mixed with the safe action until it is safe,
    is played (docs/theory/caps.md). Outcomes lie in [0, 1] and have likelihood-ratio intervals, which are narrow where
    costs are rare: `radius="rates"` is sharpest for rates near the limits and spends most of δ on the upper bounds of
    costs. With `noise`, outcomes can be any R-sub-Gaussian numbers ("hoeffding").

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import Arms
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = ArmsCAPS(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> policy.decide(policy.start(), Arms(3)).pessimistic_cost.round(6)
        array([0.2])
    """

    rule: ClassVar[Rule] = CERTIFIED_MIXTURE
    theorem: ClassVar[str] = ""
    default_radius: ClassVar[ArmRadius] = "rates"

    def last_numbers(self) -> list[float]:
        return self.certificate_numbers(self.safe_action.reward)
