"""A time series of at most 200 buckets; when it is full, the buckets double in width."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.signals import Limit
from stagewise.server.confidence_intervals import RunningMean, compute_limit_interval

MAX_BUCKETS = 200
MIN_WIDTH = 1_000_000  # microseconds

Extremes = dict[str, tuple[float, float]]
"""By limit: the lowest and highest pessimistic value."""


class TimeBucket:
    """Counts of one interval; outcomes count at the time of their decision."""

    __slots__ = (
        "actions",
        "count",
        "exploring",
        "observed_mean",
        "pessimistic_cost",
        "shadow",
        "shadow_pessimistic_cost",
        "with_reason",
    )

    def __init__(self) -> None:
        self.count = self.exploring = self.with_reason = 0
        self.actions: dict[str, int] = {}
        self.observed_mean: dict[str, RunningMean] = {}
        self.pessimistic_cost: Extremes = {}
        self.shadow: dict[str, int] = {}  # policy choices in shadow mode, by action
        self.shadow_pessimistic_cost: Extremes = {}

    def take(self, other: "TimeBucket") -> None:
        """Add the counts of another bucket."""
        self.count += other.count
        self.exploring += other.exploring
        self.with_reason += other.with_reason
        for name, count in other.actions.items():
            self.actions[name] = self.actions.get(name, 0) + count
        for name, mean in other.observed_mean.items():
            self.observed_mean[name] = self.observed_mean.get(name, RunningMean()).merge(mean)
        for name, count in other.shadow.items():
            self.shadow[name] = self.shadow.get(name, 0) + count
        for extremes, added in (
            (self.pessimistic_cost, other.pessimistic_cost),
            (self.shadow_pessimistic_cost, other.shadow_pessimistic_cost),
        ):
            for name, (low, high) in added.items():
                update_extremes(extremes, name, low, high)


def update_extremes(extremes: Extremes, name: str, low: float, high: float) -> None:
    """Add pessimistic values of a limit."""
    lowest, highest = extremes.get(name, (low, high))
    extremes[name] = (min(lowest, low), max(highest, high))


def get_worst(values: Extremes, name: str, limit: Limit) -> float | None:
    """Return the extreme nearer to or beyond the limit; None if there is none."""
    extremes = values.get(name)
    return None if extremes is None else extremes[0] if limit.at_least else extremes[1]


class TimeSeries:
    """The buckets of a log."""

    def __init__(self) -> None:
        self.origin: int | None = None
        self.width = MIN_WIDTH
        self._buckets: dict[int, TimeBucket] = {}

    def at(self, moment: int) -> TimeBucket:
        """Return the bucket of a time; no time is before the first."""
        if self.origin is None:
            self.origin = moment - moment % MIN_WIDTH
        while (moment - self.origin) // self.width >= MAX_BUCKETS:
            self._double()
        return self._buckets.setdefault((moment - self.origin) // self.width, TimeBucket())

    def _double(self) -> None:
        """Double the width of every bucket."""
        self.width *= 2
        halves, self._buckets = self._buckets, {}
        for index, bucket in sorted(halves.items()):
            self._buckets.setdefault(index // 2, TimeBucket()).take(bucket)

    def to_dict(
        self,
        reward: str,
        limits: Mapping[str, Limit],
        delta: float,
        pending_means_by_limit: Mapping[str, Mapping[int, RunningMean]],
    ) -> list[dict[str, Any]]:
        """Return the non-empty buckets in order, with the means of each limit in the bucket and up to it.

        `pending_means_by_limit`: by limit and bucket, the reported costs of pending decisions.
        """
        rows, origin = [], self.origin or 0
        closed_means, pending_means = ({name: RunningMean() for name in limits} for _ in range(2))
        for index, bucket in sorted(self._buckets.items()):
            if not bucket.count:
                continue
            limit_rows = {}
            for name, limit in limits.items():
                closed, pending = (
                    bucket.observed_mean.get(name, RunningMean()),
                    pending_means_by_limit[name].get(index, RunningMean()),
                )
                closed_means[name], pending_means[name] = (
                    closed_means[name].merge(closed),
                    pending_means[name].merge(pending),
                )
                cumulative, interval = (
                    compute_limit_interval(*pair, limit, delta)
                    for pair in ((closed_means[name], pending_means[name]), (closed, pending))
                )
                limit_rows[name] = {
                    "observed_mean": interval.mean,
                    "count": interval.outcomes,
                    "pessimistic_cost": get_worst(bucket.pessimistic_cost, name, limit),
                    "shadow": get_worst(bucket.shadow_pessimistic_cost, name, limit),
                    "so_far": cumulative.mean,
                    "low": cumulative.low,
                    "high": cumulative.high,
                }
            rewards = bucket.observed_mean.get(reward, RunningMean())
            rows.append(
                {
                    "at": (origin + index * self.width) / 1e6,
                    "decisions": bucket.count,
                    "actions": compute_shares(bucket.actions),
                    "shadow": compute_shares(bucket.shadow),
                    "exploring": bucket.exploring / bucket.count,
                    "with_reason": bucket.with_reason / bucket.count,
                    "reward": rewards.mean,
                    "rewards": rewards.count,
                    "limits": limit_rows,
                }
            )
        return rows


def compute_shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the share of each count.

    >>> compute_shares({"nothing": 3, "offer": 1})
    {'nothing': 0.75, 'offer': 0.25}
    """
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}
