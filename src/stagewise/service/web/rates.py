"""How much a key may ask: a bucket that fills steadily, and every decision, outcome or other call takes one from it."""

from typing import NamedTuple

from stagewise.service.web.call import Refused


class Rate(NamedTuple):
    """What is allowed to one key."""

    per_second: float = 20_000.0
    """Calls a second in the long run; an item of a batch counts as a call."""
    at_once: float = 40_000.0
    """Calls that may come at once after a pause."""


class Buckets:
    """One bucket for each key, by the clock that is given."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, count: int, now: float) -> None:
        """Take so many calls from a bucket, or refuse."""
        left, then = self._left.get(name, (self.rate.at_once, now))
        left = min(self.rate.at_once, left + (now - then) * self.rate.per_second)
        if count > left:
            self._left[name] = (left, now)
            wait = (min(count, self.rate.at_once) - left) / self.rate.per_second
            raise Refused(
                429,
                f"the key {name!r} asked for more than {self.rate.per_second:g} calls a second; wait {wait:.3g} s",
                ((b"retry-after", str(int(wait) + 1).encode()),),
            )
        self._left[name] = (left - count, now)

    def give_back(self, name: str, count: int) -> None:
        """Put calls back that were not served, and will be taken again."""
        if name in self._left:
            left, then = self._left[name]
            self._left[name] = (left + count, then)
