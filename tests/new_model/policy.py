"""OPLB and LC-LUCB with logistic costs; it becomes `policies/rare.py` of a copy of the package."""

from dataclasses import dataclass
from typing import Any, ClassVar

from stagewise.kernels.models.logistic import LOGITS, MEANS
from stagewise.models.logistic import LogisticCosts

from stagewise.kernels.compile import Floats
from stagewise.kernels.loop.round import MIXTURE, RAYS, RoundSpec
from stagewise.models.linear_model import LinearModel
from stagewise.policies.lclucb import LCLUCB
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.policies.oplb import OPLB
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds


class Rare(LinearPolicy):
    """A linear reward, and costs in [0, 1] whose means are σ(<x, μ*>)."""

    theorem: ClassVar[str] = ""
    link: ClassVar[int]

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return the model of the signals."""
        if (thresholds.signs < 0.0).any():
            raise InvalidProblem(ErrorCode.UNSUPPORTED, "a threshold is from below; rates need thresholds from above")
        return LogisticCosts(**vars(super().build_model(safe, thresholds)), link=self.link)

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return the outcome as it is learned; costs must be in [0, 1] for the likelihood."""
        values = super().values(reward, cost)
        if not (values[1:].min() >= 0.0 and values[1:].max() <= 1.0):
            raise InvalidOutcome(
                ErrorCode.OUT_OF_RANGE, "the cost is {cost}, outside [0, 1]; a logistic model is for rates", cost=cost
            )
        return values


@dataclass(frozen=True, kw_only=True, eq=False)
class RareOPLB(Rare, OPLB):
    """OPLB with rates for costs: their means are mixed."""

    round_spec: ClassVar[RoundSpec] = RoundSpec(ridge=1, logistic=1, rule=MIXTURE)
    link: ClassVar[int] = MEANS


@dataclass(frozen=True, kw_only=True, eq=False)
class RareLCLUCB(Rare, LCLUCB):
    """LC-LUCB with rates for costs. Threshold and known costs are logits, log p/(1 − p): affine along a ray."""

    round_spec: ClassVar[RoundSpec] = RoundSpec(ridge=1, logistic=1, rule=RAYS)
    link: ClassVar[int] = LOGITS
