"""What one check found: a verdict, one sentence with the value, and what to do."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from stagewise.problem.words import LONGEST, one_line

Verdict = Literal["ok", "note", "contradicts"]
ORDER: tuple[Verdict, ...] = ("ok", "note", "contradicts")


@dataclass(frozen=True)
class Finding:
    """A verdict on one thing that a log can say of a problem.

    >>> print(Finding("actions", "contradicts", "12 rows did 'ofer', which is no action", "rename it"))
    contradicts  actions: 12 rows did 'ofer', which is no action; rename it
    """

    name: str
    """Which check it is of."""
    verdict: Verdict
    """ "ok", "note" (worth knowing), or "contradicts": the log and the problem cannot both be right."""
    sentence: str
    """What was found, with the value."""
    remedy: str = ""
    """What to do."""

    def plain(self) -> dict[str, Any]:
        """Return plain values, as JSON holds them."""
        return asdict(self)

    def __str__(self) -> str:
        words = f"{self.sentence}; {self.remedy}" if self.remedy else self.sentence
        return f"{self.verdict:11}  {self.name}: {one_line(words, LONGEST)}"


def gravest(name: str, found: list[Finding], fine: str) -> Finding:
    """Return the gravest of what one check found, which says how many others there are; where nothing was, all is well.

    >>> gravest("ranges", [], "every value lies in its range").verdict
    'ok'
    """
    if not found:
        return Finding(name, "ok", fine)
    worst = max(found, key=lambda one: ORDER.index(one.verdict))
    others = len(found) - 1
    more = f" (and {others} more of its kind)" if others else ""
    return Finding(name, worst.verdict, f"{worst.sentence}{more}", worst.remedy)


def said(value: float) -> str:
    """Return a number as a sentence holds it.

    >>> said(0.0213456), said(1234567.0), said(50.0)
    ('0.0213', '1,234,567', '50')
    """
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
