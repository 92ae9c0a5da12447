"""Findings of the doctor: each has a check, a verdict, a code and its data; the sentences are in `finding_messages`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from stagewise.launch.doctor.finding_messages import FORMATTER, MESSAGES, CheckName, FindingVerdict
from stagewise.problem.formatting import LONGEST, fit_line

SEVERITY = tuple(FindingVerdict)  # from the mildest to the most severe


@dataclass(frozen=True)
class Finding:
    """One result of `check_log`: the verdict of one check, with its data.

    Attributes:
        code: What was found, as a code that never changes.
        check: The check that found it.
        verdict: "ok", "note" or "contradicts".
        details: The data of the finding, such as names, counts and rates.
        others: How many further findings the same check has.
        accepted: Whether a contradiction was accepted, so that it is a note.
        in_holdout: Whether the finding is about the rows that a proposal was not chosen from.

    Example:
        >>> from stagewise.launch.doctor.finding_messages import FindingCode
        >>> finding = Finding.of(FindingCode.ACTION_MISSING, count=12, rows=400)
        >>> finding.check, finding.verdict
        (<CheckName.ACTIONS: 'actions'>, <FindingVerdict.CONTRADICTS: 'contradicts'>)
        >>> print(finding.message)
        12 of 400 rows have no action
    """

    code: str
    check: CheckName
    verdict: FindingVerdict
    details: dict[str, Any] = field(default_factory=dict)
    others: int = 0
    accepted: bool = False
    in_holdout: bool = False

    @classmethod
    def of(cls, code: str, verdict: FindingVerdict | None = None, /, **details: Any) -> Self:
        """Return a finding by its code, with the usual verdict of the code unless another is given."""
        values = {name: value.item() if isinstance(value, np.generic) else value for name, value in details.items()}
        return cls(code, MESSAGES[code].check, MESSAGES[code].verdict if verdict is None else verdict, values)

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
            `check`, `verdict`, `code`, `details` (None for NaN and infinity), `message` and `remedy`.
        """
        details = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in self.details.items()
        }
        head = {"check": str(self.check), "verdict": str(self.verdict), "code": str(self.code)}
        return {**head, "details": details, "message": self.message, "remedy": self.remedy}

    def __str__(self) -> str:
        text = f"{self.message}; {self.remedy}" if self.remedy else self.message
        return f"{self.verdict:11}  {self.check}: {fit_line(text, LONGEST)}"


def select_most_severe(findings: Iterable[Finding]) -> Finding:
    """Return the first of the most severe findings of one check, with the number of others that were found."""
    listed = list(findings)
    found = sum(finding.verdict is not FindingVerdict.OK for finding in listed)
    worst = max(listed, key=lambda finding: SEVERITY.index(finding.verdict))
    return replace(worst, others=max(found - 1, 0))
