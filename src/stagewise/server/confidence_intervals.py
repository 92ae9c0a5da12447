"""Means of signals with confidence intervals that hold at all times together."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

from stagewise.engine.compile import as_python
from stagewise.models.intervals import compute_average_interval
from stagewise.problem.signals import Limit, Reward, scale_limit

AVERAGE_INTERVAL = as_python(compute_average_interval)
TOLERANCE = 1e-12


class ConfidenceInterval(NamedTuple):
    """A mean with its confidence interval; the mean is None without outcomes."""

    mean: float | None
    low: float
    high: float
    outcomes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as a JSON object."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "count": self.outcomes}


class RunningMean:
    """The number and sum of outcomes of a signal."""

    __slots__ = ("count", "total")

    def __init__(self, count: int = 0, total: float = 0.0) -> None:
        self.count, self.total = count, total

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value

    def merge(self, other: "RunningMean") -> "RunningMean":
        """Return the sum of both."""
        return RunningMean(self.count + other.count, self.total + other.total)

    @property
    def mean(self) -> float | None:
        """The mean; None without outcomes."""
        return self.total / self.count if self.count else None

    def interval(self, signal: Reward | Limit, delta: float) -> ConfidenceInterval:
        """Return the mean with its 1 − δ interval, in the signal's units."""
        return compute_interval(self.count, self.total, signal, delta)


@lru_cache(maxsize=8192)  # all but the newest intervals of a time series repeat
def compute_interval(count: int, total: float, signal: Reward | Limit, delta: float) -> ConfidenceInterval:
    """Return the mean of `count` outcomes with this sum, and its interval.

    It contains the average of the means of these outcomes, which may differ, with δ/2 for each end. Outcomes lie in
    [low, high] and are scaled to [0, 1].
    """
    low, width = float(signal.low), float(signal.high) - float(signal.low)
    if not count:
        return ConfidenceInterval(None, low, low + width, 0)
    mean = total / count
    middle = (mean - low) / width
    share = math.log(2.0 / delta)
    ends = AVERAGE_INTERVAL(float(count), middle, share, share)
    return ConfidenceInterval(mean, low + width * ends.low, low + width * ends.high, count)


def compute_limit_interval(closed: RunningMean, pending: RunningMean, limit: Limit, delta: float) -> ConfidenceInterval:
    """Return the interval of a limit, from closed windows or from all reported outcomes.

    Both intervals hold together; the one nearer to the limit is returned. Early on, the closed decisions are those
    with an early report, so their mean alone says little.
    """
    closed_interval, combined = closed.interval(limit, delta), closed.merge(pending)
    default_total, width = pending.count * (limit.high if limit.at_least else limit.low), limit.high - limit.low
    if abs(pending.total - default_total) <= TOLERANCE * pending.count * width:  # nothing is reported of them
        return closed_interval
    all_interval = combined.interval(limit, delta)
    if all_interval.mean is None or (
        all_interval.high >= closed_interval.high if limit.at_least else all_interval.low <= closed_interval.low
    ):
        return closed_interval
    low, high = (
        (min(closed_interval.low, all_interval.mean), all_interval.high)
        if limit.at_least
        else (all_interval.low, max(closed_interval.high, all_interval.mean))
    )
    return ConfidenceInterval(all_interval.mean, low, high, combined.count)


def get_scaled_threshold(limit: Limit) -> float:
    """Return the threshold of a limit, scaled to [0, 1]."""
    scaled: Any = scale_limit("limit", limit)
    return float(getattr(scaled, "value", scaled))


def get_threshold(limit: Limit) -> float:
    """Return the threshold of a limit in its own units."""
    return limit.low + (limit.high - limit.low) * get_scaled_threshold(limit)


class RecentMean:
    """The outcomes since their number last doubled, and those of the doubling before.

    These are the newest half to three quarters of all. Doubling i has the share 1/i(i+1) of δ, so all intervals hold
    together.
    """

    def __init__(self) -> None:
        self.before, self.now, self.began = RunningMean(), RunningMean(), 1

    def add(self, value: float) -> None:
        self.now.add(value)
        if self.now.count >= max(64, self.before.count * 2):
            self.before, self.now = self.now, RunningMean()
            self.began += 1

    def interval(self, signal: Reward | Limit, delta: float) -> ConfidenceInterval:
        return self.before.merge(self.now).interval(signal, delta / (self.began * (self.began + 1.0)))
