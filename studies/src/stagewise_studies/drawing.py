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
from stagewise_studies.study import POSSIBLE

HUNDRED = "of a hundred"
WORDS = {"guarded": "guarded", "unguarded": "the same, unguarded", POSSIBLE: "possible under the limit"}
COLOURS: dict[str, tuple[str, Any]] = {
    "guarded": (GUARDED, "-"),
    "unguarded": (UNGUARDED, (0, (5, 1.5))),
    "safe": (SAFE, (0, (1, 1))),
    "today": (TODAY, (0, (3, 1, 1, 1))),
}


def drawn(result: Mapping[str, Any], words: Mapping[str, str], groups: Sequence[str]) -> tuple[Any, Any]:
    """Return the figure and its fourth panel, which is left to the study.

    `words` are labels of the policies and of reward, cost, limit, groups and round; of the unit, if not hundredths.
    """
    words = {**WORDS, **words}
    picture, ((gain, cost), (parted, fourth)) = figure(2, 2, width=4.8, height=3.1)
    size, curves, value = result["size"], result["curves"], result["limit"]
    unit = words.get("unit", HUNDRED)
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
    cost.set_ylabel(unit)
    bars(parted, {who: result["by_group"][who] for who in COLOURS}, groups)
    finish(parted, f"{words['cost']}, by {words['groups']}", value, words["limit"])
    parted.set_ylabel(f"{unit}, last fifth")
    legend_below(picture, gain, 3)
    return picture, fourth


def finish(axes: Any, title: str, value: float | None = None, name: str = "", legend: bool = False) -> None:
    """Name a panel whose heights are of a hundred, and draw its limit."""
    plain_axes(axes, title, x=axes.get_xlabel(), y=f"{HUNDRED}, last fifth")
    if value is not None:
        limit(axes, 100 * value, name)
        box = {"facecolor": "white", "alpha": 0.75, "pad": 0.1, "linewidth": 0}
        axes.texts[-1].set_bbox(box)  # it may stand on a bar
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


def intervals(axes: Any, result: Mapping[str, Any], words: Mapping[str, str]) -> None:
    """Draw for each policy the interval of its reward and of its cost, one above the other."""
    rows, unit, limit_ = result["held_out"], words.get("unit", HUNDRED), result["limit"]
    signals = {
        words["reward"]: (words["reward_name"], GUARDED, "o"),
        words["cost"]: (words["cost_name"], UNGUARDED, "s"),
    }
    for offset, (label, (signal, colour, marker)) in zip((-0.13, 0.13), signals.items(), strict=True):
        told = ([row[f"{signal}{end}"] for row in rows] for end in (", from", "", ", to"))
        low, middle, high = (100 * np.array(column, dtype=np.float64) for column in told)  # NaN where none is named
        heights = np.arange(len(rows)) + offset
        axes.hlines(heights, low, high, color=colour, linewidth=1.6)
        axes.plot(middle, heights, color=colour, marker=marker, linestyle="none", markersize=4, label=label)
    axes.set_yticks(range(len(rows)), [row["policy"] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.legend(fontsize=8, frameon=False)
    also = "" if unit == HUNDRED else f"; {words['cost']}: {unit}"
    plain_axes(axes, "real people of the other half", x=HUNDRED + also)
    axes.axvline(100 * limit_, color="black", linestyle="--", linewidth=1)
