"""Rate limits: a token bucket per key; each decision, outcome or other call takes one token."""

from typing import NamedTuple

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.http_types import HTTPError


class RateLimit(NamedTuple):
    """The rate that one key may have."""

    per_second: float = 20_000.0
    """Calls per second in the long run; an item of a batch is a call."""
    burst: float = 40_000.0
    """Calls that may come at once after a pause."""


class RateLimiter:
    """One bucket per key; the caller gives the time."""

    def __init__(self, rate: RateLimit) -> None:
        self.rate = rate
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens and the time of that count, by key

    def take(self, name: str, count: int, now: float) -> None:
        """Take tokens from a bucket, or raise HTTPError."""
        tokens, then = self._buckets.get(name, (self.rate.burst, now))
        tokens = min(self.rate.burst, tokens + (now - then) * self.rate.per_second)
        if count > tokens:
            self._buckets[name] = (tokens, now)
            wait = (min(count, self.rate.burst) - tokens) / self.rate.per_second
            raise HTTPError(
                429,
                ErrorCode.RATE_LIMITED,
                f"the key {name!r} made more than {self.rate.per_second:g} calls per second; retry after {wait:.3g} s",
                ((b"retry-after", str(int(wait) + 1).encode()),),
            )
        self._buckets[name] = (tokens - count, now)

    def give_back(self, name: str, count: int) -> None:
        """Return tokens of calls that will be charged again."""
        if name in self._buckets:
            tokens, then = self._buckets[name]
            self._buckets[name] = (tokens + count, then)
