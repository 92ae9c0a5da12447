"""The picture that studies share: reward against the safe action, cost against its limit, and cost group by group."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.reports.style import (
    GUARDED,
    INK,
    SAFE,
    TODAY,
    UNGUARDED,
    band,
    count_rounds,
    figure,
    legend_below,
    limit,
    plain_axes,
)

POSSIBLE = "possible"  # what could be done under the limit: a line on the left
COLOURS: dict[str, tuple[str, Any]] = {
    "guarded": (GUARDED, "-"),
    "unguarded": (UNGUARDED, (0, (5, 1.5))),
    "safe": (SAFE, (0, (1, 1))),
    "today": (TODAY, (0, (3, 1, 1, 1))),
}


def drawn(result: Mapping[str, Any], words: Mapping[str, str], groups: Sequence[str] = ()) -> Any:
    """Return the figure; `words` are labels of the policies and of reward, cost, limit, groups, round and unit.

    Without groups the right panel shows what the half of a trial says that nobody learned from.
    """
    picture, ((left, middle, right),) = figure(1, 3, width=4.2, height=3.4)
    size, curves, value = result["size"], result["curves"], result["limit"]
    unit = words.get("unit", "of a hundred")
    windows = len(curves["safe"]["cost"]["middle"])
    points = (np.arange(windows) + 0.5) * size["rounds"] / windows
    for who, (colour, dashes) in COLOURS.items():
        for axes, signal in ((left, "gain"), (middle, "cost")):
            one = {end: 100 * np.array(values) for end, values in curves[who][signal].items()}
            band(axes, points, one["low"], one["middle"], one["high"], colour, words[who], dashes)
    most = 100 * np.array(curves[POSSIBLE]["gain"]["middle"])
    left.plot(points, most, color=INK, linestyle=(0, (1, 1)), linewidth=1.2, label=words[POSSIBLE])
    plain_axes(left, f"{words['reward']}, beside the safe action", y="points more in a hundred")
    plain_axes(middle, words["cost"], y=unit)
    for axes in (left, middle):
        count_rounds(axes, words["round"])
    limit(middle, 100 * value, words["limit"])
    if groups:
        bars(right, result["by_group"], groups)
        plain_axes(right, f"{words['cost']}, by {words['groups']}", y=f"{unit}, in the last fifth")
        limit(right, 100 * value, words["limit"])
    else:
        intervals(right, result["held_out"], words, unit)
        right.axvline(100 * value, color="black", linestyle="--", linewidth=1)
    legend_below(picture, left, 5)
    return picture


def bars(axes: Any, costs: Mapping[str, Sequence[float]], groups: Sequence[str]) -> None:
    """Draw for each group a bar a policy."""
    width = 0.8 / len(COLOURS)
    for place, (who, (colour, _)) in enumerate(COLOURS.items()):
        at = np.arange(len(groups)) + (place - (len(COLOURS) - 1) / 2) * width
        axes.bar(at, 100 * np.array(costs[who]), width, color=colour)
    axes.set_xticks(range(len(groups)), groups, fontsize=8)


def intervals(axes: Any, rows: Sequence[Mapping[str, Any]], words: Mapping[str, str], unit: str) -> None:
    """Draw for each policy the interval of its reward and of its cost, one above the other."""
    signals = {
        words["reward"]: (words["reward_name"], GUARDED, "o"),
        words["cost"]: (words["cost_name"], UNGUARDED, "s"),
    }
    for offset, (label, (signal, colour, marker)) in zip((-0.13, 0.13), signals.items(), strict=True):
        low, middle, high = (100 * np.array([row[f"{signal}{end}"] for row in rows]) for end in (", from", "", ", to"))
        heights = np.arange(len(rows)) + offset
        axes.hlines(heights, low, high, color=colour, linewidth=1.6)
        axes.plot(middle, heights, color=colour, marker=marker, linestyle="none", markersize=4, label=label)
    axes.set_yticks(range(len(rows)), [row["policy"] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False)
    plain_axes(axes, "real people of the other half", x=f"of a hundred; {words['cost']}: {unit}")
