"""An evaluation as a picture: every policy's intervals beside the limits, and how the candidate's narrowed."""

from pathlib import Path
from typing import Any

from stagewise.files.paths import path_of
from stagewise.launch.evaluation.report import Evaluated, Evaluation
from stagewise.problem.errors import InvalidFile
from stagewise.problem.words import shown
from stagewise.reports.style import (
    GUARDED,
    SAFE,
    TODAY,
    band,
    count_rounds,
    figure,
    legend_below,
    limit,
    plain,
    plain_axes,
    write_picture,
)

COLOURS = {"candidate": GUARDED, "logged": TODAY, "safe": SAFE}
MARKS = {"ips": "o", "snips": "D", "dr": "s"}
WORDS = {"ips": "IPS", "snips": "SNIPS (large logs only)", "dr": "doubly robust"}


def drawn(evaluation: Evaluation) -> Any:
    """Return the figure; nothing is shown or saved."""
    signals = list(evaluation.problem.signals)
    made, grid = figure(2, len(signals), width=4.6, height=2.9)
    for place, signal in enumerate(signals):
        intervals(grid[0, place], evaluation, signal)
        running(grid[1, place], evaluation, signal)
    legend_below(made, grid[0, 0])
    return made


def intervals(axes: Any, evaluation: Evaluation, signal: str) -> None:
    """Draw the intervals of all policies, by estimator."""
    for place, (key, policy) in enumerate(evaluation.policies.items()):
        by = policy[signal]
        for i, (name, one) in enumerate(by.items()):
            at = place + 0.22 * (i - 0.5 * (len(by) - 1))
            label = WORDS[name] if place == 0 else None
            axes.plot([at, at], [one.low, one.high], color=COLOURS[key], linewidth=2.2 if name != "snips" else 1.1)
            middle = 0.5 * (one.low + one.high) if one.value is None else one.value
            empty = "none" if one.value is None else COLOURS[key]
            axes.plot([at], [middle], MARKS[name], color=COLOURS[key], markerfacecolor=empty, markersize=5, label=label)
    axes.set_xticks(range(len(evaluation.policies)), [short_name(one) for one in evaluation.policies.values()])
    axes.set_xlim(-0.5, len(evaluation.policies) - 0.5)
    plain_axes(axes, f"mean {plain(signal)}")
    draw_limit(axes, evaluation, signal)


def running(axes: Any, evaluation: Evaluation, signal: str) -> None:
    """Draw how the candidate's interval narrowed, beside the safe action's."""
    drawn_any = False
    for key, policy in reversed(evaluation.policies.items()):
        one = policy[signal].get(evaluation.decisive) or policy[signal].get("ips")
        if one is None or one.running is None or (key == "logged" and len(evaluation.policies) > 2):
            continue
        line, drawn_any = one.running, True
        band(axes, line.after, line.low, line.mean, line.high, COLOURS[key], short_name(policy).replace("\n", " "))
    count_rounds(axes, "rows of the log")
    axes.set_xscale("log")
    axes.set_xlim(min(10.0, 0.1 * evaluation.rows), evaluation.rows)
    told = "what was known after so many rows" if drawn_any else "rows stand in no known order"
    plain_axes(axes, f"{plain(signal)}: {told}", "rows of the log")
    final = [policy[signal] for policy in evaluation.policies.values()]
    ends = [one for by in final for one in by.values() if one.high == one.high]
    axes.set_ylim(min(one.low for one in ends), min(3.0 * max(one.high for one in ends), high_of(evaluation, signal)))
    if signal == evaluation.problem.reward.name and axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=8)
    draw_limit(axes, evaluation, signal)


def high_of(evaluation: Evaluation, signal: str) -> float:
    """Return the most that one outcome of a signal can be."""
    return float(evaluation.problem.signals[signal].high)


def draw_limit(axes: Any, evaluation: Evaluation, signal: str) -> None:
    """Draw the limit of a signal that has one."""
    verdict = evaluation.candidate.verdicts.get(signal)
    if verdict is not None:
        limit(axes, verdict.threshold, signal, verdict.at_most)


def short_name(policy: Evaluated) -> str:
    """Return a policy's name in two short lines."""
    return plain(policy.name.replace(" (", "\n(").replace("the log's own policy", "the log's\nown policy"))


def write(evaluation: Evaluation, path: str | Path) -> None:
    """Write the figure, as PNG or SVG by the file's name."""
    place = path_of(path)
    if place.suffix.lower() not in (".png", ".svg"):
        raise InvalidFile(f"{shown(str(path))} ends neither in .png nor in .svg, which say what to draw")
    write_picture(drawn(evaluation), place)
