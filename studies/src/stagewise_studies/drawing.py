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


def drawn(result: Mapping[str, Any], words: Mapping[str, str], groups: Sequence[str]) -> Any:
    """Return the figure; `words` are labels of the four policies and of reward, cost, limit, groups and round."""
    picture, ((left, middle, right),) = figure(1, 3, width=4.2, height=3.4)
    size, curves, value = result["size"], result["curves"], result["limit"]
    windows = len(curves["safe"]["cost"]["middle"])
    points = (np.arange(windows) + 0.5) * size["rounds"] / windows
    for who, (colour, dashes) in COLOURS.items():
        for axes, signal in ((left, "gain"), (middle, "cost")):
            one = {end: 100 * np.array(values) for end, values in curves[who][signal].items()}
            band(axes, points, one["low"], one["middle"], one["high"], colour, words[who], dashes)
    most = 100 * np.array(curves[POSSIBLE]["gain"]["middle"])
    left.plot(points, most, color=INK, linestyle=(0, (1, 1)), linewidth=1.2, label=words[POSSIBLE])
    plain_axes(left, f"{words['reward']}, beside the safe action", y="points more in a hundred")
    plain_axes(middle, words["cost"], y="of a hundred")
    for axes in (left, middle):
        count_rounds(axes, words["round"])
    bars(right, result["by_group"], groups)
    plain_axes(right, f"{words['cost']}, by {words['groups']}", y="of a hundred, in the last fifth")
    limit(middle, 100 * value, words["limit"])
    limit(right, 100 * value, words["limit"])
    legend_below(picture, left, 5)
    return picture


def bars(axes: Any, costs: Mapping[str, Sequence[float]], groups: Sequence[str]) -> None:
    """Draw for each group a bar a policy."""
    width = 0.8 / len(COLOURS)
    for place, (who, (colour, _)) in enumerate(COLOURS.items()):
        at = np.arange(len(groups)) + (place - (len(COLOURS) - 1) / 2) * width
        axes.bar(at, 100 * np.array(costs[who]), width, color=colour)
    axes.set_xticks(range(len(groups)), groups, fontsize=8)
