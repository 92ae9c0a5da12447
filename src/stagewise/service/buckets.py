"""A log over time, in at most 200 buckets: where it grows too long for them, each takes in its neighbour."""

from collections.abc import Mapping
from typing import Any

from stagewise.problem.declared import Limit
from stagewise.service.bands import Seen, so_far

MOST = 200
SHORTEST = 1_000_000  # microseconds

Ends = dict[str, tuple[float, float]]
"""By limit, the lowest and the highest pessimistic value."""


class Bucket:
    """What happened in a stretch of time; outcomes stand where their decisions were made."""

    __slots__ = ("actions", "count", "dearest", "exploring", "fallback", "seen", "would", "would_dearest")

    def __init__(self) -> None:
        self.count = self.exploring = self.fallback = 0
        self.actions: dict[str, int] = {}
        self.seen: dict[str, Seen] = {}
        self.dearest: Ends = {}
        self.would: dict[str, int] = {}  # by action: what the policy would have served
        self.would_dearest: Ends = {}

    def take(self, other: "Bucket") -> None:
        """Take in another bucket."""
        self.count += other.count
        self.exploring += other.exploring
        self.fallback += other.fallback
        for name, count in other.actions.items():
            self.actions[name] = self.actions.get(name, 0) + count
        for name, seen in other.seen.items():
            self.seen[name] = self.seen.get(name, Seen()).joined(seen)
        for name, count in other.would.items():
            self.would[name] = self.would.get(name, 0) + count
        for ours, theirs in ((self.dearest, other.dearest), (self.would_dearest, other.would_dearest)):
            for name, (low, high) in theirs.items():
                fear(ours, name, low, high)


def fear(ends: Ends, name: str, low: float, high: float) -> None:
    """Take in pessimistic values of a limit."""
    least, most = ends.get(name, (low, high))
    ends[name] = (min(least, low), max(most, high))


def worst(ends: Ends, name: str, limit: Limit) -> float | None:
    """Return the end that is nearer to the limit, or beyond it; None: nothing was feared."""
    found = ends.get(name)
    return None if found is None else found[0] if limit.at_least else found[1]


class Buckets:
    """The buckets of a log."""

    def __init__(self) -> None:
        self.origin: int | None = None
        self.width = SHORTEST
        self.held: dict[int, Bucket] = {}

    def at(self, moment: int) -> Bucket:
        """Return the bucket of a moment; none is before the first."""
        if self.origin is None:
            self.origin = moment - moment % SHORTEST
        while (moment - self.origin) // self.width >= MOST:
            self._double()
        return self.held.setdefault((moment - self.origin) // self.width, Bucket())

    def _double(self) -> None:
        """Make every bucket twice as wide."""
        self.width *= 2
        halves, self.held = self.held, {}
        for place, bucket in sorted(halves.items()):
            self.held.setdefault(place // 2, Bucket()).take(bucket)

    def plain(
        self, reward: str, limits: Mapping[str, Limit], delta: float, waiting: Mapping[str, Mapping[int, Seen]]
    ) -> list[dict[str, Any]]:
        """Return them in order, without the empty ones; beside each limit stands what was seen of it up to there.

        `waiting`: by limit and bucket, decisions that are waited for, counted as far as they are told.
        """
        rows, origin = [], self.origin or 0
        settled, open_ = ({name: Seen() for name in limits} for _ in range(2))
        for place, bucket in sorted(self.held.items()):
            if not bucket.count:
                continue
            told = {}
            for name, limit in limits.items():
                here, waits = bucket.seen.get(name, Seen()), waiting[name].get(place, Seen())
                settled[name], open_[name] = settled[name].joined(here), open_[name].joined(waits)
                band, own = (so_far(*both, limit, delta) for both in ((settled[name], open_[name]), (here, waits)))
                told[name] = {
                    "seen": own.mean,
                    "count": own.outcomes,
                    "dearest": worst(bucket.dearest, name, limit),
                    "would": worst(bucket.would_dearest, name, limit),
                    "so_far": band.mean,
                    "low": band.low,
                    "high": band.high,
                }
            earned = bucket.seen.get(reward, Seen())
            rows.append(
                {
                    "at": (origin + place * self.width) / 1e6,
                    "decisions": bucket.count,
                    "actions": shares_of(bucket.actions),
                    "would": shares_of(bucket.would),
                    "exploring": bucket.exploring / bucket.count,
                    "fallback": bucket.fallback / bucket.count,
                    "reward": earned.mean,
                    "rewards": earned.count,
                    "limits": told,
                }
            )
        return rows


def shares_of(counts: Mapping[str, int]) -> dict[str, float]:
    """Return what share each has of all.

    >>> shares_of({"nothing": 3, "offer": 1})
    {'nothing': 0.75, 'offer': 0.25}
    """
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}
