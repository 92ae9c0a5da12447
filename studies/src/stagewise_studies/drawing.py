"""The picture that studies share: reward beside the safe action, cost against its limit, by group; a fourth is free."""

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


def drawn(result: Mapping[str, Any], words: Mapping[str, str], groups: Sequence[str]) -> tuple[Any, Any]:
    """Return the figure and its fourth panel, which is left to the study.

    `words` are labels of the policies and of reward, cost, limit, groups and round.
    """
    picture, ((gain, cost), (parted, fourth)) = figure(2, 2, width=4.8, height=3.1)
    size, curves, value = result["size"], result["curves"], result["limit"]
    windows = len(curves["safe"]["cost"]["middle"])
    points = (np.arange(windows) + 0.5) * size["rounds"] / windows
    for who, (colour, dashes) in COLOURS.items():
        for axes, signal in ((gain, "gain"), (cost, "cost")):
            one = {end: 100 * np.array(values) for end, values in curves[who][signal].items()}
            band(axes, points, one["low"], one["middle"], one["high"], colour, words[who], dashes)
    most = 100 * np.array(curves[POSSIBLE]["gain"]["middle"])
    gain.plot(points, most, color=INK, linestyle=(0, (1, 1)), linewidth=1.2, label=words[POSSIBLE])
    plain_axes(gain, f"{words['reward']}, beside the safe action", y="points more in a hundred")
    for axes in (gain, cost):
        count_rounds(axes, words["round"])
    finish(cost, words["cost"], value, words["limit"])
    cost.set_ylabel("of a hundred")
    bars(parted, {who: result["by_group"][who] for who in COLOURS}, groups)
    finish(parted, f"{words['cost']}, by {words['groups']}", value, words["limit"])
    legend_below(picture, gain, 3)
    return picture, fourth


def finish(axes: Any, title: str, value: float | None = None, name: str = "", legend: bool = False) -> None:
    """Name a panel whose heights are of a hundred, and draw its limit."""
    plain_axes(axes, title, x=axes.get_xlabel(), y="of a hundred, last fifth")
    if value is not None:
        limit(axes, 100 * value, name)
        axes.texts[-1].set_bbox(
            {"facecolor": "white", "alpha": 0.75, "pad": 0.1, "linewidth": 0}
        )  # it may stand on a bar
    if legend:
        axes.legend(frameon=False, fontsize=8)


def bars(
    axes: Any, heights: Mapping[str, Sequence[float]], groups: Sequence[str], others: Mapping[str, str] | None = None
) -> None:
    """Draw for each group a bar a policy; `others` are colours of those that have none."""
    width = 0.8 / len(heights)
    colours = {who: colour for who, (colour, _) in COLOURS.items()} | dict(others or {})
    for place, (who, values) in enumerate(heights.items()):
        at = np.arange(len(groups)) + (place - (len(heights) - 1) / 2) * width
        axes.bar(at, 100 * np.array(values), width, color=colours.get(who, GUARDED), label=who)
    axes.set_xticks(range(len(groups)), groups, fontsize=8)
