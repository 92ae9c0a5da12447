"""The forecast of one case: gains and costs by day, action shares, and how often a limit is broken."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.forecast.cases import Case
from stagewise.launch.forecast.forecast_runs import DailyRuns
from stagewise.launch.forecast.prediction_bands import Band, compute_band

MARGIN = 0.01  # share of the safe action's reward that a gain must exceed to count as better


class GainVerdict(StrEnum):
    """What the 90 % bands say of the gain over the safe action."""

    BETTER = "better"
    """Better by more than `MARGIN` on every day from some day on."""
    SMALL_GAIN = "small_gain"
    """A certain gain in all, but on no last days by more than `MARGIN`."""
    WORSE = "worse"
    """A certain loss in all."""
    UNCLEAR = "unclear"
    """The band of the gain contains 0."""


@dataclass(frozen=True, eq=False)
class CaseForecast:
    """The forecast of one case, in the signals' own units."""

    case: Case
    gain: Band
    """Expected reward per user minus the safe action's, by day."""
    reward: Band
    """Observed reward per user, by day."""
    costs: dict[str, Band]
    """Observed cost per user of every limit, by day."""
    expected_costs: dict[str, Band]
    """True expected cost per user, which the limit applies to, by day."""
    action_shares: Floats
    """The share of users by action (days, K), averaged over runs."""
    total_gain: Band
    """Expected reward minus the safe action's, of the whole campaign."""
    total_reward: Band
    """Observed reward of the whole campaign."""
    total_costs: dict[str, Band]
    """Observed cost per user of every limit, over the whole campaign."""
    per_user: float
    """Expected reward per user over the whole campaign, averaged over runs."""
    safe_per_user: float
    """The same for the safe action, with the same users."""
    better_from: int | None
    """The first day from which the band of every day's gain is above MARGIN; None: there is none."""
    runs_over_limit: dict[str, float]
    """The share of runs in which the true expected cost of some round is over the limit."""
    runs_over_any_limit: float
    """The same for any limit."""
    safe_action_over_limit: dict[str, float]
    """The share of runs in whose world the safe action is over the limit for some users."""
    safe_cost_underdeclared: dict[str, float]
    """The share of runs in whose world the safe action costs more than declared for some users."""
    violations_if_assumptions_hold: float
    """The share of runs over a limit although everything declared of the safe action is true."""
    price: Band | None = None
    """Expected reward per user lost against the widest limits, over all days; None: these are the widest."""

    @property
    def is_gain_certain(self) -> bool:
        """Whether the whole band of the total gain is above 0."""
        return bool(self.total_gain.low > 0.0)

    @property
    def verdict(self) -> GainVerdict:
        """What the bands say of the gain."""
        if self.better_from is not None:
            return GainVerdict.BETTER
        if self.is_gain_certain:
            return GainVerdict.SMALL_GAIN
        return GainVerdict.WORSE if self.total_gain.high < 0.0 else GainVerdict.UNCLEAR

    @property
    def non_safe_share(self) -> Floats:
        """The share of users (days,) who do not get the safe action."""
        problem = self.case.problem
        assert problem is not None
        return np.asarray(1.0 - self.action_shares[:, list(problem.actions).index(problem.safe)])

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as JSON values."""
        names = [] if self.case.problem is None else list(self.case.problem.actions)
        return {
            "limits": self.case.values,
            "declared": self.case.declared,
            "verdict": str(self.verdict),
            "by_day": {
                "gain": self.gain.to_dict(),
                "reward": self.reward.to_dict(),
                "costs": {name: one.to_dict() for name, one in self.costs.items()},
                "expected_costs": {name: one.to_dict() for name, one in self.expected_costs.items()},
                "action_shares": {name: np.round(self.action_shares[:, k], 6).tolist() for k, name in enumerate(names)},
                "non_safe_share": np.round(self.non_safe_share, 6).tolist(),
            },
            "total": {
                "gain": self.total_gain.to_dict(),
                "reward": self.total_reward.to_dict(),
                "costs": {name: one.to_dict() for name, one in self.total_costs.items()},
                "reward_per_user": self.per_user,
                "safe_reward_per_user": self.safe_per_user,
            },
            "better_from_day": self.better_from,
            "runs_over_limit": {
                **self.runs_over_limit,
                "any": self.runs_over_any_limit,
                "violations_if_assumptions_hold": self.violations_if_assumptions_hold,
            },
            "safe_action_over_limit": self.safe_action_over_limit,
            "safe_cost_underdeclared": self.safe_cost_underdeclared,
            "price_per_user": None if self.price is None else self.price.to_dict(),
        }


def summarize_case(case: Case, days: DailyRuns, users: int, widest: DailyRuns | None) -> CaseForecast:
    """Return the forecast of a case; `widest` are the same runs under the widest limits, unless these are they."""
    problem = case.problem
    assert problem is not None
    (low, *lows), (length, *lengths) = problem.spans.tolist()
    gains, names = length * (days.reward - days.safe[:, :, 0]), list(problem.limits)
    observed = low + length * days.observed[:, :, 0]
    costs = {name: lows[j] + lengths[j] * days.observed[:, :, 1 + j] for j, name in enumerate(names)}
    price = None if widest is None else length * (widest.reward - days.reward).mean(axis=1)
    over_any = days.runs_over_limit.any(axis=1)
    return CaseForecast(
        case=case,
        gain=compute_band(gains),
        reward=compute_band(observed),
        costs={name: compute_band(values) for name, values in costs.items()},
        expected_costs={name: compute_band(lows[j] + lengths[j] * days.cost[:, :, j]) for j, name in enumerate(names)},
        action_shares=days.action_shares.mean(axis=0),
        total_gain=compute_band(users * gains.sum(axis=1)),
        total_reward=compute_band(users * observed.sum(axis=1)),
        total_costs={name: compute_band(values.mean(axis=1)) for name, values in costs.items()},
        per_user=float(low + length * days.reward.mean()),
        safe_per_user=float(low + length * days.safe[:, :, 0].mean()),
        better_from=find_better_from(compute_band(gains), (low + length * days.safe[:, :, 0]).mean(axis=0)),
        runs_over_limit={name: float(days.runs_over_limit[:, j].mean()) for j, name in enumerate(names)},
        runs_over_any_limit=float(over_any.mean()),
        safe_action_over_limit={name: float(days.safe_action_over_limit[:, j].mean()) for j, name in enumerate(names)},
        safe_cost_underdeclared={
            name: float(days.safe_cost_underdeclared[:, j].mean()) for j, name in enumerate(names)
        },
        violations_if_assumptions_hold=float(
            (over_any & ~days.safe_action_over_limit.any(axis=1) & ~days.safe_cost_underdeclared.any(axis=1)).mean()
        ),
        price=None if price is None else compute_band(price),
    )


def find_better_from(gain: Band, safe: Floats) -> int | None:
    """Return the first day, from 1, from which the band of every day's gain is above MARGIN times `safe` (days,).

    >>> gain = compute_band(np.array([[-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]]))
    >>> find_better_from(gain, np.array([10.0, 10.0, 10.0]))
    2
    >>> find_better_from(compute_band(np.array([[0.01], [0.02]])), np.array([10.0])) is None
    True
    """
    good = gain.low > MARGIN * np.abs(safe)
    later = np.logical_and.accumulate(good[::-1])[::-1]
    return int(np.argmax(later)) + 1 if later.any() else None
