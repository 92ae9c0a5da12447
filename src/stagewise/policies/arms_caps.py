"""CAPS over arms: certified posterior sampling, one safe mixture a round."""

from dataclasses import dataclass
from typing import ClassVar

from stagewise.kernels.loop.round import EVERY, MIXTURE, Form
from stagewise.models.arms import ArmRadius
from stagewise.policies.certified import Certified
from stagewise.policies.opb import OPB


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsCAPS(Certified, OPB):
    """Certified posterior sampling over arms: with probability 1 − δ every round's mixture has its costs in check.

    A draw of every arm's means proposes a safe mixture, which is played if the data certify that its regret is at most
    C times what is unknown of it; else the optimistic mixture, mixed back to what is safe, is (docs/theory/caps.md).
    Outcomes are taken to lie in [0, 1], and their intervals are by likelihood ratio, sharp where costs are rare:
    `radius="rates"`, which expects rates about as large as the limits, with most of δ for what costs may come to. With
    `noise` given outcomes may be any that are R-sub-Gaussian ("hoeffding").

    >>> from stagewise.problem.actions import Arms
    >>> from stagewise.problem.safe_action import SafeAction
    >>> policy = ArmsCAPS(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    >>> policy.decide(policy.start(), Arms(3)).dearest.round(6)
    array([0.2])
    """

    form: ClassVar[Form] = Form(arms=1, rule=MIXTURE, sampled=EVERY)
    theorem: ClassVar[str] = ""
    natural: ClassVar[ArmRadius] = "rates"

    def last_numbers(self) -> list[float]:
        return self.certificate_numbers(self.safe_action.reward)
