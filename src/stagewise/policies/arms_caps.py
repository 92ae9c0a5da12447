"""CAPS over arms: certified posterior sampling of one safe mixture per round."""

from dataclasses import dataclass
from typing import ClassVar

from stagewise.engine.round import EVERY, MIXTURE, RoundSpec
from stagewise.models.arms import ArmRadius
from stagewise.policies.certificate_settings import CertificateSettings
from stagewise.policies.opb import OPB


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsCAPS(CertificateSettings, OPB):
    """Certified posterior sampling over arms: with probability 1 − δ every round's mixture keeps its limits.

    A posterior sample of every arm's means proposes a safe mixture. It is played if the data certify that its regret
    is at most C times its uncertainty; otherwise the optimistic mixture, mixed with the safe action until it is safe,
    is played (docs/theory/caps.md). Outcomes lie in [0, 1] and have likelihood-ratio intervals, which are narrow where
    costs are rare: `radius="rates"` is sharpest for rates near the limits and spends most of δ on the upper bounds of
    costs. With `noise`, outcomes can be any R-sub-Gaussian numbers ("hoeffding").

    Args:
        safe_action: The action that is known to be safe before learning.
        threshold: The limits on every round's expected costs: a number, one per constraint, or a mapping by name.
        arms: The number of arms.
        delta: The guarantee holds with probability 1 − δ.
        check_assumptions: Test the declared assumptions online; a contradiction plays the safe action
            (docs/theory/watch.md).
        cost_bound: A-priori bound on mean costs, or one for each; "unit": 1, which is checked; None: no bound.
        share_delta: Share δ among the reward and the constraints; otherwise each has its own δ.
        horizon: The number of rounds for which the intervals hold; None: all rounds.
        noise: R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1].
        radius: The kind of confidence interval of an arm (docs/theory/arms.md). None: the default for outcomes in [0,
            1], or "hoeffding" with `noise`.
        separate_signals: Learn each signal when it arrives, without waiting for the others, in a model of its own.
        posterior_scale: ν: the scale of posterior samples, in posterior standard deviations; 0: greedy.
        certificate_factor: C ≥ 1: the largest certified regret of a proposal, in units of its uncertainty.
        reward_bound: An upper bound on all mean rewards.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import Arms
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = ArmsCAPS(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
        >>> policy.decide(policy.start(), Arms(3)).pessimistic_cost.round(6)
        array([0.2])
    """

    round_spec: ClassVar[RoundSpec] = RoundSpec(arms=1, rule=MIXTURE, sampled=EVERY)
    theorem: ClassVar[str] = ""
    default_radius: ClassVar[ArmRadius] = "rates"

    def last_numbers(self) -> list[float]:
        return self.certificate_numbers(self.safe_action.reward)
