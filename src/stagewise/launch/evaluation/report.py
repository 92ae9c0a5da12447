"""What an evaluation found: for each policy and signal an estimate with its interval, and for each limit a verdict."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.launch.evaluation.estimate import UNDER, Estimate, Verdict
from stagewise.launch.evaluation.support import Support
from stagewise.policies.problem import Problem
from stagewise.problem.words import several

FEW = 30.0  # rows


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What the log says of one policy."""

    name: str
    estimates: dict[str, dict[str, Estimate]]
    """By signal, then by estimator."""
    segments: dict[str, dict[str, Estimate]]
    """By limit, then by segment, where a limit holds in every segment by itself."""
    verdicts: dict[str, Verdict]
    """By limit."""
    support: Support
    effective: float
    """How many rows of its own the log is worth for it."""
    bound: float
    """What a weight is at most."""
    bound_source: str

    def __getitem__(self, signal: str) -> dict[str, Estimate]:
        return self.estimates[signal]

    @property
    def kept(self) -> bool:
        """Whether every limit is shown to hold."""
        return all(verdict.verdict == UNDER for verdict in self.verdicts.values())

    def worth(self, rows: int) -> str:
        """Return how much the log tells of this policy, in a sentence."""
        few = ", and a handful of them decides" if self.effective < FEW else ""
        bound = f"weights are at most {self.bound:.4g} ({self.bound_source})"
        return f"{self.name}: {several(rows, 'row')} count as {self.effective:,.0f} of its own{few}; {bound}"

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "name": self.name,
            "signals": {
                signal: {name: one.plain() for name, one in by.items()} for signal, by in self.estimates.items()
            },
            "segments": {limit: {name: one.plain() for name, one in by.items()} for limit, by in self.segments.items()},
            "limits": {name: verdict._asdict() for name, verdict in self.verdicts.items()},
            "support": self.support.plain(),
            "effective_rows": self.effective,
            "weight_bound": self.bound,
            "weight_bound_source": self.bound_source,
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a log says of a candidate, of the policy that made the log, and of the safe action."""

    problem: Problem
    policies: dict[str, Evaluated]
    """The candidate first, if there is one; then the log's own policy, then the safe action."""
    rows: int
    delta: float
    """With probability 1 − δ all intervals "at all times" of one policy and one estimator hold at once."""
    decisive: str
    """By which estimator limits are judged; it was named before anything was seen."""
    source: str
    """Where the probabilities of the log come from."""
    notes: tuple[str, ...]

    @property
    def candidate(self) -> Evaluated:
        """What was asked for."""
        return next(iter(self.policies.values()))

    def __getitem__(self, signal: str) -> dict[str, Estimate]:
        return self.candidate[signal]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "rows": self.rows,
            "delta": self.delta,
            "decisive": self.decisive,
            "probabilities": self.source,
            "policies": [one.plain() for one in self.policies.values()],
            "notes": list(self.notes),
        }

    def plot(self) -> Any:
        """Return a figure: every policy's intervals beside the limits, and how the candidate's narrowed."""
        from stagewise.launch.evaluation.picture import drawn

        return drawn(self)

    def save(self, path: str | Path) -> None:
        """Write the figure, as PNG or SVG by the file's name."""
        from stagewise.launch.evaluation.picture import write

        write(self, path)

    def __str__(self) -> str:
        worth = [f"- {one.worth(self.rows)}" for one in self.policies.values() if one.bound > 1.0]
        return "\n".join([self._title(), *self._table(), *worth, *(f"- {note}" for note in self.notes)])

    __repr__ = __str__

    def _title(self) -> str:
        sure = f"intervals of one policy by one estimator hold at once with {1.0 - self.delta:.3g} probability"
        return (
            f"{several(self.rows, 'row')}, probabilities: {self.source}; {sure}; limits are judged by {self.decisive}"
        )

    def _table(self) -> list[str]:
        """Return the rows of the table, with columns that line up."""
        cells = [("policy", "signal", "by", "estimate", "interval", "holds", "limit")]
        for policy in self.policies.values():
            for signal, by in policy.estimates.items():
                for name, one in by.items():
                    judged = signal in policy.verdicts and policy.verdicts[signal].estimator == name
                    verdict = policy.verdicts[signal].words if judged else ""
                    cells.append((policy.name, signal, name, number(one.value), interval(one), one.holds, verdict))
                for part, one in policy.segments.get(signal, {}).items():
                    by_name = policy.verdicts[signal].estimator
                    where = f"{signal}, {part}"
                    cells.append((policy.name, where, by_name, number(one.value), interval(one), one.holds, ""))
        widths = [max(len(row[i]) for row in cells) for i in range(7)]
        return ["  ".join(f"{cell:{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip() for row in cells]


def number(value: float | None) -> str:
    """Return a number as a table shows it."""
    return "not known" if value is None else f"{value:.4g}"


def interval(one: Estimate) -> str:
    """Return an interval as a table shows it."""
    return f"[{one.low:.4g}, {one.high:.4g}]" if np.isfinite(one.low) else "none"
