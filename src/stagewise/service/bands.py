"""What was seen of a signal, and a band around its mean that holds at every look, as long as the mean stays."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

from stagewise.kernels.compile import named
from stagewise.kernels.signals.interval import kl_interval
from stagewise.kernels.signals.rates import rate_ends
from stagewise.problem.declared import Limit, Reward
from stagewise.problem.plain_limits import scaled_limit

KL, RATE_ENDS = named(kl_interval), named(rate_ends)
ROUNDING = 1e-12
SMALLEST, LARGEST = 1e-6, 0.5  # rates that can be expected, as in models.arms


class Band(NamedTuple):
    """A mean and where it lies; None: nothing was seen."""

    mean: float | None
    low: float
    high: float
    outcomes: int

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "count": self.outcomes}


class Seen:
    """How many outcomes of a signal were seen, and their sum."""

    __slots__ = ("count", "total")

    def __init__(self, count: int = 0, total: float = 0.0) -> None:
        self.count, self.total = count, total

    def add(self, value: float) -> None:
        """Take in one outcome."""
        self.count += 1
        self.total += value

    def joined(self, other: "Seen") -> "Seen":
        """Return both together."""
        return Seen(self.count + other.count, self.total + other.total)

    @property
    def mean(self) -> float | None:
        """Their mean; None: there is none."""
        return self.total / self.count if self.count else None

    def band(self, signal: Reward | Limit, delta: float) -> Band:
        """Return the mean with its band, of probability 1 − δ, in the signal's own units."""
        return band_of(self.count, self.total, signal, delta)


@lru_cache(maxsize=8192)  # of a log over time, all but the newest are as they were at the last look
def band_of(count: int, total: float, signal: Reward | Limit, delta: float) -> Band:
    """Return the mean of so many outcomes with this sum, and its band.

    A limit's band is the sharpest near the limit (`rate_ends`), half of δ for either end; a reward's is by
    `kl_interval`. Outcomes lie in [low, high], and are scaled to [0, 1] for it.
    """
    low, width = float(signal.low), float(signal.high) - float(signal.low)
    if not count:
        return Band(None, low, low + width, 0)
    mean = total / count
    middle = (mean - low) / width
    if isinstance(signal, Limit):
        expected = min(max(expected_of(signal), SMALLEST), LARGEST)
        ends = RATE_ENDS(float(count), middle, expected, math.log(2.0 / delta), math.log(2.0 / delta))
    else:
        ends = KL(float(count), middle, math.log(1.0 / delta))
    return Band(mean, low + width * ends.low, low + width * ends.high, count)


def so_far(settled: Seen, waiting: Seen, limit: Limit, delta: float) -> Band:
    """Return what is seen of a limit: of what is settled, or of all decisions as far as they are told.

    Of the two it is the one whose band comes nearer to the limit: both hold together. Early on the settled decisions
    are those that were told of, so that their mean alone says little.
    """
    band, all_ = settled.band(limit, delta), settled.joined(waiting)
    nothing, width = waiting.count * (limit.high if limit.at_least else limit.low), limit.high - limit.low
    if abs(waiting.total - nothing) <= ROUNDING * waiting.count * width:  # nothing is told of them
        return band
    told = all_.band(limit, delta)
    if told.mean is None or (told.high >= band.high if limit.at_least else told.low <= band.low):
        return band
    low, high = (min(band.low, told.mean), told.high) if limit.at_least else (told.low, max(band.high, told.mean))
    return Band(told.mean, low, high, all_.count)


def expected_of(limit: Limit) -> float:
    """Return the rate that a limit lets expect, scaled to [0, 1]."""
    scaled: Any = scaled_limit("limit", limit)
    return float(getattr(scaled, "value", scaled))


def own_value(limit: Limit) -> float:
    """Return the number of a limit in its own units."""
    return limit.low + (limit.high - limit.low) * expected_of(limit)


class Lately:
    """The outcomes since their number was last doubled, and those of the doubling before.

    That is between half and three quarters of them all, the newest. Each beginning has a share 1/i(i+1) of δ, so that
    the bands of all of them hold together.
    """

    def __init__(self) -> None:
        self.before, self.now, self.began = Seen(), Seen(), 1

    def add(self, value: float) -> None:
        """Take in one outcome."""
        self.now.add(value)
        if self.now.count >= max(64, self.before.count * 2):
            self.before, self.now = self.now, Seen()
            self.began += 1

    def band(self, signal: Reward | Limit, delta: float) -> Band:
        """Return their mean with its band."""
        return self.before.joined(self.now).band(signal, delta / (self.began * (self.began + 1.0)))
