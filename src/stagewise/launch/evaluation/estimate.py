"""One estimate with its interval, and what intervals say of a limit."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.launch.evaluation.sequence import Sequence

UNDER, OVER, UNKNOWN = "under", "over", "not known yet"
ANYTIME, ASYMPTOTIC, NONE = "at all times", "large logs only", "none"
SHARES = "if these were the shares"
FIXED = "if its policy was fixed"


class Estimate(NamedTuple):
    """One number with its interval, in the signal's own units."""

    value: float | None
    """The estimate, within the interval; None: a part of the candidate is not known, and a number would hide that."""
    low: float
    high: float
    holds: str
    """When the interval holds: "at all times", "large logs only", "if these were the shares", "if its policy was fixed"
    or "none"."""
    rows: int
    running: Sequence | None = None
    """The interval as it was after ever more rows, in the signal's own units."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        ends = {"low": finite(self.low), "high": finite(self.high)}
        return {"value": self.value, **ends, "holds": self.holds, "rows": self.rows}


def finite(value: float) -> float | None:
    """Return a number as JSON holds it."""
    return float(value) if np.isfinite(value) else None


class Verdict(NamedTuple):
    """Whether a limit holds for a policy: decided by an interval, and not known while the limit lies inside it."""

    verdict: str
    threshold: float
    at_most: bool
    estimator: str

    @classmethod
    def of(cls, estimates: list[Estimate], threshold: float, at_most: bool, estimator: str) -> "Verdict":
        """Return what intervals say of a limit: all must keep it, and one that breaks it is enough.

        Nothing is said of a limit unless all of them hold at all times.
        """
        if any(one.holds != ANYTIME for one in estimates):
            return cls(UNKNOWN, threshold, at_most, estimator)
        within = all(one.high <= threshold if at_most else one.low >= threshold for one in estimates)
        beyond = any(one.low > threshold if at_most else one.high < threshold for one in estimates)
        return cls(UNDER if within else OVER if beyond else UNKNOWN, threshold, at_most, estimator)

    @property
    def words(self) -> str:
        """The verdict as a table says it."""
        kept = {UNDER: "kept", OVER: "broken", UNKNOWN: UNKNOWN}[self.verdict]
        return f"{'at most' if self.at_most else 'at least'} {self.threshold:g}: {kept}"
