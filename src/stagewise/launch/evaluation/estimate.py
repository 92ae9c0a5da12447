"""Estimates with intervals, and the verdict of intervals on a limit."""

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from stagewise.launch.evaluation.confidence_sequence import ConfidenceSequence


class LimitOutcome(StrEnum):
    """What intervals say of a limit."""

    KEPT = "kept"
    """The whole interval keeps the limit."""
    BROKEN = "broken"
    """The whole interval breaks the limit."""
    UNKNOWN = "unknown"
    """The limit is inside the interval, or the interval does not hold at all times."""


class Validity(StrEnum):
    """When an interval holds."""

    ANYTIME = "anytime"
    """At all times, for every number of rows."""
    ASYMPTOTIC = "asymptotic"
    """For large logs only."""
    IF_SHARES_CORRECT = "if_shares_correct"
    """If the estimated probabilities are the true ones."""
    IF_POLICY_FIXED = "if_policy_fixed"
    """If the policy of the log did not adapt."""
    NONE = "none"
    """There is no interval."""


class Estimate(NamedTuple):
    """One estimate with its interval, in the signal's own units."""

    value: float | None
    """The estimate, within the interval; None if a part of the candidate is unknown."""
    low: float
    high: float
    validity: Validity
    """When the interval holds."""
    rows: int
    confidence_sequence: ConfidenceSequence | None = None
    """The interval after ever more rows, in the signal's own units."""

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON values."""
        ends = {"low": to_json_number(self.low), "high": to_json_number(self.high)}
        return {"value": self.value, **ends, "validity": str(self.validity), "rows": self.rows}


def to_json_number(value: float) -> float | None:
    """Return a number as JSON holds it: None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


class LimitVerdict(NamedTuple):
    """Whether a limit holds for a policy, by the intervals of one estimator."""

    verdict: LimitOutcome
    threshold: float
    at_most: bool
    estimator: str

    @classmethod
    def of(cls, estimates: list[Estimate], threshold: float, at_most: bool, estimator: str) -> "LimitVerdict":
        """Return the verdict: all intervals must keep the limit, and one that breaks it is enough.

        It is unknown unless all intervals hold at all times.
        """
        if any(estimate.validity is not Validity.ANYTIME for estimate in estimates):
            return cls(LimitOutcome.UNKNOWN, threshold, at_most, estimator)
        kept = all(one.high <= threshold if at_most else one.low >= threshold for one in estimates)
        broken = any(one.low > threshold if at_most else one.high < threshold for one in estimates)
        outcome = LimitOutcome.KEPT if kept else LimitOutcome.BROKEN if broken else LimitOutcome.UNKNOWN
        return cls(outcome, threshold, at_most, estimator)

    @property
    def label(self) -> str:
        """The verdict for a table."""
        return f"{'at most' if self.at_most else 'at least'} {self.threshold:g}: {self.verdict}"
