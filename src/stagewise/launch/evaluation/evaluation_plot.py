"""Plot an evaluation: the intervals of every policy beside the limits, and their confidence sequences."""

from pathlib import Path
from typing import Any

from stagewise.files.paths import parse_path
from stagewise.launch.evaluation.evaluation_report import Evaluation, PolicyEvaluation
from stagewise.launch.evaluation.weights import LOGGING_POLICY
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.reports.plot_style import (
    GUARDED,
    SAFE,
    TODAY,
    add_legend_below,
    draw_band,
    draw_limit_line,
    escape_label,
    format_axes,
    format_round_axis,
    make_figure,
    write_figure,
)

COLOURS = {"candidate": GUARDED, "logged": TODAY, "safe": SAFE}
MARKS = {"ips": "o", "snips": "D", "dr": "s"}
LABELS = {"ips": "IPS", "snips": "SNIPS (large logs only)", "dr": "doubly robust"}


def plot_evaluation(evaluation: Evaluation) -> Any:
    """Return the figure."""
    signals = list(evaluation.problem.signals)
    figure, grid = make_figure(2, len(signals), width=4.6, height=2.9)
    for index, signal in enumerate(signals):
        draw_intervals(grid[0, index], evaluation, signal)
        draw_sequences(grid[1, index], evaluation, signal)
    add_legend_below(figure, grid[0, 0])
    return figure


def draw_intervals(axes: Any, evaluation: Evaluation, signal: str) -> None:
    """Draw the intervals of all policies, by estimator."""
    for index, (key, policy) in enumerate(evaluation.policies.items()):
        by = policy[signal]
        for i, (name, one) in enumerate(by.items()):
            at = index + 0.22 * (i - 0.5 * (len(by) - 1))
            label = LABELS[name] if index == 0 else None
            axes.plot([at, at], [one.low, one.high], color=COLOURS[key], linewidth=2.2 if name != "snips" else 1.1)
            middle = 0.5 * (one.low + one.high) if one.value is None else one.value
            empty = "none" if one.value is None else COLOURS[key]
            axes.plot([at], [middle], MARKS[name], color=COLOURS[key], markerfacecolor=empty, markersize=5, label=label)
    axes.set_xticks(range(len(evaluation.policies)), [short_name(one) for one in evaluation.policies.values()])
    axes.set_xlim(-0.5, len(evaluation.policies) - 0.5)
    format_axes(axes, f"mean {escape_label(signal)}")
    draw_limit(axes, evaluation, signal)


def draw_sequences(axes: Any, evaluation: Evaluation, signal: str) -> None:
    """Draw the confidence sequences of the candidate and the safe action."""
    drawn_any = False
    for key, policy in reversed(evaluation.policies.items()):
        one = policy[signal].get(evaluation.primary_estimator) or policy[signal].get("ips")
        if one is None or one.confidence_sequence is None or (key == "logged" and len(evaluation.policies) > 2):
            continue
        line, drawn_any = one.confidence_sequence, True
        draw_band(axes, line.after, line.low, line.mean, line.high, COLOURS[key], short_name(policy).replace("\n", " "))
    format_round_axis(axes, "rows of the log")
    axes.set_xscale("log")
    axes.set_xlim(min(10.0, 0.1 * evaluation.rows), evaluation.rows)
    title = "interval by number of rows" if drawn_any else "rows have no known order"
    format_axes(axes, f"{escape_label(signal)}: {title}", "rows of the log")
    final = [policy[signal] for policy in evaluation.policies.values()]
    ends = [one for by in final for one in by.values() if one.high == one.high]
    axes.set_ylim(
        min(one.low for one in ends), min(3.0 * max(one.high for one in ends), get_upper_end(evaluation, signal))
    )
    if signal == evaluation.problem.reward.name and axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8)
    draw_limit(axes, evaluation, signal)


def get_upper_end(evaluation: Evaluation, signal: str) -> float:
    """Return the largest possible outcome of a signal."""
    return float(evaluation.problem.signals[signal].high)


def draw_limit(axes: Any, evaluation: Evaluation, signal: str) -> None:
    """Draw the limit of a signal that has one."""
    verdict = evaluation.candidate.verdicts.get(signal)
    if verdict is not None:
        draw_limit_line(axes, verdict.threshold, signal, verdict.at_most)


def short_name(policy: PolicyEvaluation) -> str:
    """Return a policy's name in two short lines."""
    name = LOGGING_POLICY.replace(" own ", "\nown ") if policy.name == LOGGING_POLICY else policy.name
    return escape_label(name.replace(" (", "\n("))


def write_plot(evaluation: Evaluation, path: str | Path) -> None:
    """Write the figure, as PNG or SVG by the file's name."""
    target = parse_path(path)
    if target.suffix.lower() not in (".png", ".svg"):
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "{path} must end in .png or .svg, which selects the picture's format",
            path=safe_repr(str(path)),
        )
    write_figure(plot_evaluation(evaluation), target)
