"""What the runs of one case say: gains by day, costs, who gets what, and how often a limit is truly broken."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.launch.forecast.bands import Band, band
from stagewise.launch.forecast.cases import Case
from stagewise.launch.forecast.playing import Days

MARGIN = 0.01  # of the safe action's reward, which a gain must exceed to be called better


@dataclass(frozen=True, eq=False)
class Outlook:
    """One case, in the user's own units. What is `counted` is what will be seen; the rest are true expectations."""

    case: Case
    gain: Band
    """Expected reward of a user above the safe action's, by day."""
    reward: Band
    """Reward of a user as it will be counted, by day."""
    costs: dict[str, Band]
    """Every limited cost of a user as it will be counted, by day."""
    expected: dict[str, Band]
    """Every limited cost of a user as it is truly expected, which is what the limit is on, by day."""
    given: Floats
    """The shares of users who get each action (days, K), on average over runs."""
    total_gain: Band
    """Expected reward above the safe action's, of the whole campaign."""
    total_reward: Band
    """Reward of the whole campaign as it will be counted."""
    total_costs: dict[str, Band]
    """Every limited cost of a user as it will be counted, over the whole campaign."""
    per_user: float
    """Expected reward of a user over the whole campaign, on average over runs."""
    safe_per_user: float
    """The same of the safe action, with the same users."""
    better_from: int | None
    """The first day from which on the lower end of every day's band of gains is above MARGIN; None: there is none."""
    over: dict[str, float]
    """The share of runs in which some round's true expected cost was over the limit."""
    over_any: float
    """The same for any limit."""
    unsafe: dict[str, float]
    """The share of runs in whose world the safe action itself is over the limit, for some users."""
    untold: dict[str, float]
    """The share of runs in whose world the safe action costs more than was declared, for some users."""
    by_itself: float
    """The share of runs over a limit although all that was declared of the safe action is so."""
    price: Band | None = None
    """Expected reward of a user less than under the widest limits, over all days; None: these are the widest."""

    @property
    def told_from_noise(self) -> bool:
        """Whether the whole band of the gain of the campaign is above 0."""
        return bool(self.total_gain.low > 0.0)

    @property
    def away(self) -> Floats:
        """The share of users (days,) who get something else than the safe action."""
        problem = self.case.problem
        assert problem is not None
        return np.asarray(1.0 - self.given[:, list(problem.actions).index(problem.safe)])

    def plain(self) -> dict[str, Any]:
        """Return plain values."""
        names = [] if self.case.problem is None else list(self.case.problem.actions)
        return {
            "limits": self.case.values,
            "declared": self.case.declared,
            "by_day": {
                "gain": self.gain.plain(),
                "reward": self.reward.plain(),
                "costs": {name: one.plain() for name, one in self.costs.items()},
                "expected_costs": {name: one.plain() for name, one in self.expected.items()},
                "given": {name: np.round(self.given[:, k], 6).tolist() for k, name in enumerate(names)},
                "other_than_safe": np.round(self.away, 6).tolist(),
            },
            "total": {
                "gain": self.total_gain.plain(),
                "reward": self.total_reward.plain(),
                "costs": {name: one.plain() for name, one in self.total_costs.items()},
                "reward_of_a_user": self.per_user,
                "reward_of_a_user_safe": self.safe_per_user,
            },
            "better_from_day": self.better_from,
            "runs_over": {**self.over, "any": self.over_any, "though_all_declared_is_so": self.by_itself},
            "worlds_whose_safe_action_is_over": self.unsafe,
            "worlds_whose_safe_action_costs_more_than_declared": self.untold,
            "price_of_a_user": None if self.price is None else self.price.plain(),
        }


def outlook(case: Case, days: Days, users: int, widest: Days | None) -> Outlook:
    """Return what runs say; `widest`: the same runs under the widest limits, where these are others."""
    problem = case.problem
    assert problem is not None
    (low, *lows), (length, *lengths) = problem.spans.tolist()
    gains, names = length * (days.reward - days.safe[:, :, 0]), list(problem.limits)
    counted = low + length * days.counted[:, :, 0]
    costs = {name: lows[j] + lengths[j] * days.counted[:, :, 1 + j] for j, name in enumerate(names)}
    price = None if widest is None else length * (widest.reward - days.reward).mean(axis=1)
    broken = days.over.any(axis=1)
    return Outlook(
        case=case,
        gain=band(gains),
        reward=band(counted),
        costs={name: band(values) for name, values in costs.items()},
        expected={name: band(lows[j] + lengths[j] * days.cost[:, :, j]) for j, name in enumerate(names)},
        given=days.given.mean(axis=0),
        total_gain=band(users * gains.sum(axis=1)),
        total_reward=band(users * counted.sum(axis=1)),
        total_costs={name: band(values.mean(axis=1)) for name, values in costs.items()},
        per_user=float(low + length * days.reward.mean()),
        safe_per_user=float(low + length * days.safe[:, :, 0].mean()),
        better_from=better_from(band(gains), (low + length * days.safe[:, :, 0]).mean(axis=0)),
        over={name: float(days.over[:, j].mean()) for j, name in enumerate(names)},
        over_any=float(broken.mean()),
        unsafe={name: float(days.unsafe[:, j].mean()) for j, name in enumerate(names)},
        untold={name: float(days.untold[:, j].mean()) for j, name in enumerate(names)},
        by_itself=float((broken & ~days.unsafe.any(axis=1) & ~days.untold.any(axis=1)).mean()),
        price=None if price is None else band(price),
    )


def better_from(gain: Band, safe: Floats) -> int | None:
    """Return the first day, counted from 1, from which on every day's gain is surely worth naming; None: there is none.

    It is where the lower end of its band is above MARGIN of what the safe action brings (days,).

    >>> better_from(band(np.array([[-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])), np.array([10.0, 10.0, 10.0]))
    2
    >>> better_from(band(np.array([[0.01], [0.02]])), np.array([10.0]))
    """
    good = gain.low > MARGIN * np.abs(safe)
    later = np.logical_and.accumulate(good[::-1])[::-1]
    return int(np.argmax(later)) + 1 if later.any() else None
