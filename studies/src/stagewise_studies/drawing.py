"""The common plot of studies: reward, cost against its limit, cost by group, and a free panel."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.reports.style import (
    GUARDED,
    INK,
    SAFE,
    TODAY,
    UNGUARDED,
    add_legend_below,
    draw_band,
    draw_limit_line,
    format_axes,
    format_round_axis,
    make_figure,
)
from stagewise_studies.study import POSSIBLE

HUNDRED = "of a hundred"
LABELS = {"guarded": "guarded", "unguarded": "the same, unguarded", POSSIBLE: "possible under the limit"}
COLOURS: dict[str, tuple[str, Any]] = {
    "guarded": (GUARDED, "-"),
    "unguarded": (UNGUARDED, (0, (5, 1.5))),
    "safe": (SAFE, (0, (1, 1))),
    "today": (TODAY, (0, (3, 1, 1, 1))),
}


def draw_study(result: Mapping[str, Any], labels: Mapping[str, str], groups: Sequence[str]) -> tuple[Any, Any]:
    """Return the figure and its fourth panel, which is for the study.

    `labels` are those of the policies and of reward, cost, limit, groups and round; of the unit, if not hundredths.
    """
    labels = {**LABELS, **labels}
    figure, ((gain, cost), (by_group, fourth)) = make_figure(2, 2, width=4.8, height=3.1)
    size, curves, value = result["size"], result["curves"], result["limit"]
    unit = labels.get("unit", HUNDRED)
    windows = len(curves["safe"]["cost"]["middle"])
    points = (np.arange(windows) + 0.5) * size["rounds"] / windows
    for policy, (colour, dashes) in COLOURS.items():
        for axes, signal in ((gain, "gain"), (cost, "cost")):
            one = {end: 100 * np.array(values) for end, values in curves[policy][signal].items()}
            draw_band(axes, points, one["low"], one["middle"], one["high"], colour, labels[policy], dashes)
    possible = 100 * np.array(curves[POSSIBLE]["gain"]["middle"])
    gain.plot(points, possible, color=INK, linestyle=(0, (1, 1)), linewidth=1.2, label=labels[POSSIBLE])
    format_axes(gain, f"{labels['reward']}, beside the safe action", y="points more in a hundred")
    for axes in (gain, cost):
        format_round_axis(axes, labels["round"])
    format_panel(cost, labels["cost"], value, labels["limit"])
    cost.set_ylabel(unit)
    draw_bars(by_group, {policy: result["by_group"][policy] for policy in COLOURS}, groups)
    format_panel(by_group, f"{labels['cost']}, by {labels['groups']}", value, labels["limit"])
    by_group.set_ylabel(f"{unit}, last fifth")
    add_legend_below(figure, gain, 3)
    return figure, fourth


def format_panel(axes: Any, title: str, value: float | None = None, name: str = "", legend: bool = False) -> None:
    """Set the title of a panel in hundredths, and draw its limit."""
    format_axes(axes, title, x=axes.get_xlabel(), y=f"{HUNDRED}, last fifth")
    if value is not None:
        draw_limit_line(axes, 100 * value, name)
        box = {"facecolor": "white", "alpha": 0.75, "pad": 0.1, "linewidth": 0}
        axes.texts[-1].set_bbox(box)  # it may be on a bar
    if legend:
        axes.legend(frameon=False, fontsize=8)


def draw_bars(
    axes: Any, heights: Mapping[str, Sequence[float]], groups: Sequence[str], others: Mapping[str, str] | None = None
) -> None:
    """Draw one bar per group and policy; `others` are colours of other policies."""
    width = 0.8 / len(heights)
    colours = {policy: colour for policy, (colour, _) in COLOURS.items()} | dict(others or {})
    for index, (policy, values) in enumerate(heights.items()):
        positions = np.arange(len(groups)) + (index - (len(heights) - 1) / 2) * width
        axes.bar(positions, 100 * np.array(values), width, color=colours.get(policy, GUARDED), label=policy)
    axes.set_xticks(range(len(groups)), groups, fontsize=8)


def draw_intervals(axes: Any, result: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Draw the intervals of reward and cost of each policy."""
    rows, unit, limit_ = result["held_out"], labels.get("unit", HUNDRED), result["limit"]
    signals = {
        labels["reward"]: (labels["reward_name"], GUARDED, "o"),
        labels["cost"]: (labels["cost_name"], UNGUARDED, "s"),
    }
    for offset, (label, (signal, colour, marker)) in zip((-0.13, 0.13), signals.items(), strict=True):
        columns = ([row[f"{signal}{end}"] for row in rows] for end in (", from", "", ", to"))
        low, middle, high = (100 * np.array(column, dtype=np.float64) for column in columns)  # NaN: unknown
        heights = np.arange(len(rows)) + offset
        axes.hlines(heights, low, high, color=colour, linewidth=1.6)
        axes.plot(middle, heights, color=colour, marker=marker, linestyle="none", markersize=4, label=label)
    axes.set_yticks(range(len(rows)), [row["policy"] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False)
    also = "" if unit == HUNDRED else f"; {labels['cost']}: {unit}"
    format_axes(axes, "real people of the other half", x=HUNDRED + also)
    axes.axvline(100 * limit_, color="black", linestyle="--", linewidth=1)
