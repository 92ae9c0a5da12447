"""Findings of the doctor: each has a check, a verdict, a code and its data; the sentences are in `finding_messages`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

import numpy as np

from stagewise.launch.doctor.finding_messages import MESSAGES, FindingCode, FindingFormatter
from stagewise.problem.formatting import LONGEST, fit_line

FORMATTER = FindingFormatter()


class CheckName(StrEnum):
    """The checks of `doctor`, in the order of its report; `accept` takes these names."""

    ACTIONS = "actions"
    """Every logged action is in the problem."""
    RANGES = "ranges"
    """Every number is in its declared range."""
    UNITS = "units"
    """Declared and logged values have the same units."""
    DUPLICATES = "duplicates"
    """No row is in the log twice."""
    PROPENSITIES = "propensities"
    """Logged probabilities agree with the actions taken."""
    MISSING_VALUES = "missing_values"
    """Values are not missing for a reason that biases what is learned."""
    OUTCOME_GAPS = "outcome_gaps"
    """No period lacks outcomes."""
    SAMPLE_SIZE = "sample_size"
    """Every action has enough rows to certify its limits."""
    SAFE_ACTION = "safe_action"
    """The safe action keeps every limit."""
    DECLARED_SAFE = "declared_safe"
    """The declared means of the safe action agree with the log."""
    LOOSE_LIMITS = "loose_limits"
    """Every limit can bind."""
    LEAKAGE = "leakage"
    """No number or segment was recorded after the decision."""
    MODEL_FORM = "model_form"
    """Every signal has its declared form, linear or one rate per action."""
    NORM_BOUND = "norm_bound"
    """No linear parameter is longer than `norm_bound`."""
    SEGMENTS = "segments"
    """No group of users has other rates than all."""
    FEATURES = "features"
    """Every number about users has an effect."""
    DRIFT = "drift"
    """No mean changed over the log."""


class FindingVerdict(StrEnum):
    """The verdict of a check."""

    OK = "ok"
    """Nothing was found."""
    NOTE = "note"
    """Something worth knowing was found."""
    CONTRADICTS = "contradicts"
    """The log and the problem cannot both be right."""


SEVERITY = tuple(FindingVerdict)  # from the mildest to the most severe


@dataclass(frozen=True)
class Finding:
    """One result of `doctor`: the verdict of one check, with its data.

    Attributes:
        code: What was found, as a code that never changes.
        check: The check that found it.
        verdict: "ok", "note" or "contradicts".
        details: The data of the finding, such as names, counts and rates.
        others: How many further findings the same check has.
        accepted: Whether a contradiction was accepted, so that it is a note.
        in_holdout: Whether the finding is about the rows that a proposal was not chosen from.

    Example:
        >>> finding = Finding.of(FindingCode.ACTION_MISSING, count=12, rows=400)
        >>> finding.check, finding.verdict
        (<CheckName.ACTIONS: 'actions'>, <FindingVerdict.CONTRADICTS: 'contradicts'>)
        >>> print(finding.message)
        12 of 400 rows have no action
    """

    code: FindingCode
    check: CheckName
    verdict: FindingVerdict
    details: dict[str, Any] = field(default_factory=dict)
    others: int = 0
    accepted: bool = False
    in_holdout: bool = False

    @classmethod
    def of(cls, code: FindingCode, verdict: FindingVerdict | None = None, **details: Any) -> Self:
        """Return a finding by its code, with the usual verdict of the code unless another is given."""
        message = MESSAGES[code]
        values = {name: value.item() if isinstance(value, np.generic) else value for name, value in details.items()}
        return cls(
            code, CheckName(message.check), FindingVerdict(message.verdict) if verdict is None else verdict, values
        )

    @property
    def message(self) -> str:
        """What was found, as a sentence."""
        text = FORMATTER.make_text(MESSAGES[self.code].text, self.details)
        before = "in the holdout rows, " if self.in_holdout else ""
        after = f" (and {self.others} more of its kind)" if self.others else ""
        return f"{before}{text}{after}"

    @property
    def remedy(self) -> str:
        """What to do about it; empty if there is nothing to do."""
        text = FORMATTER.make_text(MESSAGES[self.code].remedy, self.details)
        return f"accepted; otherwise: {text}" if self.accepted else text

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values.

        Returns:
            `check`, `verdict`, `code`, `details`, `message` and `remedy`.
        """
        return {
            "check": str(self.check),
            "verdict": str(self.verdict),
            "code": str(self.code),
            "details": {name: to_json_value(value) for name, value in self.details.items()},
            "message": self.message,
            "remedy": self.remedy,
        }

    def __str__(self) -> str:
        text = f"{self.message}; {self.remedy}" if self.remedy else self.message
        return f"{self.verdict:11}  {self.check}: {fit_line(text, LONGEST)}"


def to_json_value(value: Any) -> Any:
    """Return a detail as JSON holds it: None for NaN and infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def select_most_severe(findings: Sequence[Finding], otherwise: Finding) -> Finding:
    """Return the most severe finding of one check, with the number of the others; `otherwise` if there is none.

    >>> select_most_severe([], Finding.of(FindingCode.RANGES_KEPT)).verdict
    <FindingVerdict.OK: 'ok'>
    """
    if not findings:
        return otherwise
    worst = max(findings, key=lambda finding: SEVERITY.index(finding.verdict))
    return replace(worst, others=len(findings) - 1)
