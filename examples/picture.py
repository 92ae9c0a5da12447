"""The picture that the short programs beside it make: what is earned, and what every limit costs, round by round."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.reports import style as plot_style

POINTS = 200  # that a curve has at most; of a cost the worst round of each stretch is drawn, so that none is hidden
WHO = {
    "guarded": plot_style.GUARDED,
    "unguarded": plot_style.UNGUARDED,
    "on average": plot_style.UNGUARDED,
    "one limit for all": plot_style.UNGUARDED,
    "kids, one limit for all": plot_style.UNGUARDED,
    "safe action": plot_style.SAFE,
    "today": plot_style.TODAY,
    "possible under the limit": "black",
}
MORE = [colour for colour, _ in plot_style.STYLES if colour not in WHO.values()]

Curves = Mapping[str, Sequence[float]]


def stretched(values: Sequence[float], of: Any) -> tuple[Any, Any]:
    """Return the ends of at most POINTS stretches of rounds, and what `of` says of each: its mean, its worst."""
    parts = np.array_split(np.asarray(values, dtype=float), min(POINTS, len(values)))
    return np.cumsum([part.size for part in parts]), np.array([of(part) for part in parts])


def curves(axes: Any, drawn: Curves, of: Any) -> None:
    """Draw each curve in the colour of who it is of."""
    for index, (who, values) in enumerate(drawn.items()):
        x, y = stretched(values, of)
        colour, dashes = WHO.get(who, MORE[index % len(MORE)]), ":" if who.startswith("possible") else "-"
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=1.6, label=plot_style.escape_label(who))


def two_panels(
    earned: Curves,
    paid: Curves,
    limit: tuple[str, float],
    *,
    reward: str,
    round_: str = "round",
    at_most: bool = True,
    zero: bool = True,
) -> tuple[Any, Any]:
    """Draw rewards on the left, costs against their limit on the right, and return the figure and its panels.

    Both are expected values by the truth, which only a program that invents its users knows. How many rounds of each
    were over the limit is printed.
    """
    figure, grid = plot_style.make_figure(1, 2, width=4.4, height=3.1)
    left, right = grid[0]
    name, value = limit
    curves(left, earned, np.mean)
    curves(right, paid, np.max if at_most else np.min)
    for axes in grid[0] if zero else []:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    plot_style.draw_limit_line(right, value, name, at_most)
    plot_style.format_axes(left, reward)
    plot_style.format_axes(right, f"expected {plot_style.escape_label(name)}")
    handles = {line.get_label(): line for axes in grid[0] for line in axes.lines if line.get_label()[0] != "_"}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=min(len(handles), 4), frameon=False)
    plot_style.format_round_axis(left, round_)
    plot_style.format_round_axis(right, f"{round_}, the worst of each stretch")
    for who, values in paid.items():
        over = int(np.sum(np.asarray(values) > value + 1e-9 if at_most else np.asarray(values) < value - 1e-9))
        print(f"{who}: {over} of {len(values)} rounds beyond {name} {'≤' if at_most else '≥'} {value:g}")
    return figure, grid[0]


def save(figure: Any, path: str | Path) -> None:
    """Write a picture, in a folder that is made if there is none."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    plot_style.write_figure(figure, Path(path))
    print(f"{path} is its picture")
