"""The result of an evaluation: estimates by policy and signal, a verdict for each limit, and their picture."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from stagewise.launch.evaluation.estimators import Estimate, Validity
from stagewise.launch.evaluation.propensities import LOGGING_POLICY, ROUNDING, Weights
from stagewise.launch.notes import Note, NoteCode
from stagewise.policies.problem import Problem
from stagewise.problem.formatting import align_columns, format_count
from stagewise.reports.style import (
    GUARDED,
    SAFE,
    TODAY,
    add_legend_below,
    draw_limit_line,
    escape_label,
    format_axes,
    make_panels,
)

COLOURS = {"candidate": GUARDED, "logged": TODAY, "safe": SAFE}
MARKS = {"ips": "o", "snips": "D", "dr": "s"}
LABELS = {"ips": "IPS", "snips": "SNIPS (large logs only)", "dr": "doubly robust"}


def plot_evaluation(evaluation: "Evaluation") -> Any:
    """Return a matplotlib figure with a panel for each signal."""
    signals = list(evaluation.problem.signals)
    figure, panels = make_panels(len(signals), width=4.6, height=2.9)
    for axes, signal in zip(panels, signals, strict=True):
        draw_intervals(axes, evaluation, signal)
    add_legend_below(figure, panels[0])
    return figure


def draw_intervals(axes: Any, evaluation: "Evaluation", signal: str) -> None:
    """Draw the intervals of all policies, by estimator; an unknown estimate is an empty mark."""
    for index, (key, policy) in enumerate(evaluation.policies.items()):
        by = policy[signal]
        for i, (name, one) in enumerate(by.items()):
            at = index + 0.22 * (i - 0.5 * (len(by) - 1))
            axes.vlines(at, one.low, one.high, color=COLOURS[key], linewidth=2.2 if name != "snips" else 1.1)
            middle = 0.5 * (one.low + one.high) if one.value is None else one.value
            empty = "none" if one.value is None else COLOURS[key]
            label = LABELS[name] if index == 0 else None
            axes.plot([at], [middle], MARKS[name], color=COLOURS[key], markerfacecolor=empty, markersize=5, label=label)
    axes.set_xticks(
        np.arange(len(evaluation.policies)), [format_name(one.name) for one in evaluation.policies.values()]
    )
    axes.set_xlim(-0.5, len(evaluation.policies) - 0.5)
    format_axes(axes, f"mean {escape_label(signal)}")
    verdict = evaluation.candidate.verdicts.get(signal)
    if verdict is not None:
        draw_limit_line(axes, verdict.threshold, signal, verdict.at_most)


def format_name(name: str) -> str:
    """Return the name of a policy in two short lines."""
    separator = " own " if name == LOGGING_POLICY else " ("
    return escape_label(name.replace(separator, f"\n{separator.lstrip()}"))


MIN_EFFECTIVE_ROWS = 30.0  # an effective sample size below it is small


class LimitOutcome(StrEnum):
    """What intervals say of a limit."""

    KEPT = "kept"
    """The whole interval keeps the limit."""
    BROKEN = "broken"
    """The whole interval breaks the limit."""
    UNKNOWN = "unknown"
    """The limit is inside the interval, or the interval does not hold at all times."""


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
        outcome = LimitOutcome.UNKNOWN
        if all(one.validity is Validity.ANYTIME for one in estimates):
            if all(one.high <= threshold if at_most else one.low >= threshold for one in estimates):
                outcome = LimitOutcome.KEPT
            elif any(one.low > threshold if at_most else one.high < threshold for one in estimates):
                outcome = LimitOutcome.BROKEN
        return cls(outcome, threshold, at_most, estimator)

    @property
    def label(self) -> str:
        return f"{'at most' if self.at_most else 'at least'} {self.threshold:g}: {self.verdict}"


class Support(NamedTuple):
    """The part of a candidate that the log cannot evaluate, since it never contains it.

    Attributes:
        by_action: The share of the candidate by action that the log could not have taken; those above 0.
        clipped: The share that is lost because weights are clipped.
    """

    by_action: dict[str, float]
    clipped: float

    @classmethod
    def of(cls, weights: Weights, actions: Any) -> "Support":
        shares = zip(actions, weights.unsupported.tolist(), strict=True)
        return cls({name: share for name, share in shares if share > ROUNDING}, weights.clipped)

    def make_notes(self, policy: str) -> list[Note]:
        """Return a note on what is not supported, unless everything is."""
        clipped = self.clipped if self.clipped > ROUNDING else 0.0
        if not self.by_action and not clipped:
            return []
        return [Note.of(NoteCode.NO_SUPPORT, policy=policy, unsupported=self.by_action, clipped=clipped)]


@dataclass(frozen=True, eq=False)
class PolicyEvaluation:
    """The evaluation of one policy. `policy["click"]` has the estimates of one signal by estimator.

    Attributes:
        name: The name of the policy.
        estimates: The estimates by signal, then by estimator.
        segments: The estimates by limit, then by segment, for limits that hold in every segment.
        verdicts: The verdict by limit.
        support: The part of the policy that the log cannot evaluate.
        effective_sample_size: How many rows of the policy's own the log is worth.
        bound: The largest weight.
        bound_source: Where the bound comes from.
    """

    name: str
    estimates: dict[str, dict[str, Estimate]]
    segments: dict[str, dict[str, Estimate]]
    verdicts: dict[str, LimitVerdict]
    support: Support
    effective_sample_size: float
    bound: float
    bound_source: str

    def __getitem__(self, signal: str) -> dict[str, Estimate]:
        return self.estimates[signal]

    @property
    def limits_kept(self) -> bool:
        """Whether every limit is certainly kept."""
        return all(verdict.verdict is LimitOutcome.KEPT for verdict in self.verdicts.values())

    def describe_sample_size(self, rows: int) -> str:
        """Return a sentence on the effective sample size."""
        few = ", which is few" if self.effective_sample_size < MIN_EFFECTIVE_ROWS else ""
        size = f"the effective sample size of {format_count(rows, 'row')} is {self.effective_sample_size:,.0f}{few}"
        return f"{self.name}: {size}; weights are at most {self.bound:.4g} ({self.bound_source})"

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation of the policy as JSON values."""
        return {
            "name": self.name,
            "signals": {
                signal: {name: one.to_dict() for name, one in by.items()} for signal, by in self.estimates.items()
            },
            "segments": {
                limit: {name: one.to_dict() for name, one in by.items()} for limit, by in self.segments.items()
            },
            "limits": {
                name: {**verdict._asdict(), "verdict": str(verdict.verdict)} for name, verdict in self.verdicts.items()
            },
            "support": {"unsupported": self.support.by_action, "clipped": self.support.clipped},
            "effective_sample_size": self.effective_sample_size,
            "weight_bound": self.bound,
            "weight_bound_source": self.bound_source,
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of `evaluate_on_log`: the candidate, the log's own policy and the safe action.

    `evaluation["click"]["dr"]` is an `Estimate` of the candidate.

    Attributes:
        problem: The problem whose signals were evaluated.
        policies: "candidate" first, if there is one; then "logged", the log's own policy, then "safe".
        rows: How many rows were used.
        delta: With probability 1 − delta all anytime intervals of one policy and one estimator hold at once.
        primary_estimator: The estimator that decides on limits, chosen before looking at outcomes.
        source: Where the probabilities of the log come from.
        notes: What to know about the rows that were used; each has a `code` and `details`.

    Example:
        >>> import stagewise as sw
        >>> problem = sw.Problem(
        ...     action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
        ...     limits={"opt_out": sw.Limit(0.2, safe_bound=0.0)},
        ... )
        >>> log = {"action": ["nothing", "offer"] * 1000, "click": [0, 1] * 1000, "opt_out": [0, 0] * 1000}
        >>> evaluation = sw.evaluate_on_log(log, problem, "offer", propensity=0.5)
        >>> list(evaluation.policies), evaluation.candidate.limits_kept
        (['candidate', 'logged', 'safe'], True)
    """

    problem: Problem
    policies: dict[str, PolicyEvaluation]
    rows: int
    delta: float
    primary_estimator: str
    source: str
    notes: tuple[Note, ...]

    @property
    def candidate(self) -> PolicyEvaluation:
        """The evaluation of the candidate; of the log's own policy if no candidate was given."""
        return next(iter(self.policies.values()))

    def __getitem__(self, signal: str) -> dict[str, Estimate]:
        return self.candidate[signal]

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as JSON values.

        Returns:
            `rows`, `delta`, `primary_estimator`, `propensity_source`, `policies` and `notes`.
        """
        return {
            "rows": self.rows,
            "delta": self.delta,
            "primary_estimator": self.primary_estimator,
            "propensity_source": self.source,
            "policies": [one.to_dict() for one in self.policies.values()],
            "notes": [note.to_dict() for note in self.notes],
        }

    def plot(self) -> Any:
        """Plot the intervals of every policy and estimator beside the limits.

        Returns:
            A matplotlib figure.
        """
        return plot_evaluation(self)

    def __str__(self) -> str:
        sizes = [f"- {one.describe_sample_size(self.rows)}" for one in self.policies.values() if one.bound > 1.0]
        return "\n".join([self._title(), *self._table(), *sizes, *(f"- {note}" for note in self.notes)])

    __repr__ = __str__

    def _title(self) -> str:
        confidence = f"all intervals of one policy and estimator hold at once with probability {1.0 - self.delta:.3g}"
        rows = f"{format_count(self.rows, 'row')}, probabilities: {self.source}"
        return f"{rows}; {confidence}; limits are decided by {self.primary_estimator}"

    def _table(self) -> list[str]:
        """Return the rows of the table, aligned."""
        cells = [("policy", "signal", "by", "estimate", "interval", "holds", "limit")]
        for policy in self.policies.values():
            for signal, by in policy.estimates.items():
                verdict = policy.verdicts.get(signal)
                for name, one in by.items():
                    label = verdict.label if verdict is not None and verdict.estimator == name else ""
                    cells.append((policy.name, signal, name, *format_estimate(one), label))
                for segment, one in policy.segments.get(signal, {}).items():
                    estimator = policy.verdicts[signal].estimator
                    cells.append((policy.name, f"{signal}, {segment}", estimator, *format_estimate(one), ""))
        return align_columns(cells)


def format_estimate(one: Estimate) -> tuple[str, str, str]:
    """Return an estimate, its interval and when that holds, for a table."""
    value = "unknown" if one.value is None else f"{one.value:.4g}"
    interval = f"[{one.low:.4g}, {one.high:.4g}]" if np.isfinite(one.low) else "none"
    return value, interval, one.validity.template
