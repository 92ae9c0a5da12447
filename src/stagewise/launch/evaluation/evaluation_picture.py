"""The picture of an evaluation: the intervals of every policy and estimator, beside the limits."""

from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.launch.evaluation.propensities import LOGGING_POLICY
from stagewise.reports.plot_style import (
    GUARDED,
    SAFE,
    TODAY,
    add_legend_below,
    draw_limit_line,
    escape_label,
    format_axes,
    make_panels,
)

if TYPE_CHECKING:
    from stagewise.launch.evaluation.evaluation_report import Evaluation

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
